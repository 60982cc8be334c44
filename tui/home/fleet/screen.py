"""The home screen of several machines: ``gpuwatch --on PLACE --on PLACE``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.widget import Widget

from gpuwatch.analysis.summary.listed_item import GOING_ON
from gpuwatch.core.key_values import parse
from gpuwatch.core.text import clean
from gpuwatch.session.machine_now import Now
from gpuwatch.tui.feed.feed import REFRESH_SECONDS
from gpuwatch.tui.feed.posting import Delivery
from gpuwatch.tui.home.base import Home
from gpuwatch.tui.home.devices import alert_rows, gpu_heading, gpu_layout
from gpuwatch.tui.home.fleet.reader import (
    FleetReader,
    Host,
    first_shown,
    head_row,
    host_rows,
    matching,
)
from gpuwatch.tui.home.list import Edit
from gpuwatch.tui.widgets.canvas import Canvas, Scrolled
from gpuwatch.tui.widgets.line import Line, fit

_FIND = "find machines"
_LEAST_MACHINES = 3
_LONGEST = 30
"""Cells of a machine's name above its processes."""


class FleetScreen(Home):
    """All machines, each with its GPUs; the processes of the selected one; the sessions of here."""

    def __init__(self, now: Now, *, refresh: float = REFRESH_SECONDS) -> None:
        """``now`` tells of the machines; ``refresh``: seconds between two pictures."""
        super().__init__()
        self._hosts: tuple[Host, ...] = ()
        self._place: str | None = None
        """The selected machine."""
        self._first = 0
        self._query = ""
        self._drawn: list[str] = []
        """The machine on each row of the table; empty: none."""
        self._shown: frozenset[str] = frozenset()
        self._reader = FleetReader(now, Delivery(self, self.take).post, refresh=refresh)

    def new_top(self) -> Canvas:
        self._machines = MachineTable(self, ascii=self.gpuwatch.look.ascii)
        return self._machines

    @property
    def lists(self) -> tuple[Widget, ...]:
        return (self._machines, *super().lists)

    @property
    def whose(self) -> str:
        return fit(clean(self._place or ""), _LONGEST)

    @property
    def place_of_runs(self) -> str:
        """The selected machine; in a job that runs already nothing is started."""
        place = self._place or ""
        return "" if any(option.key == "job" for option in parse(place)) else place

    def on_mount(self) -> None:
        self._machines.focus()
        self._reader.start()

    def on_unmount(self) -> None:
        self._reader.close()

    def on_descendant_focus(self) -> None:
        self.paint()

    def on_screen_resume(self) -> None:
        self.action_refresh()

    def take(self, hosts: tuple[Host, ...]) -> None:
        """Show what is known of the machines now."""
        self._hosts = hosts
        self._select(self._at)
        if self.on_top:
            self.look_around()
            self.paint()

    @property
    def _matching(self) -> Sequence[Host]:
        """The machines that the filter lets through."""
        return matching(self._hosts, self._query)

    @property
    def _at(self) -> int:
        """The selected machine's place in the list."""
        places = [host.place for host in self._matching]
        return places.index(self._place) if self._place in places else 0

    def _select(self, at: int) -> None:
        hosts = self._matching
        host = hosts[min(len(hosts) - 1, max(0, at))] if hosts else None
        self._place = host.place if host is not None else None
        self.state = replace(
            self.state,
            devices=host.snapshot if host is not None else None,
            devices_trouble=host.trouble if host is not None else None,
        )

    def top_rows(self, width: int, most: int) -> list[Line]:
        told = [f"{host.place}: {text}" for host in self._hosts for text in host.alerts]
        alerts = alert_rows(told, width, self.most_alerts, "open the machine")
        above = 2 + len(alerts)
        space = max(_LEAST_MACHINES, most - above)
        hosts, at = self._matching, self._at
        self._first = first_shown(hosts, at, self._first, space)
        rows: list[Line] = []
        self._drawn = [""] * above
        for n in range(self._first, len(hosts)):
            if len(rows) >= space:
                break
            drawn = host_rows(hosts[n], n == at, width)
            if n == at and self._machines.has_focus:
                drawn[0] = drawn[0].painted("select")
            rows += drawn
            self._drawn += [hosts[n].place] * len(drawn)
        if (cut := len(rows) - space) > 0:
            last = fit(clean(self._drawn[-1]), _LONGEST)
            rows[space - 1] = Line(width).add(f" {cut + 1} more rows of {last}", "muted")
        if not hosts and self._query:
            rows.append(Line(width).add(f" no machine matches {self._query}: Esc shows all"))
        self._shown = frozenset(self._drawn[above : above + space])
        running = sum(entry.status in GOING_ON for entry in self.state.entries or ())
        hidden = len(hosts) - len(self._shown)
        head = head_row(self._hosts, self._query, hidden, running, width)
        layout = gpu_layout(width, bandwidth=False, history=False)
        return [head, *alerts, gpu_heading(layout, width), *rows[:space]]

    def look_at(self, width: int) -> None:
        self._reader.look_at(self._shown)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "filter" and self._machines.has_focus:
            return self.state.edit is None
        return super().check_action(action, parameters)

    def action_move_machine(self, by: int) -> None:
        self._select(self._at + by)
        self.paint()

    def action_open_machine(self) -> None:
        """The live screen of the selected machine."""
        session = next((host.session for host in self._hosts if host.place == self._place), None)
        if session is not None and session.exists():
            self.gpuwatch.open_machine(session)

    def choose(self, y: int, *, opens: bool) -> None:
        """Select the machine on row ``y`` of the table, from 0."""
        place = self._drawn[y] if y < len(self._drawn) else ""
        if place:
            self._select([host.place for host in self._matching].index(place))
            self.paint()
            if opens:
                self.action_open_machine()

    def action_filter(self) -> None:
        if self._machines.has_focus:
            self.write(Edit(_FIND, self._query))
        else:
            super().action_filter()

    def narrow(self, query: str) -> None:
        if self.state.edit is not None and self.state.edit.what == _FIND:
            self._query = query
            self._select(self._at)
        super().narrow(query)

    def action_back(self) -> None:
        if self._query and not self.state.marked:
            self._query = ""
            self.paint()
        else:
            super().action_back()


class MachineTable(Canvas, can_focus=True):
    """Drawn by the screen; what its keys do is the screen's as well."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "screen.open_machine", "open", tooltip="open the machine: histories"),
        Binding("down,j", "screen.move_machine(1)", "machine below", show=False),
        Binding("up,k", "screen.move_machine(-1)", "machine above", show=False),
        Binding("pagedown", "screen.move_machine(10)", "ten machines down", show=False),
        Binding("pageup", "screen.move_machine(-10)", "ten machines up", show=False),
        Binding("home", "screen.move_machine(-100000)", "first machine", show=False),
        Binding("end", "screen.move_machine(100000)", "last machine", show=False),
    ]

    def __init__(self, fleet: FleetScreen, *, ascii: bool) -> None:
        super().__init__(ascii=ascii, id="top")
        self._fleet = fleet

    def on_click(self, event: events.Click) -> None:
        """Select the row; a second click opens it."""
        event.stop()
        self._fleet.choose(event.y, opens=event.chain == 2)

    def on_scrolled(self, message: Scrolled) -> None:
        message.stop()
        self._fleet.action_move_machine(1 if message.by > 0 else -1)
