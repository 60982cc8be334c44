"""What a person looks at on the live screen: which GPUs, how long a history, which metric."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.live.gauge_rows import graph_columns
from gpuwatch.tui.live.page import Drawn, panel_columns
from gpuwatch.tui.live.rows import ZOOMS, Options
from gpuwatch.tui.widgets.canvas import Clicked
from gpuwatch.tui.widgets.canvas_screen import CanvasScreen


class Views(CanvasScreen):
    """The part of the live screen that chooses what is drawn."""

    snapshot: Snapshot | None
    options: Options
    _view: View
    _drawn: Drawn

    @abstractmethod
    def _ask(self, **changes: object) -> None:
        """Ask the feed for another view."""

    @abstractmethod
    def _say(self, message: str) -> None:
        """Show a message in the foot."""

    def on_resize(self) -> None:
        self._ask_columns()

    def _ask_columns(self, **changes: object) -> None:
        """Ask for histories of the length that is drawn, and for ``changes`` with them."""
        columns = self._columns(grid=bool(changes.get("grid", self._view.grid)))
        self._ask(columns=columns, **changes)

    def _columns(self, *, grid: bool) -> int:
        """Of each history on the screen as it is laid out now."""
        width, height = self.app.size
        if not grid or self.snapshot is None:
            return graph_columns(width)
        return panel_columns(self.snapshot, self.options, width, height)

    def _fit_panels(self) -> None:
        """A row more above the panels may lay them out anew: ask for histories of their width."""
        if self._view.grid and self._columns(grid=True) != self._view.columns:
            self._ask_columns()

    def action_select(self, by: int) -> None:
        """The next GPU, or the one before."""
        if self.snapshot is None:
            return
        choices = self.snapshot.choices
        if len(choices) < 2:
            return
        current = self._view.device or self.snapshot.selected
        place = choices.index(current) if current in choices else 0
        self._ask(device=choices[(place + by) % len(choices)])

    def action_row(self, by: int) -> None:
        """The GPU below or above: of a grid the one in the next row."""
        rows = [ys.start for _, ys, _ in self._drawn.gpus]
        self.action_select(by * (rows.count(rows[0]) if self._view.grid and rows else 1))

    def action_gpu(self, number: int) -> None:
        """The GPU of that number."""
        if self.snapshot and any(gpu.row.id == f"gpu{number}" for gpu in self.snapshot.gpus):
            self._ask(device=f"gpu{number}")

    def on_clicked(self, message: Clicked) -> None:
        """A GPU that is clicked is opened."""
        gpu = self._drawn.gpu_at(message.x, message.y)
        if gpu is not None:
            self._ask_columns(device=gpu, grid=False)

    def action_grid(self) -> None:
        """All GPUs, and back to one."""
        if self.snapshot is not None and len(self.snapshot.gpus) > 1:
            self._ask_columns(grid=not self._view.grid, roofline=False)

    def action_metric(self, by: int) -> None:
        """The next metric in the graph that can be picked; behind the last one: none."""
        if self.snapshot is None or not self.snapshot.metrics:
            return
        keys = [None, *self.snapshot.metrics]
        place = keys.index(self._view.metric) if self._view.metric in keys else 0
        self._ask_columns(metric=keys[(place + by) % len(keys)], grid=False)

    def action_zoom(self, by: int) -> None:
        """The next length in turn for 0, else a longer (1) or shorter (-1) one."""
        count = len(ZOOMS)
        if by == 0:
            self._zoom_to((self.options.zoom + 1) % count)
        else:
            self._zoom_to(min(count - 1, max(0, self.options.zoom + by)))

    def _zoom_to(self, index: int) -> None:
        self.options = replace(self.options, zoom=index)
        self._ask(seconds=ZOOMS[index][0])

    def action_roofline(self) -> None:
        """The roofline, and back."""
        if self.snapshot is not None:
            self._ask(roofline=not self._view.roofline)
            self.paint()

    def _narrow(self) -> bool:
        """One level back among what is looked at; whether there was one."""
        if self._view.roofline:
            self.action_roofline()
        elif self._view.grid:
            self._ask_columns(grid=False)
        elif self._view.metric is not None:
            self._ask(metric=None)
        else:
            return False
        return True
