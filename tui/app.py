"""The application: which screen is shown, the theme, and what is said after leaving."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from textual import events
from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.message_pump import MessagePump
from textual.screen import Screen

from gpuwatch.core.errors import ExitCode
from gpuwatch.core.units import counted
from gpuwatch.session import placement
from gpuwatch.session.reading.reader import SessionReader, known_meta
from gpuwatch.session.reading.status import status
from gpuwatch.session.study.progress import place
from gpuwatch.session.study.study_folder import not_run, sessions_in
from gpuwatch.tui import commands
from gpuwatch.tui.display_options import USUAL, DisplayOptions
from gpuwatch.tui.feed.feed import REFRESH_SECONDS
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.feed.snapshot import Snapshot, View
from gpuwatch.tui.feed.study import goes_on
from gpuwatch.tui.messages import farewell, farewell_stopped, farewell_waiting
from gpuwatch.tui.widgets import palette

if TYPE_CHECKING:
    from gpuwatch.session.machine_now import Now

_ARROWS = {"↑": "Up", "↓": "Down", "←": "Left", "→": "Right"}
_PATIENCE_SECONDS = 1.0
"""A key waits so long for what the one before it led to."""


def _commands() -> type[Provider]:
    from gpuwatch.tui.widgets.base_screen import Commands

    return Commands


class GpuwatchApp(App[int]):
    """Shows ``first`` and the screens that follow from it."""

    CSS_PATH = "gpuwatch.tcss"
    TITLE = "gpuwatch"
    COMMANDS = App.COMMANDS | {_commands}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("t", "theme", "theme", show=False, tooltip="dark, light, the terminal's own"),
        Binding(
            "ctrl+z", "suspend_process", "shell", show=False, tooltip="to the shell; fg returns"
        ),
        Binding(
            "f10,ctrl+c", "quit", "leave", show=False, priority=True, tooltip="leave; runs go on"
        ),
    ]

    def __init__(self, first: Callable[[], Screen[Any]], look: DisplayOptions = USUAL) -> None:
        # Without colours the terminal's own two are used, also by Textual's widgets.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        self._first = first
        self.look = look
        self.pressed: deque[events.Key] = deque()
        """Keys that are still to be handled."""
        self.call: Callable[[str], None] = lambda _: self.bell()
        """Calls a person who looks elsewhere; the driver of a terminal says there what for."""
        self.draft: dict[str | None, Any] = {}
        """What is filled in for a run that was not started yet, by the field's id."""
        self.farewell: list[str] = []
        """Lines for the terminal after the screen is gone."""
        self.writing: dict[Path, commands.Process] = {}
        """Pages of reports that are being written."""
        self.started: list[Path] = []
        """A session or the folder of each study that was started here, the newest last."""
        for theme in palette.themes():
            self.register_theme(theme)
        system = str(self.console.color_system)
        self.theme = palette.theme_for(self.no_color, system, os.environ, look.theme)

    def get_driver_class(self) -> type[Driver]:
        found = super().get_driver_class()
        if found.__name__ != "LinuxDriver":
            return found
        from gpuwatch.tui.terminal.terminal import TerminalDriver

        return TerminalDriver

    def on_mount(self) -> None:
        if not self.is_headless and not self.is_web:
            from gpuwatch.tui.terminal.terminal import watch

            watch(self)
        self.push_screen(self._first())

    async def on_event(self, event: events.Event) -> None:
        """Handle keys one by one, each where the one before it led to.

        Textual would hand out those that come at once, as over a slow link, before any is handled.
        """
        if not isinstance(event, events.Key) or event.is_forwarded:
            await super().on_event(event)
            return
        self.pressed.append(event)
        if len(self.pressed) == 1:
            self.run_worker(self._press(), group="keys")

    async def _press(self) -> None:
        while self.pressed:
            await _settled(self.screen)
            await super().on_event(self.pressed[0])
            # A key goes up from the widget to the app, and what comes of it once more.
            for _ in range(2):
                for node in (self.focused or self.screen).ancestors_with_self:
                    await _settled(node)
            self.pressed.popleft()

    async def action_quit(self) -> None:
        """Leave as ``q`` does on the screen on top, or on the one below its pages."""
        for screen in reversed(self.screen_stack):
            leave = getattr(screen, "action_leave", None)
            if leave is not None:
                leave()
                return
        self.exit(0)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "theme" or not getattr(self.screen, "TYPED", False)

    def action_theme(self) -> None:
        """The next of our own themes; with NO_COLOR there is only one."""
        if not self.no_color:
            place = palette.ORDER.index(self.theme) if self.theme in palette.ORDER else -1
            self.theme = palette.ORDER[(place + 1) % len(palette.ORDER)]

    def action_help(self) -> None:
        """The keys of the screen on top."""
        from gpuwatch.tui.widgets.base_screen import BaseScreen, HelpScreen, keys_of

        bindings = self.screen.active_bindings.values()
        focus = len(self.screen.focus_chain) > 1
        keys = keys_of(bindings, self.get_key_display, focus=focus)
        signs = self.screen.SIGNS if isinstance(self.screen, BaseScreen) else ()
        self.push_screen(HelpScreen([*keys, *signs]))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What the palette has beside the keys."""
        what = "screenshot: an SVG picture of this screen, in the folder where gpuwatch was started"
        # Once the palette is gone.
        yield SystemCommand(what, "", lambda: self.set_timer(0.1, self.deliver_screenshot))

    def deliver_screenshot(
        self, filename: str | None = None, path: str | None = None, time_format: str | None = None
    ) -> str | None:
        """Save the screen where gpuwatch was started: a server has no folder of downloads."""
        return super().deliver_screenshot(filename, path or os.getcwd(), time_format)

    def on_delivery_complete(self, event: events.DeliveryComplete) -> None:
        """Say where the screenshot is, in place of Textual, which reads the path as markup."""
        event.prevent_default()
        self.notify(f"saved: {event.path or 'by the browser'}", title="Screenshot", markup=False)

    def get_key_display(self, binding: Binding) -> str:
        """With the name of Enter; in ASCII, arrows are words too."""
        text = super().get_key_display(binding).replace("⏎", "Enter")
        return "".join(_ARROWS.get(c, c) for c in text) if self.look.ascii else text

    # Ways from one screen to another.

    def open_session(self, path: Path, *, follow: bool = False, start: View | None = None) -> None:
        """The live screen of ``path``, over the one on top; the rest as in :func:`run_live`."""
        from gpuwatch.tui.live.screen import LiveScreen

        self.push_screen(LiveScreen(path, follow=follow, start=start))

    def open_machine(self, path: Path) -> None:
        """The live screen of a machine that ``path`` records, over the one on top."""
        from gpuwatch.tui.live.screen import MachineScreen

        self.push_screen(MachineScreen(path))

    def open_log(self, path: Path, *, upto_ns: int | None = None) -> None:
        """The log of the session ``path`` up to a session time, over the screen on top."""
        from gpuwatch.tui.log.screen import LogScreen

        self.push_screen(LogScreen(path, upto_ns=upto_ns))

    def open_new_run(self, on: str, seen: Snapshot | None) -> None:
        """The form of a new run at ``on``, as ``--on`` takes it, over the screen on top; ``seen``:
        the devices as they were last."""
        from gpuwatch.tui.new_run.screen import NewRunScreen

        self.push_screen(NewRunScreen(on=on, seen=seen))

    def open_waiting(self, study: Path) -> None:
        """The screen of a study that waits for its first run, over the one on top."""
        from gpuwatch.tui.live.waiting import WaitingScreen

        self.push_screen(WaitingScreen(study))

    def go_home(self, current: Path, marked: Sequence[Path] = (), message: str = "") -> None:
        """The home screen: this one, the one underneath, else a new one in place of this."""
        from gpuwatch.tui.home.base import Home
        from gpuwatch.tui.home.screen import HomeScreen

        near = (self.screen, *self.screen_stack[-2:-1])
        home = next((each for each in near if isinstance(each, Home)), None) or HomeScreen()
        home.remember(current, marked, message)
        if home is self.screen:
            home.action_refresh()
        elif home in near:
            self.pop_screen()
        else:
            self.switch_screen(home)

    def tell_home(self, message: str) -> None:
        """Say on the home screen, wherever it is, what came of a start whose form was left."""
        from gpuwatch.tui.home.screen import HomeScreen

        for screen in self.screen_stack:
            if isinstance(screen, HomeScreen):
                screen.say(message)
                screen.action_refresh()

    def compare(self, paths: Sequence[Path], beside: Path | None = None) -> None:
        """The compare screen over this one; ``beside``: see there."""
        from gpuwatch.tui.compare.screen import CompareScreen

        self.push_screen(CompareScreen(list(paths), beside))

    def compare_with_study(self, path: Path) -> None:
        """Compare the runs of a study in its own order, as its summary does.

        A run that is alone there, with none to come, is left to the person to find another one for.
        """
        found = sessions_in(path.parent)
        more = not_run(path.parent) or (place(path) is not None and goes_on(path.parent))
        if len(found) > 1 or more:
            self.compare(found, beside=path)
        else:
            self.compare_with_another(path)

    def compare_with_another(self, path: Path) -> None:
        """Leave it to the person to find a session to compare this one with."""
        told = "this run is marked: mark another session with Space, then press c"
        self.go_home(path, [path], told)

    def leave(
        self, path: Path | None = None, snapshot: Snapshot | None = None, *, stopped: bool = False
    ) -> None:
        """End the program; a run that goes on is told how to come back to.

        ``stopped``: it was told to end from here.
        """
        if path is not None and stopped:
            self.farewell = farewell_stopped(path, over=not _live(path))
        elif path is not None:
            known = snapshot.place if snapshot is not None else None
            seen = snapshot is not None and snapshot.status.live
            live = seen and (_live(path) or not path.exists())  # a replay shows what was
            more = known is not None and (live or goes_on(path.parent))
            self.farewell = farewell(path, known, live=live, study_goes_on=more)
        elif going := list(filter(None, map(_goes_on, self.started))):
            self.farewell = going[-1]
            if others := len(going) - 1:
                told = counted(others, "other goes", "others go")
                self.farewell.append(f"{told} on: gpuwatch sessions")
        self.exit(0)


_AFTER_DEMO = ("that was a recording; a run of your own: gpuwatch run python train.py",)


def _live(path: Path) -> bool:
    """Whether more may be recorded to a session."""
    meta = known_meta(path)
    return meta is not None and status(meta, path).live


def _goes_on(started: Path) -> list[str]:
    """What to tell of a study that was started here; nothing if it is over."""
    study = started if started.is_dir() else started.parent
    for path in sessions_in(study)[-1:]:
        known, live = place(path), _live(path)
        more = known is not None and goes_on(study)
        return farewell(path, known, live=live, study_goes_on=more) if live or more else []
    waits = placement.read(study)
    return farewell_waiting(study) if waits is not None and waits.going_on else []


async def _settled(node: MessagePump) -> None:
    """Wait until what ``node`` was told so far is done, or takes long."""
    done = asyncio.Event()
    if node.call_later(done.set):
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(done.wait(), _PATIENCE_SECONDS)


def _run(
    first: Callable[[], Screen[Any]],
    look: DisplayOptions,
    *,
    started: Iterable[Path] = (),
    farewell: Sequence[str] = (),
) -> int:
    """``farewell``: lines in place of those of the screen that was left. ``started``: as in
    :class:`GpuwatchApp`."""
    from gpuwatch.tui.terminal.terminal import restored_signals

    app = GpuwatchApp(first, look)
    app.started += started
    with restored_signals():
        code = app.run()
    for line in farewell or app.farewell:
        print(line, flush=bool(app.writing))
    for page, process in app.writing.items():
        print(commands.left_behind(page, process))
    sys.stdout.flush()
    if app.return_code:
        return ExitCode.RUN_FAILED
    return ExitCode.DONE if code is None else code


def run_home(look: DisplayOptions, *, refresh: float, recorder: MachineRecorder | None) -> int:
    """Show the home screen until it is left; returns the exit code.

    ``refresh``: seconds between two pictures of the devices, and between two samples of them.
    ``recorder``: of the machine, started before this program was loaded.
    """
    from gpuwatch.tui.home.screen import HomeScreen

    return _run(lambda: HomeScreen(refresh=refresh, recorder=recorder), look)


def run_demo(session: Path, look: DisplayOptions, *, refresh: float) -> int:
    """Show the home screen with the machine of a finished session; returns the exit code."""
    from gpuwatch.tui.home.screen import DemoScreen

    return _run(lambda: DemoScreen(session, refresh=refresh), look, farewell=_AFTER_DEMO)


def run_fleet(now: Now, look: DisplayOptions, *, refresh: float) -> int:
    """Show machines elsewhere until the screen is left; returns the exit code.

    ``now`` tells of them; ``refresh``: seconds between two pictures.
    """
    from gpuwatch.tui.home.fleet.screen import FleetScreen

    return _run(lambda: FleetScreen(now, refresh=refresh), look)


def run_live(
    session: Path,
    *,
    follow: bool = False,
    started: bool = False,
    look: DisplayOptions = USUAL,
    refresh: float = REFRESH_SECONDS,
    start: View | None = None,
) -> int:
    """Show one session, live or finished, until it is left; returns the exit code.

    ``follow``: the runs after it in its study come by themselves, also where it is over already.
    ``started``: its study was started here. ``refresh``: seconds between two pictures. ``start``:
    what is looked at first.

    Raises:
        NotASession, NewerSchema, StorageError: the file is no session that can be read.
    """
    from gpuwatch.tui.live.screen import LiveScreen

    SessionReader(session).close()
    first = partial(LiveScreen, session, follow=follow, refresh=refresh, start=start)
    return _run(first, look, started=[session] * started)


def run_waiting(
    study: Path, before: Sequence[Path], *, started: bool, look: DisplayOptions, refresh: float
) -> int:
    """Show how a study at a place waits for its first run, then that run, until it is left; returns
    the exit code.

    ``before``: sessions of earlier attempts. ``started``: it was started here. ``refresh``: seconds
    between two pictures.
    """
    from gpuwatch.tui.live.waiting import WaitingScreen

    first = partial(WaitingScreen, study, before, refresh=refresh)
    return _run(first, look, started=[study] * started)


def run_compare(paths: list[Path], *, look: DisplayOptions = USUAL, **options: Any) -> int:
    """Show sessions side by side until it is left; returns the exit code.

    ``options``: ``whole`` (``--all``), and those that :class:`CompareScreen` hands on to what
    judges. Of a whole study a file that cannot be read is a note.

    Raises:
        NotASession, NewerSchema, StorageError: a file is no session that can be read.
    """
    from gpuwatch.tui.compare.screen import CompareScreen

    for path in paths if paths != sessions_in(paths[0].parent) else ():
        SessionReader(path).close()
    return _run(lambda: CompareScreen(paths, **options), look)
