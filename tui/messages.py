"""The questions before a stop, and the lines printed after leaving a screen."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import to_paste
from gpuwatch.session.study.progress import StudyPosition
from gpuwatch.session.study.short_name import short_name


@dataclass(frozen=True)
class Question:
    """A question before something is stopped or deleted."""

    text: str
    yes: str
    no: str = "Let it go on"
    """The answers; Enter alone gives ``no``."""
    more: tuple[str, ...] = ()
    """Other ways of doing it, after ``yes``."""


def stop_question(place: StudyPosition | None) -> Question:
    """The question before a run is stopped, which ends its study too."""
    to_come = 0 if place is None else place.to_come
    if not to_come:
        return Question("Stop this run?", "Stop it")
    rest = "one" if to_come == 1 else str(to_come)
    return Question(f"Stop this run and the {rest} after it?", "Stop them", "Let them go on")


STUDY_QUESTION = Question("Stop this study?", "Stop it")
"""The question before a study is stopped, whichever run is going on."""
LOST_QUESTION = Question("End what is left of this run?", "End it", "Leave it")
"""The question before a run without a recorder is stopped; it may be over already."""


def farewell(
    path: Path, place: StudyPosition | None, *, live: bool, study_goes_on: bool
) -> list[str]:
    """Lines printed after the live screen: how to return to what goes on.

    If more runs follow, the path of this one is left out: it is soon over.
    """
    if not path.exists():
        gone = "the session file is gone"
        if not live:
            return [gone]
        return [f"the run goes on; {gone}", f"stop it: {to_paste('stop', path)}"]
    if place is not None and study_goes_on and not (live and place.to_come == 0):
        return [
            f"the study of {place.total} runs goes on",
            "come back: gpuwatch attach",
            f"stop all:  {to_paste('stop', short_name(path.parent))}",
        ]
    if live:
        return [
            "the run goes on",
            f"come back: {to_paste('attach', short_name(path))}",
            f"stop it:   {to_paste('stop', short_name(path))}",
        ]
    return [f"see it again: {to_paste('replay', short_name(path))}"]


def farewell_stopped(path: Path, *, over: bool) -> list[str]:
    """Lines printed after the live screen if the run was stopped from it."""
    if not path.exists():
        return ["the run is over" if over else "the run is being stopped"]
    again = f"see it again: {to_paste('replay', short_name(path))}"
    return [again] if over else ["the run is being stopped", again]


def farewell_waiting(study: Path) -> list[str]:
    """Lines printed after a screen was left on which a study at a place waits for its first run."""
    return [
        "the study goes on",
        f"come back: {to_paste('attach', study.name)}",
        f"stop it:   {to_paste('stop', study.name)}",
    ]


SIGNALS = {
    "TERM": "SIGTERM: ask it to end",
    "INT": "SIGINT: interrupt it, as Ctrl+C does",
    "KILL": "SIGKILL: end it at once, it can save nothing",
}
"""The signals that a screen sends, the usual one first, and what each does."""


def signal_question(process: str) -> Question:
    """The question before a signal; ``process``: PID, user and command line."""
    first, *more = SIGNALS.values()
    return Question(f"Send a signal to {process}?", first, "Cancel", tuple(more))
