"""The live screen: one session, while it grows or when it is over."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.session.progress import place
from gpuwatch.session.study import sessions_in
from gpuwatch.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.arrived import Arrived
from gpuwatch.tui.canvas import Canvas
from gpuwatch.tui.feed import REFRESH_SECONDS, Feed
from gpuwatch.tui.gauge_rows import graph_columns
from gpuwatch.tui.head_rows import trouble_rows
from gpuwatch.tui.keys import keys_row
from gpuwatch.tui.line import Line
from gpuwatch.tui.live_keys import HELP, live_keys
from gpuwatch.tui.live_rows import ZOOMS, Options, live_rows
from gpuwatch.tui.narrow import send_only_changes
from gpuwatch.tui.next_run import ahead, goes_on
from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.snapshot import Snapshot, Unreadable, View
from gpuwatch.tui.words import stop_question

if TYPE_CHECKING:
    from textual.timer import Timer
    from textual.worker import Worker

_LOOK_SECONDS = 0.5
"""Between two looks for the next run of a study."""


class LiveScreen(PaintedScreen):
    """Shows one session through a feed of its own."""

    KEYS = HELP
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("s", "stop", show=False),
        Binding("y", "answer(True)", show=False),
        Binding("n", "answer(False)", show=False),
        Binding("tab,down,right,j", "select(1)", show=False, priority=True),
        Binding("shift+tab,up,left,k", "select(-1)", show=False, priority=True),
        Binding("space", "pause", show=False),
        Binding("z", "zoom(0)", show=False),
        Binding("minus", "zoom(1)", show=False),
        Binding("plus,equals_sign", "zoom(-1)", show=False),
        Binding("l", "log", show=False),
        Binding("i", "numbers", show=False),
        Binding("o", "roofline", show=False),
        Binding("K", "kernels", show=False),
        Binding("c", "compare", show=False),
        Binding("enter", "over", show=False),
        Binding("escape", "back", show=False),
        *(Binding(str(digit), f"gpu({digit})", show=False) for digit in range(10)),
    ]

    def __init__(
        self,
        path: Path,
        *,
        follow: bool = False,
        refresh: float = REFRESH_SECONDS,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """``follow``: go on with the next run of the study also where this one is over already."""
        super().__init__()
        self.path = path
        self.snapshot: Snapshot | None = None
        self.trouble: Unreadable | None = None
        self.options = Options()
        self._view = View()
        self._asking = False
        self._held: Snapshot | None = None
        self._watched = follow
        self._stop_asked = False
        """The stop command was started, and has not failed."""
        self._stopping: Worker[None] | None = None
        self._leaving = False
        self._next: Timer | None = None
        self._feed = Feed(lambda: path, self._post, refresh=refresh, now_ns=now_ns)

    def on_mount(self) -> None:
        send_only_changes(self)
        self.paint()
        self._feed.start()

    def on_unmount(self) -> None:
        self._feed.close()

    def on_resize(self) -> None:
        self._ask(columns=graph_columns(self.app.size.width))

    def _post(self, news: Snapshot | Unreadable) -> None:
        self.post_message(Arrived(news))

    def _ask(self, **changes: object) -> None:
        self._view = replace(self._view, **changes)  # type: ignore[arg-type]
        self._feed.ask(self._view)

    def on_arrived(self, message: Arrived) -> None:
        news = message.news
        if isinstance(news, Unreadable):
            self.trouble = news
        else:
            self.trouble = None
            if self.snapshot is None and not news.status.live:
                self._zoom_to(len(ZOOMS) - 1)
            self._held = news
            if not self.options.paused or self.snapshot is None or news.view != self.snapshot.view:
                if self._watched and not news.status.live:
                    self._asking = False
                    self.options = replace(self.options, message="")
                    self._await_next()
                self._watched = news.status.live
                self.snapshot = news
        self.paint()

    def _await_next(self) -> None:
        """When a run that was watched has ended: go on to the next one of its study."""
        if not self._stop_asked and ahead(self.path) and goes_on(self.path.parent):
            self._next = self.set_interval(_LOOK_SECONDS, self._to_next)
            self._to_next()

    def _to_next(self) -> None:
        """Look for the next run; not while another screen is over this one."""
        if self._next is None or not self.on_top:
            return
        found = ahead(self.path)
        if found is None or not goes_on(self.path.parent):
            self._stay()
        elif found.awaited is not None:
            coming = found.awaited
            self._say(f"next: {clean(coming.label)}, run {coming.place} of {coming.total} …")
        elif found.newest is not None and not self.options.paused:
            self._stay()
            self.app.switch_screen(LiveScreen(found.newest, follow=True))

    def _stay(self) -> None:
        if self._next is not None:
            self._next.stop()
            self._next = None
            self._say("")

    def paint(self) -> None:
        """Draw what is known."""
        canvas = self.query_one(Canvas)
        width, height = self.app.size
        if height < 2:
            return
        if self.snapshot is not None:
            lines = self._drawn(self.snapshot, width, height - 1)
            if self.trouble is not None:
                lines[-1:] = [Line(width).add(f" ✗ {self.trouble.trouble.text}", "bad")]
        else:
            lines = self._waiting(width)
        lines += [Line(width) for _ in range(height - 1 - len(lines))]
        roofline = self._view.roofline
        keys = live_keys(self.snapshot, self.options, asking=self._asking, roofline=roofline)
        lines.append(keys_row(keys, width))
        canvas.show(lines)

    def _drawn(self, snapshot: Snapshot, width: int, height: int) -> list[Line]:
        if not self._view.roofline:
            return live_rows(snapshot, self.options, width, height)
        from gpuwatch.tui.roofline_rows import roofline_rows

        return roofline_rows(snapshot, self.options, width, height)

    def _waiting(self, width: int) -> list[Line]:
        title = Line(width).add(" gpuwatch ", "brand").add(clean(self.path.name), "strong")
        if self.trouble is None:
            return [title, Line(width), Line(width).add(" reading the session …", "muted")]
        rows = [title, Line(width)]
        return rows + trouble_rows(self.trouble.trouble, width)

    # What keys do.

    def action_leave(self) -> None:
        """Leave; where a stop was asked for, once that is done or on the second time."""
        worker = self._stopping
        if worker is not None and worker.is_running and not self._leaving:
            self._leaving = True
            self._say("stopping, then leaving …; once more leaves now")
            return
        self.gpuwatch.leave(self.path, self.snapshot, stopped=self._stop_asked)

    def action_stop(self) -> None:
        if self.snapshot is None or not self.snapshot.status.live:
            self._say("the run is over already")
            return
        self._asking = True
        self._say(stop_question(self.snapshot.place, "n"))

    def action_answer(self, yes: bool) -> None:
        if not self._asking:
            return
        self._asking = False
        if not yes:
            self._say("")
            return
        self._say("stopping the run …")
        self._stop_asked = True
        self._stopping = self.run_worker(self._stop(), exclusive=True)

    async def _stop(self) -> None:
        known = self.snapshot.place if self.snapshot is not None else None
        what = self.path.parent if known is not None and known.to_come else self.path
        outcome = await commands.run("stop", str(what), outlives=True)
        self._stop_asked = outcome.good
        self._say("" if outcome.good else f"could not stop it: {outcome.complaint}")
        if self._leaving and outcome.good:
            self.gpuwatch.leave(self.path, self.snapshot, stopped=True)
        self._leaving = False

    def action_select(self, by: int) -> None:
        if self.snapshot is None:
            return
        gpus = [gpu.row.id for gpu in self.snapshot.gpus]
        if len(gpus) < 2:
            return
        current = self._view.device or self.snapshot.selected
        place = gpus.index(current) if current in gpus else 0
        self._ask(device=gpus[(place + by) % len(gpus)])

    def action_gpu(self, number: int) -> None:
        if self.snapshot and any(gpu.row.id == f"gpu{number}" for gpu in self.snapshot.gpus):
            self._ask(device=f"gpu{number}")

    def action_pause(self) -> None:
        paused = not self.options.paused
        self.options = replace(self.options, paused=paused)
        if not paused and self._held is not None:
            self.snapshot = self._held
        self.paint()

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

    def action_log(self) -> None:
        self.options = replace(self.options, big_log=not self.options.big_log)
        self.paint()

    def action_numbers(self) -> None:
        if self.snapshot is not None:
            from gpuwatch.tui.numbers import number_lines
            from gpuwatch.tui.page import PageScreen

            shown = self.snapshot
            page = PageScreen("every number", lambda width: number_lines(shown, width))
            self.app.push_screen(page)

    def action_roofline(self) -> None:
        if self.snapshot is not None:
            self._ask(roofline=not self._view.roofline)
            self.paint()

    def action_kernels(self) -> None:
        from gpuwatch.tui.kernels import KernelsScreen

        self.app.push_screen(KernelsScreen(self.path))

    def action_compare(self) -> None:
        """Compare the study: when the run is over, or so far where others of it came before."""
        over = self.snapshot is not None and not self.snapshot.status.live
        if over or (len(sessions_in(self.path.parent)) > 1 and place(self.path) is not None):
            self.gpuwatch.compare_with_study(self.path)

    def action_over(self) -> None:
        if self.snapshot is not None and not self.snapshot.status.live:
            self.gpuwatch.go_home(self.path)

    def action_back(self) -> None:
        if self._asking:
            self.action_answer(False)
        elif self._view.roofline:
            self.action_roofline()
        else:
            self.gpuwatch.go_home(self.path)

    def _say(self, message: str) -> None:
        self.options = replace(self.options, message=message)
        self.paint()
