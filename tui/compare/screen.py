"""The compare screen: the document of a study, its tables with the columns that fit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.core.text import clean
from gpuwatch.core.units import clock_time, counted
from gpuwatch.session.study.study_folder import sessions_in
from gpuwatch.tui.feed.posting import Post, read_in_thread
from gpuwatch.tui.feed.snapshot import Trouble
from gpuwatch.tui.widgets.base_screen import CanvasScreen
from gpuwatch.tui.widgets.head_rows import trouble_rows
from gpuwatch.tui.widgets.line import Line, fit, wrap
from gpuwatch.tui.widgets.page import SCROLLING

if TYPE_CHECKING:
    from gpuwatch.analysis.study.read import Read
    from gpuwatch.tui.compare.answer import Answer, Section
    from gpuwatch.tui.compare.histories import CurveCache

_MOST_MESSAGE = 5
"""Most rows of a part of the message."""


class CompareScreen(CanvasScreen):
    """Compares sessions; a thread reads them.

    All sessions of a study's folder, in order, are compared as that study, with the runs that did
    not take place.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "back", "back"),
        Binding("a", "whole", "all", tooltip="all figures"),
        Binding("a", "brief", "less", tooltip="only what differs"),
        Binding("x", "across", "across", tooltip="judge other commands and devices, too, or not"),
        Binding("h", "histories", "histories", tooltip="histories of the runs"),
        Binding("k", "kernels", "kernels", tooltip="kernels of the profiles, with the difference"),
        Binding("e", "export", "export", tooltip="write the report: a page for a browser"),
        Binding("right", "shift(1)", "next column", show=False),
        Binding("left", "shift(-1)", "column before", show=False),
        Binding("down", "scroll_by(1)", "down", show=False),
        Binding("up", "scroll_by(-1)", "up", show=False),
        *SCROLLING[2:],  # k is of the kernels
    ]

    def __init__(
        self,
        paths: Sequence[Path],
        beside: Path | None = None,
        *,
        whole: bool = False,
        **judging: Any,
    ) -> None:
        """``beside``: the session shown next to the baseline if not all fit. ``whole``: all figures
        are shown, not only what differs.

        ``judging``: ``margin``, ``across_devices`` and ``across_commands``, as for ``gpuwatch
        compare``.
        """
        super().__init__()
        self.paths = list(paths)
        folder = self.paths[0].parent
        self._study = folder if self.paths == sessions_in(folder) else None
        """The study's folder; checked now, because a run may start before the sessions are read."""
        self._beside = beside
        self._given = self._how = judging
        self._crosses = False
        self.result: Answer | Trouble | None = None
        self._read = 0
        """Number of sessions whose samples are read."""
        self._since = time.monotonic()
        self._whole = whole
        self._sections: tuple[tuple[int, int, bool], list[Section]] | None = None
        """What is laid out for a width and a column, in whole or not."""
        self._row = 0
        self._left: dict[bool, int] = {}
        """The row that was last seen of each form, in whole or not."""
        self._column = 0
        self._message = ""
        self._curves: CurveCache = {}

    def on_mount(self) -> None:
        self._clock = self.set_interval(1.0, self.paint)
        self._given_up = read_in_thread("compare", self, self._compare, self._failed)

    def _compare(self, post: Post) -> None:
        """In the thread."""
        from gpuwatch.analysis.study.read import read, read_sessions, read_study
        from gpuwatch.tui.compare.answer import answer

        def read_one(path: Path) -> Read:
            session = read(path)
            post(self._one_read)
            return session

        if self._study is not None:
            study = read_study(self._study, **self._how, reading=read_one)
        else:
            study = read_sessions(self.paths, **self._how, reading=read_one)
        post(self._compared, answer(study, self._study))

    def _one_read(self) -> None:
        """The steps and samples of one more session are read."""
        self._read += 1
        self.paint()

    def _compared(self, result: Answer) -> None:
        self._clock.stop()
        self.result = result
        if self._beside is not None:
            from gpuwatch.tui.compare.answer import column_of

            self._column = column_of(result, str(self._beside))
        self.refresh_bindings()
        self.paint()

    def _failed(self, trouble: Trouble) -> None:
        self._clock.stop()
        self.result = trouble
        self.paint()

    def paint(self) -> None:
        width, height = self.room
        if height < 3:
            return
        title = Line(width).add(" gpuwatch ", "brand").add("compare", "strong")
        sentences = self._message.split("   ")
        parts = [part for text in sentences for part in wrap(text, width - 4, _MOST_MESSAGE)]
        foot = [
            Line(width).add("   " if at else " » ", "key").add(part, "strong")
            for at, part in enumerate(parts)
        ]
        space = height - 1 - len(foot)
        if self.result is None:
            count, seconds = len(self.paths), time.monotonic() - self._since
            told = f"reading session {self._read + 1} of {count}"
            told = told if self._read < count else f"comparing {counted(count, 'session')}"
            lines = [Line(width).add(f" {told} … ", "strong").add(clock_time(seconds), "muted")]
        elif isinstance(self.result, Trouble):
            lines = [Line(width), *trouble_rows(self.result, width)]
        else:
            title.add(f"  {self.result.as_of}", "warn")
            lines = self._body(self.result, width, space, title)
        lines = [title, *lines][: space + 1]
        lines += [Line(width) for _ in range(space + 1 - len(lines))]
        self.show([*lines, *foot])

    def _body(self, answer: Answer, width: int, space: int, title: Line) -> list[Line]:
        """The visible rows; the heading of the first visible section stays in sight.

        What is compared and the position are added to ``title``.
        """
        from gpuwatch.tui.compare.answer import sections

        place = (width, self._column, self._whole)
        if self._sections is None or self._sections[0] != place:
            of = answer.whole if self._whole else answer.brief
            self._sections = (place, sections(of, width, self._column))
        shown = self._sections[1]
        rows = [row for section in shown for row in (*section.heading, *section.body)]
        space = max(1, space)
        self._row = max(0, min(self._row, len(rows) - space))
        visible = rows[self._row : self._row + space]
        start, hidden = 0, 0
        for section in shown:
            end = start + len(section.heading) + len(section.body)
            if start < self._row < end:
                heading = section.heading[: end - self._row]
                visible[: len(heading)] = heading
            if start < self._row + space and self._row < end:
                hidden = max(hidden, sum(section.left_out))
            start = end
        notes = [f"←→ {hidden} more"] if hidden else []
        if len(rows) > space:
            notes.append(f"{self._row + 1} to {self._row + len(visible)} of {len(rows)}")
        text = f"{'  '.join(notes)} "
        name = fit(clean(answer.whole.title), title.left - len(text) - 1)
        title.add(name, "muted").end(text, "muted")
        return visible

    def action_scroll_by(self, by: int) -> None:
        self._row += by
        self.say("")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        shown = {"whole": not self._whole, "brief": self._whole, "across": self._may_cross}
        return shown.get(action, True)

    @property
    def _may_cross(self) -> bool:
        """Whether a verdict is missing because commands or devices differ, or is there across."""
        if self.result is None or isinstance(self.result, Trouble):
            return False
        study = self.result.study
        told = [each.sentence for of in study.questions for each in of.contrasts]
        return self._crosses or any("--across-" in text for text in (*told, *study.notes))

    def action_across(self) -> None:
        self._crosses = not self._crosses
        across = dict.fromkeys(("across_devices", "across_commands"), True)
        self._how = {**self._given, **(across if self._crosses else {})}
        self.result, self._read, self._sections = None, 0, None
        self._given_up.set()
        self._given_up = read_in_thread("compare", self, self._compare, self._failed)
        self.say("")

    def action_whole(self) -> None:
        self._left[self._whole] = self._row
        self._whole = not self._whole
        # Both begin alike: where one is seen for the first time, the row stays.
        self._row = self._left.get(self._whole, self._row)
        self.refresh_bindings()
        self.say("")

    action_brief = action_whole

    def action_shift(self, by: int) -> None:
        shown = self._sections[1] if self._sections is not None else []
        if by < 0 or any(section.left_out[1] for section in shown):
            self._column = max(0, self._column + by)
        self.say("")

    def action_histories(self) -> None:
        from gpuwatch.tui.compare.answer import history_cases
        from gpuwatch.tui.compare.histories import HistoriesScreen

        if (answer := self._readable_answer()) is not None:
            self.app.push_screen(HistoriesScreen(history_cases(answer), self._curves))

    def action_kernels(self) -> None:
        from gpuwatch.tui.compare.answer import kernel_pairs
        from gpuwatch.tui.compare.kernel_differences import KernelDifferencesScreen

        if (answer := self._readable_answer()) is not None:
            self.app.push_screen(KernelDifferencesScreen(kernel_pairs(answer)))

    def _readable_answer(self) -> Answer | None:
        """The answer; without one, or a readable session, a message is shown."""
        if self.result is None:
            self.say("the sessions are still being read")
        elif isinstance(self.result, Trouble) or not self.result.study.sessions:
            self.say("no session could be read")
        else:
            return self.result
        return None

    def action_export(self) -> None:
        self.export([self._study] if self._study is not None else self.paths, **self._how)

    def say(self, message: str) -> None:
        self._message = clean(message)
        self.paint()

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
        else:
            self.gpuwatch.leave()
