"""The home screen: devices now, the sessions, the way to a new run."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.session.progress import place
from gpuwatch.session.status import State
from gpuwatch.tui import commands
from gpuwatch.tui.arrived import Arrived
from gpuwatch.tui.canvas import Canvas
from gpuwatch.tui.devices_now import DevicesNow
from gpuwatch.tui.home_rows import HomeState, home_rows
from gpuwatch.tui.keys import keys_row
from gpuwatch.tui.narrow import send_only_changes
from gpuwatch.tui.painted import PaintedScreen
from gpuwatch.tui.snapshot import Snapshot, Unreadable
from gpuwatch.tui.study_places import StudyPlaces
from gpuwatch.tui.words import lost_question, stop_question

HELP: tuple[tuple[str, str], ...] = (
    ("n", "start a run"),
    ("Enter", "open the session: live if it runs, else its replay"),
    ("↑ ↓ PgUp PgDn", "another session"),
    ("Space", "mark the session for a comparison"),
    ("c", "compare the marked sessions with the first that has a value"),
    ("", "(of one study in blocks: with its plan's first environment);"),
    ("", "without a mark: all runs of the session's study"),
    ("a", "record on: take up a run whose recorder died"),
    ("s", "stop the run, after asking"),
    ("r", "read the list again"),
    ("t", "colours: dark, light, the terminal's own"),
    ("q", "leave; runs go on"),
    ("?", "this page"),
)
REFRESH_SECONDS = 10.0
_STOPPABLE = frozenset(
    state.value for state in (State.QUEUED, State.STARTING, State.RUNNING, State.LOST)
)


class HomeScreen(PaintedScreen):
    """What is there, and what can be done."""

    KEYS = HELP
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "leave", show=False),
        Binding("n", "new", show=False),
        Binding("r", "refresh", show=False),
        Binding("c", "compare", show=False),
        Binding("a", "take_up", show=False),
        Binding("s", "stop", show=False),
        Binding("y", "answer(True)", show=False),
        Binding("space", "mark", show=False),
        Binding("enter", "open", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("pagedown", "move(10)", show=False),
        Binding("pageup", "move(-10)", show=False),
        Binding("home", "move(-1000000)", show=False),
        Binding("end", "move(1000000)", show=False),
        Binding("escape", "unmark", show=False),
    ]

    def __init__(self, *, refresh: float = 1.0) -> None:
        """``refresh``: seconds between two pictures of the devices."""
        super().__init__()
        self._every = refresh
        self.state = HomeState()
        self._wanted: Path | None = None
        self._stopping: Path | None = None
        self._devices: DevicesNow | None = None
        self._places = StudyPlaces()

    def on_mount(self) -> None:
        send_only_changes(self)
        self.set_interval(REFRESH_SECONDS, self._refresh_if_shown)

    def on_unmount(self) -> None:
        devices, self._devices = self._devices, None
        if devices is not None:
            devices.close()

    def on_screen_resume(self) -> None:
        if self._devices is None:
            self._devices = DevicesNow(
                lambda news: void(self.post_message(Arrived(news))), refresh=self._every
            )
            self._devices.start()
        self.action_refresh()

    def on_screen_suspend(self) -> None:
        # The recorder takes a moment to end; the next screen need not wait for it.
        devices, self._devices = self._devices, None
        if devices is not None:
            threading.Thread(target=devices.close, name="devices-end").start()

    def remember(self, current: Path | None, marked: Sequence[Path], message: str) -> None:
        """The session to stand on, marks and a word that another screen leaves for this one."""
        self._wanted = current
        if marked:
            self.state = replace(self.state, marked=tuple(marked))
        self.state = replace(self.state, message=message)

    def on_arrived(self, message: Arrived) -> None:
        news = message.news
        if isinstance(news, Snapshot):
            self.state = replace(self.state, devices=news, devices_trouble=None)
        elif isinstance(news, Unreadable) and self.state.devices is None:
            self.state = replace(self.state, devices_trouble=news.trouble.text)
        self.paint()

    def paint(self) -> None:
        width, height = self.app.size
        if height < 2:
            return
        lines = home_rows(self.state, width, height - 1)
        lines.append(keys_row(self._keys(), width))
        self.query_one(Canvas).show(lines)

    def _keys(self) -> list[tuple[str, str]]:
        if self._stopping is not None:
            return [("y", "yes"), ("Esc", "no")]
        keys = [("n", "new run")]
        current = self._current()
        if current is not None and current.status == State.LOST.value:
            keys.append(("a", "record on"))
        if current is not None and current.status in _STOPPABLE:
            keys.append(("s", "stop"))
        if self.state.entries:
            keys += [("Enter", "open"), ("↑↓", "choose"), ("Space", "mark")]
            keys.append(("c", "compare"))
        return [*keys, ("q", "leave"), ("?", "help"), ("r", "refresh")]

    def _refresh_if_shown(self) -> None:
        if self.on_top:
            self.action_refresh()

    def action_refresh(self) -> None:
        self.run_worker(self._read_list(), exclusive=True, group="list")

    async def _read_list(self) -> None:
        entries, complaint = await commands.sessions()
        places = await asyncio.to_thread(self._places.of, [item.path for item in entries])
        standing = self._current()
        wanted = self._wanted or (standing.path if standing else None)
        if complaint is not None and self.state.entries:
            self._say(complaint)
            return
        paths = [item.path for item in entries]
        listed = {path.resolve(): path for path in paths}
        wanted = listed.get(wanted.resolve()) if wanted else None
        cursor = paths.index(wanted) if wanted else 0
        self._wanted = None
        # A session from another folder is in no list and can be compared all the same.
        marked = tuple(
            listed.get(path.resolve(), path)
            for path in self.state.marked
            if path.resolve() in listed or path.exists()
        )
        self.state = replace(
            self.state,
            entries=tuple(entries),
            complaint=complaint,
            cursor=cursor,
            marked=marked,
            places=places,
        )
        self.paint()

    def _current(self) -> commands.Entry | None:
        entries = self.state.entries or ()
        return entries[self.state.cursor] if self.state.cursor < len(entries) else None

    def action_move(self, by: int) -> None:
        last = len(self.state.entries or ()) - 1
        cursor = max(0, min(last, self.state.cursor + by))
        self._stopping = None
        self.state = replace(self.state, cursor=cursor, message="")
        self.paint()

    def action_mark(self) -> None:
        current = self._current()
        if current is None:
            return
        marked = self.state.marked
        if current.path in marked:
            marked = tuple(path for path in marked if path != current.path)
        else:
            marked = (*marked, current.path)
        self.state = replace(self.state, marked=marked, message="")
        self.action_move(1)

    def action_unmark(self) -> None:
        if self._stopping is None:
            self.state = replace(self.state, marked=())
        self._stopping = None
        self._say("")

    def action_take_up(self) -> None:
        current = self._current()
        if current is None or current.status != State.LOST.value:
            self._say("only a run whose recorder died can be taken up")
            return
        self._say("taking the run up …")
        self.run_worker(self._take_up(current.path), exclusive=True, group="act")

    async def _take_up(self, path: Path) -> None:
        outcome = await commands.run("attach", "--record", "--detach", str(path))
        if outcome.good:
            self._say("")
            self.gpuwatch.open_session(path)
        else:
            self._say(outcome.complaint)
            self.action_refresh()

    def action_stop(self) -> None:
        current = self._current()
        if current is None or current.status not in _STOPPABLE:
            self._say("the run is over already")
            return
        self._stopping = current.path
        if current.status == State.LOST.value:
            self._say(lost_question("Esc"))
        else:
            self._say(stop_question(place(current.path), "Esc"))

    def action_answer(self, yes: bool) -> None:
        path, self._stopping = self._stopping, None
        if path is None or not yes:
            return
        self._say("ending the run …")
        self.run_worker(self._stop(path), exclusive=True, group="act")

    async def _stop(self, path: Path) -> None:
        outcome = await commands.run("stop", str(path))
        self._say(outcome.about(path))
        self.action_refresh()

    def action_open(self) -> None:
        current = self._current()
        if current is None:
            self.action_new()
        else:
            self.gpuwatch.open_session(current.path)

    def action_compare(self) -> None:
        marked = list(self.state.marked)
        current = self._current()
        if len(marked) == 1 and current is not None and current.path not in marked:
            marked.append(current.path)
        if not marked and current is not None and place(current.path) is not None:
            self.gpuwatch.compare_with_study(current.path)
            return
        if len(marked) < 2:
            self._say("mark two sessions with Space, then press c")
            return
        self.gpuwatch.compare(marked)

    def action_new(self) -> None:
        from gpuwatch.tui.new_run import NewRunScreen

        self.app.push_screen(NewRunScreen(), self._started)

    def _started(self, path: Path | None) -> None:
        if path is not None:
            self.gpuwatch.open_session(path)

    def action_leave(self) -> None:
        self.gpuwatch.leave()

    def _say(self, message: str) -> None:
        self.state = replace(self.state, message=message)
        self.paint()


def void(_: object) -> None:
    """Drop a value."""
