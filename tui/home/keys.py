"""The keys of the home screen: all of them for the help page, those that fit for its last row."""

from __future__ import annotations

from gpuwatch.session.reading.status import State
from gpuwatch.tui.home.list import stoppable
from gpuwatch.tui.home.rows import HomeState

HELP: tuple[tuple[str, str], ...] = (
    ("", "runs"),
    ("n", "start a run"),
    ("Enter", "open: live if it runs, else its replay; of a study its runs"),
    ("s", "stop the run or the study, after asking"),
    ("a", "record on: take up a run whose recorder died"),
    ("l", "the log of the run"),
    ("p", "processes of this machine"),
    ("", "the list"),
    ("↑ ↓ PgUp PgDn", "another row; a click stands on it, a double click opens it"),
    ("Home End", "first, last row"),
    ("→ ←", "show, hide the runs of a study"),
    ("/", "find: words, or status: env: workload: name: tag: note: study:"),
    ("o", "sort by started, took, step time, samples/s, name, status"),
    ("O", "the other way round"),
    ("r", "read the list again"),
    ("", "comparing"),
    ("Space", "mark the session or study"),
    ("c", "compare what is marked; without a mark: all runs of the study"),
    ("e", "write the report of what is marked, else of the study"),
    ("Esc", "take the marks back, then show all again"),
    ("", "what is kept"),
    ("R", "give it a name, to find it by"),
    ("T", "its tags"),
    ("N", "a note on it"),
    ("d", "delete what is marked, else what is under the cursor, after asking"),
    ("q", "leave; runs go on"),
)


def home_keys(state: HomeState) -> list[tuple[str, str]]:
    """What can be pressed now, what matters most first."""
    if state.edit is not None:
        return [("Enter", "done"), ("Esc", "leave it as it was")]
    may, current = not state.read_only, state.current
    keys = [("n", "new run")] if may else []
    if may and current is not None:
        if current.entry and current.entry.status == State.LOST.value:
            keys.append(("a", "record on"))
        if stoppable(current):
            keys.append(("s", "stop"))
    if state.entries:
        keys += [("Enter", "open"), ("Space", "mark"), ("c", "compare"), ("/", "find")]
    keys += [("q", "leave"), ("?", "help")]
    if state.entries:
        keys += [("o", "sort"), ("l", "log")]
        if may:
            keys += [("d", "delete"), ("R", "name"), ("T", "tags"), ("N", "note")]
            keys.append(("e", "export"))
    return [*keys, ("p", "processes"), ("r", "refresh")]
