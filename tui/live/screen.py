"""The live screen: one session, during its run or after it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.core.text import clean
from gpuwatch.core.units import NS
from gpuwatch.session.study.progress import place
from gpuwatch.session.study.study_folder import sessions_in
from gpuwatch.tui.feed.feed import REFRESH_SECONDS, Feed, News
from gpuwatch.tui.feed.gauges import STEP_TIME
from gpuwatch.tui.feed.posting import Delivery
from gpuwatch.tui.feed.snapshot import TIMED, Search, Snapshot, Unreadable, View
from gpuwatch.tui.live.page import Page, page_of, panel_columns
from gpuwatch.tui.live.rows import ZOOMS, Options
from gpuwatch.tui.live.time_travel import Stopping, TimeTravel
from gpuwatch.tui.plain.plain import end_lines, title_line
from gpuwatch.tui.widgets.canvas import Clicked
from gpuwatch.tui.widgets.gauge_rows import graph_columns
from gpuwatch.tui.widgets.head_rows import trouble_rows
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.page import KERNELS, Row, SnapshotPage, number_lines

_LONG_NS = 30 * NS
"""The end of what took longer is heard."""
_NO_EARLIER = "no finished run of this command in this environment before it"
_SAID_SECONDS = 4.0
"""How long it is said that there is no earlier run."""
_NOT_OF_MACHINES = ("compare", "compare_alone", "export", "over", "stop")


class LiveScreen(TimeTravel, Stopping):
    """Shows one session with a feed of its own."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", "leave", tooltip="leave; runs go on"),
        Binding("s", "stop", "stop", tooltip="stop the run, after asking"),
        Binding("escape", "gauges", "back", tooltip="back to the gauges"),
        Binding("enter", "over", "home", tooltip="home, to the sessions, after the run"),
        Binding("enter", "open_gpu", "open", tooltip="open the selected GPU"),
        Binding("c", "compare", "compare", tooltip="compare the study, so far while it goes on"),
        Binding("l", "log", "log", tooltip="the log: both streams, search"),
        Binding("p", "processes", "processes", tooltip="who uses the GPUs, and how much"),
        Binding("o", "roofline", "roofline", tooltip="the run under its ceilings: what bounds it"),
        Binding("g", "grid", "GPUs", tooltip="all GPUs, and back to one"),
        Binding("z", "zoom(0)", "zoom", tooltip="length of the history: 10 s, 1 min, 5 min, all"),
        Binding("space", "pause", "pause", tooltip="hold the view, or stop playing"),
        Binding("space", "go_on", "go on", tooltip="on with the view of now"),
        Binding("space", "play", "play", tooltip="play from here"),
        Binding("left", "step(-1)", "earlier", tooltip="a column back; End returns to now"),
        Binding("end", "to_now", "latest", tooltip="to the end, or to now"),
        Binding("m", "metric(1)", "metric", tooltip="pick a metric for a graph; Esc takes it away"),
        Binding("i", "numbers", "numbers", tooltip="each number: method, source, reason"),
        Binding("r", "ranks", "ranks", tooltip="the ranks of the run, and which is slower"),
        Binding("K", "kernels", "kernels", tooltip="which kernels took the time, after the run"),
        Binding("e", "export", "report", tooltip="report of its study, else of the run"),
        Binding("c", "compare_alone", "compare", show=False, tooltip="compare with another run"),
        Binding("b", "earlier", "before", show=False, tooltip="times of the last finished run"),
        Binding("M", "metric(-1)", "metric before", show=False),
        Binding("minus", "zoom(1)", "longer history", show=False),
        Binding("plus,equals_sign", "zoom(-1)", "shorter history", show=False),
        Binding("tab", "select(1)", "next GPU", show=False, priority=True),
        Binding("shift+tab", "select(-1)", "GPU before", show=False, priority=True),
        Binding("down,j", "row(1)", "GPU below", show=False),
        Binding("up,k", "row(-1)", "GPU above", show=False),
        *(Binding(str(digit), f"gpu({digit})", show=False) for digit in range(10)),
        Binding("right", "step(1)", "later", show=False, tooltip="a column of the history on"),
        Binding("shift+left", "step(-10)", "ten columns back", show=False),
        Binding("shift+right", "step(10)", "ten columns on", show=False),
        Binding("left_square_bracket", "event(-1)", "event before", show=False),
        Binding("right_square_bracket", "event(1)", "next event", show=False),
        Binding("home", "start", "start", show=False, tooltip="to the start of the session"),
        Binding("less_than_sign", "speed(-1)", "slower", show=False, tooltip="slower, to 1/4"),
        Binding("greater_than_sign", "speed(1)", "faster", show=False, tooltip="faster, to max"),
        Binding("escape", "back", "back", show=False, tooltip="back, in the end to the sessions"),
    ]
    """The mouse goes to a moment too: on a history, the time axis, and the bar of the session."""

    def __init__(
        self,
        path: Path,
        *,
        follow: bool = False,
        refresh: float = REFRESH_SECONDS,
        now_ns: Callable[[], int] = time.time_ns,
        start: View | None = None,
    ) -> None:
        """``follow``: open the next run of the study even if this run has already ended.

        ``start``: the first view.
        """
        super().__init__()
        self.path = path
        self._refresh = refresh
        self._now_ns = now_ns
        self.snapshot: Snapshot | None = None
        self.trouble: Unreadable | None = None
        self.options = Options()
        self._view = start or View()
        self._live_seconds = self._view.seconds
        """Length of the history while the run goes on."""
        self._over = False
        """Whether the run was shown as one that is over: on its timed steps."""
        self._newest: Snapshot | None = None
        self._follow = follow
        self._waits_for_next = False
        """Whether the screen waits for the next run of the study."""
        self._page = Page([])
        post = Delivery(self, self.take).post
        self._feed = Feed(lambda: path, post, refresh=refresh, now_ns=now_ns)
        self._feed.ask(self._view)

    def on_mount(self) -> None:
        self.paint()
        self._feed.start()

    def on_unmount(self) -> None:
        self._feed.close()

    def _ask(self, **changes: object) -> None:
        if changes.get("at") is not None:
            # Another moment can only be shown if the view is not paused.
            self.options = replace(self.options, paused=False)
        self._view = replace(self._view, **changes)  # type: ignore[arg-type]
        self._feed.ask(self._view)

    def take(self, news: News) -> None:
        """Show a snapshot or an error of the feed."""
        if isinstance(news, Unreadable):
            self.trouble = news
        else:
            self.trouble = None
            self._newest = news
            if news.goes_on:
                self._over = False
            else:
                self.options = replace(self.options, paused=False)
                now = self._view.at is None
                if not self._over and (now or self.snapshot is None):
                    self._over, self._live_seconds = True, self._view.seconds
                    self._ask(seconds=TIMED if now and news.timed else None)
            before = self.snapshot
            stale = before is None or news.view != before.view or before.earlier is Search.GOES_ON
            if stale or not self.options.paused:
                self._show(news)
        if self.on_top:
            self.paint()

    def _show(self, news: Snapshot) -> None:
        """Use a snapshot; if the run has just ended, open the next one of its study."""
        if self._follow and not news.goes_on:
            self.options = replace(self.options, message="")
            self._waits_for_next = not self._stop_asked
            last = news.place is None or news.place.number == news.place.total
            if news.t > _LONG_NS and last and not news.machine_only:
                self.gpuwatch.call(f"{title_line(news)}: {end_lines(news)[0]}")
        self._follow = news.goes_on
        if news.earlier is Search.IN_VAIN:
            news = replace(news, earlier=None)
            self._ask(earlier=False, metric=None)
            self.say(_NO_EARLIER)
            self.set_timer(_SAID_SECONDS, self._unsay)
        self.snapshot = news
        if self._waits_for_next and news.replay is None:
            self._open_next(news)
        self.arrived(news)

    def _open_next(self, news: Snapshot) -> None:
        """Announce the next run, or open it unless another screen is on top."""
        runs = news.upcoming
        if runs is None:
            self._waits_for_next = False
            self.options = replace(self.options, message="")
        elif runs.pending is not None:
            pending = runs.pending
            message = f"next: {clean(pending.label)}, run {pending.place} of {pending.total}"
            message += f", {runs.waits}" if runs.waits else " …"
            self.options = replace(self.options, message=message)
        elif runs.newest is not None and not self.options.paused and self.on_top:
            self._waits_for_next = False
            view = replace(self._view, at=None, playing=False, seconds=self._live_seconds)
            self.app.switch_screen(
                LiveScreen(
                    runs.newest, follow=True, refresh=self._refresh, now_ns=self._now_ns, start=view
                )
            )

    def paint(self) -> None:
        """Draw the snapshot."""
        width, height = self.room
        if height < 1:
            return
        trouble = [] if self.trouble is None else trouble_rows(self.trouble.trouble, width)
        if self.snapshot is not None:
            lines = self._lines(self.snapshot, width, height)
            if trouble:
                lines[-len(trouble) :] = trouble
        else:
            title = Line(width).add(" gpuwatch ", "brand").add(clean(self.path.name), "strong")
            loading = Line(width).add(" reading the session …", "muted")
            lines = [title, Line(width), *(trouble or [loading])]
        self.show(lines)
        self.refresh_keys(self._conditions())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._conditions().get(action, True)

    def _conditions(self) -> dict[str, bool]:
        """Of the actions that apply at times, whether they apply to what is shown now."""
        snapshot = self.snapshot
        goes_on = snapshot is not None and snapshot.goes_on
        over = snapshot is not None and not goes_on
        imported = snapshot is not None and snapshot.imported
        run = not imported and (snapshot is None or not snapshot.machine_only)
        several = snapshot is not None and len(snapshot.choices) > 1
        held = self.options.paused
        return {
            "over": over and not self._view.grid,
            "gauges": self._view.roofline,
            "back": not self._view.roofline,
            "open_gpu": self._view.grid,
            "compare": snapshot is None or snapshot.place is not None,
            "compare_alone": snapshot is not None and over and snapshot.place is None,
            "stop": goes_on and snapshot is not None and not snapshot.machine_only,
            "pause": self._view.playing or (goes_on and not self.travelling and not held),
            "go_on": goes_on and not self.travelling and held,
            "play": (over or self.travelling) and not imported and not self._view.playing,
            "to_now": self.travelling,
            **dict.fromkeys(("step", "start", "event", "speed"), not imported),
            **dict.fromkeys(("zoom", "metric"), not imported and not self._view.roofline),
            "earlier": run and not self._view.roofline,
            "log": run,
            "processes": not imported,
            **dict.fromkeys(("select", "row"), several),
            "ranks": snapshot is not None and snapshot.ranks is not None,
            "grid": snapshot is not None and len(snapshot.gpus) > 1,
        }

    def _lines(self, snapshot: Snapshot, width: int, height: int) -> list[Line]:
        if not self._view.roofline:
            if self._view.grid and self._columns(grid=True) != self._view.columns:
                self._ask_columns()  # the width of the panels has changed
            self._page = page_of(snapshot, self.options, width, height)
            return self._page.lines
        from gpuwatch.tui.live.roofline_rows import roofline_rows

        return roofline_rows(snapshot, self.options, width, height)

    # The view: GPUs, length of the history, metric.

    def on_resize(self) -> None:
        self._ask_columns()

    def _ask_columns(self, **changes: object) -> None:
        """Request ``changes`` of the view, and histories with the columns of the screen."""
        columns = self._columns(grid=bool(changes.get("grid", self._view.grid)))
        self._ask(columns=columns, **changes)

    def _columns(self, *, grid: bool) -> int:
        """Columns of a history on the current screen."""
        width, height = self.room
        if not grid or self.snapshot is None:
            return graph_columns(width)
        return panel_columns(self.snapshot, self.options, width, height)

    def action_select(self, by: int) -> None:
        """Select the next or the previous GPU."""
        if self.snapshot is not None:
            choices, current = self.snapshot.choices, self._view.device or self.snapshot.selected
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
        for columns, rows, gpu in self._page.gpus:
            if message.x in columns and message.y in rows:
                self._ask_columns(device=gpu, grid=False)

    def action_grid(self) -> None:
        """Show all GPUs, or one."""
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

    def action_earlier(self) -> None:
        """Draw the earlier run of the same command over the step times, or not."""
        earlier = not self._view.earlier
        self._ask_columns(earlier=earlier, metric=STEP_TIME if earlier else None, grid=False)

    def action_zoom(self, by: int) -> None:
        """A longer (1) or shorter (-1) history; 0: the next length in turn."""
        if self.snapshot is None:
            return
        now, timed = self._view.seconds, self.snapshot.timed and not self.snapshot.goes_on
        lengths = [
            length
            for length in ZOOMS
            if length in (None, now) or (timed if length == TIMED else length * NS < self._end)
        ]
        at = lengths.index(now) + (by or 1)
        last = len(lengths) - 1
        self._ask(seconds=lengths[at % len(lengths) if by == 0 else max(0, min(last, at))])

    def action_roofline(self) -> None:
        """Show or close the roofline."""
        if self.snapshot is not None:
            self._ask(roofline=not self._view.roofline)
            self.paint()

    action_gauges = action_roofline

    # Other actions of the keys.

    def action_pause(self) -> None:
        """Pause or resume the view of a live run; otherwise play or stop."""
        if self.snapshot is not None and (self.travelling or not self.snapshot.goes_on):
            self.action_play()
            return
        paused = not self.options.paused
        self.options = replace(self.options, paused=paused)
        if not paused and self._newest is not None:
            self.snapshot = self._newest
        self.paint()

    action_go_on = action_pause

    def action_log(self) -> None:
        self.gpuwatch.open_log(self.path, upto_ns=self._view.at)

    def action_processes(self) -> None:
        if self.snapshot is None and self.trouble is not None:
            return  # the session is unreadable
        from gpuwatch.tui.processes.page import ProcessScreen

        self.app.push_screen(ProcessScreen(lambda: self.snapshot))

    def action_numbers(self) -> None:
        self._open_page("every number", number_lines)

    def action_ranks(self) -> None:
        from gpuwatch.tui.live.pages import rank_rows

        self._open_page("ranks", rank_rows)

    def _open_page(self, what: str, rows: Callable[[Snapshot, int], Sequence[Row]]) -> None:
        if self.snapshot is not None:
            self.app.push_screen(SnapshotPage(what, rows, self.snapshot, lambda: self.snapshot))

    def action_kernels(self) -> None:
        from gpuwatch.tui.live.pages import kernel_rows

        self._open_page(KERNELS, kernel_rows)

    def action_compare(self) -> None:
        """Compare the study, if the run has ended or the study has other sessions."""
        over = self.snapshot is not None and not self.snapshot.goes_on
        # Without a plan, what else is in the folder has nothing to do with it.
        studied = place(self.path) is not None
        if studied and (over or len(sessions_in(self.path.parent)) > 1):
            self.gpuwatch.compare_with_study(self.path)
        elif over:
            self.gpuwatch.compare_with_another(self.path)

    action_compare_alone = action_compare

    def action_export(self) -> None:
        """Write the report of the study, else of the run."""
        self.export([self.path])

    def action_over(self) -> None:
        """After the run go to the sessions."""
        self.gpuwatch.go_home(self.path)

    def action_back(self) -> None:
        if self._view.grid:
            self._ask_columns(grid=False)
        elif self._view.metric is not None:
            self._ask(metric=None, earlier=False)
        elif self.options.message and not self.travelling:
            self.say("")
        elif self.travelling:
            self.action_to_now()
        else:
            self.gpuwatch.go_home(self.path)

    def _unsay(self) -> None:
        if self.options.message == _NO_EARLIER:
            self.say("")

    def say(self, message: str) -> None:
        self.options = replace(self.options, message=message)
        if self.on_top:
            self.paint()


class MachineScreen(LiveScreen):
    """One of the machines. Its recording is removed when the machines are no longer watched."""

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action not in _NOT_OF_MACHINES and super().check_action(action, parameters)

    def action_leave(self) -> None:
        self.app.exit(0)
