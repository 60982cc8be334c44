"""The view of the live screen: GPUs, length of the history, metric."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.live.gauge_rows import graph_columns
from gpuwatch.tui.live.page import Page, panel_columns
from gpuwatch.tui.live.rows import ZOOMS, Options
from gpuwatch.tui.widgets.canvas import Clicked
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen


class Views(CanvasScreen):
    """The part of the live screen that changes the view."""

    snapshot: Snapshot | None
    options: Options
    _view: View
    _page: Page

    @abstractmethod
    def _ask(self, **changes: object) -> None:
        """Request another view from the feed."""

    @abstractmethod
    def _say(self, message: str) -> None:
        """Show a message in the last rows."""

    def on_resize(self) -> None:
        self._ask_columns()

    def _ask_columns(self, **changes: object) -> None:
        """Request ``changes`` of the view, and histories with the columns of the screen."""
        columns = self._columns(grid=bool(changes.get("grid", self._view.grid)))
        self._ask(columns=columns, **changes)

    def _columns(self, *, grid: bool) -> int:
        """Columns of a history on the current screen."""
        width, height = self.app.size
        if not grid or self.snapshot is None:
            return graph_columns(width)
        return panel_columns(self.snapshot, self.options, width, height)

    def _fit_panels(self) -> None:
        """Request other columns if the width of the panels has changed."""
        if self._view.grid and self._columns(grid=True) != self._view.columns:
            self._ask_columns()

    def action_select(self, by: int) -> None:
        """Select the next or the previous GPU."""
        if self.snapshot is None:
            return
        choices = self.snapshot.choices
        if len(choices) < 2:
            return
        current = self._view.device or self.snapshot.selected
        index = choices.index(current) if current in choices else 0
        self._ask(device=choices[(index + by) % len(choices)])

    def action_row(self, by: int) -> None:
        """Select the GPU below or above."""
        rows = [ys.start for _, ys, _ in self._page.gpus]
        self.action_select(by * (rows.count(rows[0]) if self._view.grid and rows else 1))

    def action_gpu(self, number: int) -> None:
        """Select the GPU with that number."""
        if self.snapshot and any(gpu.row.id == f"gpu{number}" for gpu in self.snapshot.gpus):
            self._ask(device=f"gpu{number}")

    def on_clicked(self, message: Clicked) -> None:
        """Open the clicked GPU."""
        gpu = self._page.gpu_at(message.x, message.y)
        if gpu is not None:
            self._ask_columns(device=gpu, grid=False)

    def action_grid(self) -> None:
        """Show all GPUs, or one."""
        if self.snapshot is not None and len(self.snapshot.gpus) > 1:
            self._ask_columns(grid=not self._view.grid, roofline=False)

    def action_open_gpu(self) -> None:
        """Show the selected GPU of the grid alone."""
        self._ask_columns(grid=False)

    def action_metric(self, by: int) -> None:
        """Pick the next metric; none after the last one."""
        if self.snapshot is None or not self.snapshot.metrics:
            return
        keys = [None, *self.snapshot.metrics]
        index = keys.index(self._view.metric) if self._view.metric in keys else 0
        self._ask_columns(metric=keys[(index + by) % len(keys)], grid=False)

    def action_zoom(self, by: int) -> None:
        """A longer (1) or shorter (-1) history; 0: the next length in turn."""
        count = len(ZOOMS)
        if by == 0:
            self._zoom_to((self.options.zoom + 1) % count)
        else:
            self._zoom_to(min(count - 1, max(0, self.options.zoom + by)))

    def _zoom_to(self, index: int) -> None:
        self.options = replace(self.options, zoom=index)
        self._ask(seconds=ZOOMS[index][0])

    def action_roofline(self) -> None:
        """Show or close the roofline."""
        if self.snapshot is not None:
            self._ask(roofline=not self._view.roofline)
            self.paint()

    def action_gauges(self) -> None:
        """Close the roofline."""
        self.action_roofline()

    def _close_view(self) -> bool:
        """Close the grid or metric; returns whether one was open."""
        if self._view.grid:
            self._ask_columns(grid=False)
        elif self._view.metric is not None:
            self._ask(metric=None)
        else:
            return False
        return True
