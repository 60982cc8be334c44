"""The page of histories of the compared runs; a thread reads them, each is drawn once read."""

from __future__ import annotations

from collections.abc import MutableMapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.tui.feed.feed import trouble_of
from gpuwatch.tui.feed.posting import Post, read_in_thread
from gpuwatch.tui.feed.snapshot import Trouble
from gpuwatch.tui.widgets.base_screen import CanvasScreen
from gpuwatch.tui.widgets.line import Line

if TYPE_CHECKING:
    from gpuwatch.tui.compare.curves import Curves, Metric
    from gpuwatch.tui.compare.history_rows import Series, View


@dataclass(frozen=True)
class Group:
    """The runs of one line: a single run, or the judged runs of a cell."""

    label: str
    paths: tuple[Path, ...]
    letter: str = ""


@dataclass(frozen=True)
class Case:
    """The lines of one graph; the first group is the baseline."""

    label: str
    groups: tuple[Group, ...]


CurveCache = MutableMapping[Path, "Curves"]
"""Curves read so far; the opener keeps them for the next time."""


class HistoriesScreen(CanvasScreen):
    """Shows one metric of the runs of a case."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,h", "back", "back"),
        Binding("m", "metric(1)", "metric", tooltip="the next metric"),
        Binding("x", "align", "time or steps", tooltip="by time since the first step, or by steps"),
        Binding("z", "close_up", "scale", tooltip="scale from zero, or over the values alone"),
        Binding("tab", "case(1)", "case", tooltip="the next case, where there are several"),
        Binding("M", "metric(-1)", "metric before", show=False),
        Binding("right", "shift(1)", "next runs", show=False),
        Binding("left", "shift(-1)", "runs before", show=False),
        Binding("shift+tab", "case(-1)", "case before", show=False),
    ]

    def __init__(self, cases: Sequence[Case], cache: CurveCache) -> None:
        """``cache``: the curves read before; new ones are added."""
        super().__init__()
        self._cases = list(cases)
        self._cache = cache
        self._case = 0
        self._first = 0
        self._view: View | None = None
        self._picked = False
        self._trouble: Trouble | None = None

    def on_mount(self) -> None:
        read_in_thread("histories", self, self._read, self._failed)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "case" or len(self._cases) > 1

    def _read(self, post: Post) -> None:
        """In the thread: read the sessions one by one, in the order of the cases."""
        from gpuwatch.analysis.samples.gauges import points_for
        from gpuwatch.tui.compare.curves import Curves, read_curves

        paths = [path for case in self._cases for group in case.groups for path in group.paths]
        points = points_for(len(paths))
        for path in dict.fromkeys(paths):
            if path in self._cache:
                continue
            try:
                curves = read_curves(path, points)
            except Exception as error:
                curves = Curves(path, {}, {}, False, why=trouble_of(error).text)
            post(self._take, curves)

    def _take(self, curves: Curves) -> None:
        self._cache[curves.path] = curves
        self.paint()

    def _failed(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self.paint()

    def _series(self) -> list[Series]:
        from gpuwatch.tui.compare.curves import Curves
        from gpuwatch.tui.compare.history_rows import Series

        curves = dict(self._cache)
        groups = self._cases[self._case].groups
        if self._trouble is not None:
            for path in (path for group in groups for path in group.paths):
                curves.setdefault(path, Curves(path, {}, {}, False, why=self._trouble.text))
        return [
            Series(
                group.label,
                tuple(curves[path] for path in group.paths if path in curves),
                len(group.paths),
                group.letter,
            )
            for group in groups
        ]

    def _metrics(self) -> list[Metric]:
        from gpuwatch.tui.compare.history_rows import known_metrics

        return known_metrics(self._series())

    def _current_view(self) -> View:
        """The view to draw; until a metric is picked, that is the first with values."""
        from gpuwatch.tui.compare.history_rows import View

        view = self._view or View(ascii=self.gpuwatch.look.ascii)
        self._view = view if self._picked else replace(view, metric=self._metrics()[0])
        return self._view

    def paint(self) -> None:
        from gpuwatch.tui.compare.history_rows import MOST, history_rows

        width, height = self.room
        if height < 3:
            return
        view, series = self._current_view(), self._series()
        hidden = max(0, len(series) - MOST)
        self._first = max(0, min(self._first, hidden))
        shown = [*series[:1], *series[1 + self._first : MOST + self._first]]
        title = Line(width).add(" gpuwatch ", "brand").add("compare: histories", "strong")
        case = self._cases[self._case]
        title.add(f"  {clean(case.label)}", "text")
        if len(self._cases) > 1:
            title.add(f"  case {self._case + 1} of {len(self._cases)}", "muted")
        unread = sum(each.count - len(each.runs) for each in series)
        if unread:
            title.add(f"  reading {unread} more …", "warn")
        lines = [title, *history_rows(shown, view, width, height - 1, self._first)]
        metrics = self._metrics()
        place = [f"←→ {hidden} more"] if hidden else []
        if view.metric in metrics:
            place.append(f"metric {metrics.index(view.metric) + 1} of {len(metrics)}")
        text = f"{'  '.join(place)} "
        if len(text) < title.left:
            title.end(text, "muted")
        self.show(lines)

    def action_metric(self, by: int) -> None:
        metrics, view = self._metrics(), self._current_view()
        # A metric without values counts as the one before the first.
        place = metrics.index(view.metric) if view.metric in metrics else min(0, -by)
        self._picked = True
        self._view = replace(view, metric=metrics[(place + by) % len(metrics)])
        self.paint()

    def action_align(self) -> None:
        self._view = replace(self._current_view(), by_step=not self._current_view().by_step)
        self.paint()

    def action_close_up(self) -> None:
        self._view = replace(self._current_view(), close_up=not self._current_view().close_up)
        self.paint()

    def action_shift(self, by: int) -> None:
        self._first += by
        self.paint()

    def action_case(self, by: int) -> None:
        self._case = (self._case + by) % len(self._cases)
        self._first = 0
        self.paint()

    def action_back(self) -> None:
        self.app.pop_screen()
