"""The compare screen: what the sessions say together, then what stands side by side."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType
from textual.message import Message

from gpuwatch.errors import GpuwatchError
from gpuwatch.session.study import sessions_in
from gpuwatch.tui.canvas import Canvas, Line
from gpuwatch.tui.head_rows import trouble_rows
from gpuwatch.tui.keys import keys_row
from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.snapshot import Trouble

if TYPE_CHECKING:
    from gpuwatch.analysis.compare import Comparison
    from gpuwatch.analysis.results import StudyResult
    from gpuwatch.tui.columns import Section

HELP: tuple[tuple[str, str], ...] = (
    ("↑ ↓ PgUp PgDn", "scroll"),
    ("← →", "other sessions beside the baseline, where not all fit"),
    ("Esc or q", "back"),
    ("t", "colours: dark, light, the terminal's own"),
    ("?", "this page"),
)


@dataclass(frozen=True)
class Answer:
    """What the screen shows."""

    study: StudyResult
    sessions: Comparison | None
    """Session by session; ``None`` where cells have several runs, whose medians are shown."""
    as_of: str = ""
    """How far the study was that is looked at while it goes on."""


class Compared(Message):
    """The thread is done."""

    def __init__(self, result: Answer | Trouble) -> None:
        super().__init__()
        self.result = result


class CompareScreen(PaintedScreen):
    """Reads the sessions in a thread of its own and shows what they say.

    All sessions of a study's folder in its order are that study, with what did not run.
    """

    KEYS = HELP
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("down,j", "scroll_by(1)", show=False),
        Binding("up,k", "scroll_by(-1)", show=False),
        Binding("pagedown,space", "scroll_by(15)", show=False),
        Binding("pageup", "scroll_by(-15)", show=False),
        Binding("home", "scroll_by(-1000000)", show=False),
        Binding("end", "scroll_by(1000000)", show=False),
        Binding("right,l", "shift(1)", show=False),
        Binding("left,h", "shift(-1)", show=False),
        Binding("escape,q", "back", show=False),
    ]

    def __init__(
        self,
        paths: Sequence[Path],
        beside: Path | None = None,
        *,
        margin: float | None = None,
        across_devices: bool = False,
    ) -> None:
        """``beside``: the session to stand next to the baseline where not all fit.

        ``margin`` and ``across_devices`` are those of ``gpuwatch compare``.
        """
        super().__init__()
        self.paths = list(paths)
        folder = self.paths[0].parent
        self._study = folder if self.paths == sessions_in(folder) else None
        """Its folder; looked at now: a run may begin before the sessions are read."""
        self._beside = beside
        self._margin, self._across_devices = margin, across_devices
        self.result: Answer | Trouble | None = None
        self._row = 0
        self._column = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._compare, name="compare", daemon=True)

    def on_mount(self) -> None:
        self._thread.start()
        self.call_after_refresh(self.paint)

    def on_unmount(self) -> None:
        self._over.set()
        self._thread.join(timeout=2)

    def _compare(self) -> None:
        """In the thread: read every session, then compare."""
        from gpuwatch.tui.cell_rows import has_cells, snapshot_words

        try:
            study = self._read()
            sessions = None if has_cells(study) else _side_by_side(study)
            as_of = snapshot_words(self._study, study) if self._study is not None else ""
            result: Answer | Trouble = Answer(study, sessions, as_of)
        except GpuwatchError as error:
            result = Trouble(error.message, error.mend)
        if not self._over.is_set():
            self.post_message(Compared(result))

    def _read(self) -> StudyResult:
        from gpuwatch.analysis.read import read_sessions, read_study

        margin, across = self._margin, self._across_devices
        if self._study is not None:
            return read_study(self._study, margin=margin, across_devices=across)
        return read_sessions(self.paths, margin=margin, across_devices=across)

    def on_compared(self, message: Compared) -> None:
        self.result = message.result
        if isinstance(self.result, Answer) and self._beside is not None:
            self._column = _column_of(self.result, str(self._beside))
        self.paint()

    def paint(self) -> None:
        width, height = self.app.size
        if height < 4:
            return
        title = Line(width).add(" gpuwatch ", "brand").add("compare", "strong")
        lines = [title]
        keys = [("Esc", "back")]
        if self.result is None:
            lines += [Line(width), Line(width).add(" reading the sessions …", "muted")]
        elif isinstance(self.result, Trouble):
            lines.append(Line(width))
            lines += trouble_rows(self.result, width)
        else:
            title.add(f"  {self.result.as_of}", "warn").add(_against(self.result), "muted")
            lines += self._body(self.result, width, height, keys)
        lines += [Line(width) for _ in range(height - 1 - len(lines))]
        lines = lines[: height - 1]
        lines.append(keys_row([*keys, ("?", "help")], width))
        self.query_one(Canvas).show(lines)

    def _body(
        self, answer: Answer, width: int, height: int, keys: list[tuple[str, str]]
    ) -> list[Line]:
        """What is seen of the sections; the heading of the first of them stays."""
        hidden = _hidden(answer, width)
        self._column = max(0, min(self._column, hidden))
        sections = _sections(answer, width, self._column)
        rows = [row for each in sections for row in (*each.heading, *each.body)]
        space = max(1, height - 2)
        self._row = max(0, min(self._row, len(rows) - space))
        seen = rows[self._row : self._row + space]
        start = 0
        for each in sections:
            end = start + len(each.heading) + len(each.body)
            if start < self._row < end:
                over = each.heading[: end - self._row]
                seen[: len(over)] = over
            start = end
        if len(rows) > space:
            last = min(len(rows), self._row + space)
            keys.append(("↑↓", f"scroll, {last} of {len(rows)}"))
        if hidden > 0:
            keys.append(("←→", f"{hidden} more"))
        return seen

    def action_scroll_by(self, by: int) -> None:
        self._row += by
        self.paint()

    def action_shift(self, by: int) -> None:
        self._column += by
        self.paint()

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
        else:
            self.gpuwatch.leave()


def _side_by_side(study: StudyResult) -> Comparison:
    """Session by session, against the one that the verdicts are against."""
    from gpuwatch.analysis.compare import compare
    from gpuwatch.tui.cell_rows import baseline_of

    found = compare(study.sessions)
    asked = [each for each in study.questions if each.contrasts]
    if len(asked) != 1 or found.baseline is None:
        return found
    base = {run.session.path for run in asked[0].cells[baseline_of(asked[0])].runs}
    if found.sessions[found.baseline].path in base:
        return found
    return compare(sorted(study.sessions, key=lambda each: each.path not in base))


def _sections(answer: Answer, width: int, column: int) -> list[Section]:
    from gpuwatch.tui import cell_rows, compare_rows
    from gpuwatch.tui.columns import Section, heading_rows
    from gpuwatch.tui.verdict_rows import evidence_rows, notes_of, verdict_rows

    first = Section((), tuple(verdict_rows(answer.study, width)))
    if answer.sessions is None:
        return [first, *cell_rows.sections(answer.study, width, column)]
    place = compare_rows.place_of(answer.sessions, width, column)
    heading = heading_rows(compare_rows.heads(answer.sessions), place)
    body = compare_rows.body_rows(answer.sessions, place, notes_of(answer.study))
    last = Section((), tuple(evidence_rows(answer.study, width)))
    return [first, Section(heading, tuple(body)), last]


def _hidden(answer: Answer, width: int) -> int:
    """Columns that are left out, of the table that leaves out most."""
    from gpuwatch.tui import cell_rows, compare_rows

    if answer.sessions is not None:
        return compare_rows.place_of(answer.sessions, width, 0).hidden
    questions = answer.study.questions
    return max((cell_rows.place_of(each, width, 0).hidden for each in questions), default=0)


def _against(answer: Answer) -> str:
    from gpuwatch.text import clean
    from gpuwatch.tui.cell_rows import baseline_of
    from gpuwatch.tui.compare_rows import against

    if answer.sessions is not None:
        return against(answer.sessions)
    found = {clean(each.cells[baseline_of(each)].label) for each in answer.study.questions}
    against_ = f"medians against {found.pop() if len(found) == 1 else 'their baselines'}"
    return against_ if answer.as_of else f"{clean(answer.study.title)}: {against_}"


def _column_of(answer: Answer, path: str) -> int:
    from gpuwatch.tui import cell_rows

    if answer.sessions is None:
        return cell_rows.column_of(answer.study, path)
    kept = answer.sessions.baseline or 0
    others = [each.path for at, each in enumerate(answer.sessions.sessions) if at != kept]
    return others.index(path) if path in others else 0
