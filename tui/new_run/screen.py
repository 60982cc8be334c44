"""The form that starts a run."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from textual import events
from textual.binding import Binding, BindingType
from textual.timer import Timer
from textual.widgets import Input

from gpuwatch.tui import commands
from gpuwatch.tui.commands import Outcome
from gpuwatch.tui.display_options import READ_ONLY
from gpuwatch.tui.new_run.answers import ask_doctor, ask_plan
from gpuwatch.tui.new_run.foot import ROOMY
from gpuwatch.tui.new_run.form import Form, arguments
from gpuwatch.tui.new_run.rows import Drawn, launch_rows
from gpuwatch.tui.new_run.state import (
    LaunchState,
    gone_to,
    moved,
    next_part,
    obstacle,
    pressed,
    stand_on,
    text_of,
    with_machine,
    with_text,
    wrong,
)
from gpuwatch.tui.widgets.canvas import Clicked
from gpuwatch.tui.widgets.canvas_screen import WritingScreen

PLAN_AFTER_SECONDS = 0.25
"""Without a key before the plan is asked for."""
_LARGEST_SEED = 9999

Change = Callable[[LaunchState], LaunchState]


class NewRunScreen(WritingScreen):
    """Asks what to run and where, tells what that will be, and starts it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter,ctrl+s", "start", "start", priority=True),
        Binding("escape", "back", "back", priority=True),
        Binding("tab", "part(1)", "next part", priority=True),
        Binding("shift+tab", "part(-1)", "part before", show=False, priority=True),
        Binding("down", "move(1)", "down", show=False, priority=True),
        Binding("up", "move(-1)", "up", show=False, priority=True),
        Binding("pagedown", "move(8)", "eight rows down", show=False, priority=True),
        Binding("pageup", "move(-8)", "eight rows up", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        seed = secrets.randbelow(_LARGEST_SEED) + 1
        self.state = LaunchState(Form(order_seed=seed))
        self._drawn = Drawn((), (), 0)
        self._follow = True
        self._busy = self._warned = self._left = False
        self._program: str | None = ""
        """What was last asked about."""
        self._timer: Timer | None = None
        self._written = ""
        """Key of the item whose text is written."""

    def on_mount(self) -> None:
        self._ask()

    def paint(self) -> None:
        width, height = self.room
        if height < 3:
            return
        first = self._drawn.first
        self.state = replace(self.state, roomy=height >= ROOMY)
        self._drawn = launch_rows(self.state, width, height, first, follow=self._follow)
        self.show(self._drawn.lines)
        self._place_field()

    def _place_field(self) -> None:
        """Have the text under the cursor written where its place is seen."""
        text, at = text_of(self.state), self._drawn.field
        if text is None or at is None:
            self.field.hide()
            return
        self.field.stand(*at)
        if not self.field.display or self._written != self.state.cursor or text != self.field.value:
            self.field.write(text)
        self._written = self.state.cursor

    def _change(self, change: Change) -> None:
        """Take a new state, draw it, and ask again where the form became another."""
        before, self.state = self.state.form, change(self.state)
        self._follow = True
        self.paint()
        if self.state.form != before:
            if self._timer is not None:
                self._timer.stop()
            self._timer = self.set_timer(PLAN_AFTER_SECONDS, self._ask)

    def _ask(self) -> None:
        """Ask for the plan, and for what can run where that may be another answer."""
        form = self.state.form
        if form.program != self._program and form.program != "":
            self._program = form.program
            self.run_worker(self._ask_machine(form.program), exclusive=True, group="machine")
        if not wrong(self.state):
            self.run_worker(self._ask_plan(arguments(form)), exclusive=True, group="plan")

    async def _ask_machine(self, program: str | None) -> None:
        found = await ask_doctor(program)
        self._answered(lambda state: with_machine(state, found, program))

    async def _ask_plan(self, asked: tuple[str, ...]) -> None:
        found = await ask_plan(asked)
        self._answered(lambda state: replace(state, plan=found, planned=asked))

    def _answered(self, change: Change) -> None:
        follow = self._follow
        self._change(change)
        self._follow = follow

    def action_part(self, by: int) -> None:
        self._change(lambda state: next_part(state, by))

    def action_move(self, by: int) -> None:
        self._change(lambda state: moved(state, by))

    def action_scroll_by(self, by: int) -> None:
        self._follow = False
        self._drawn = replace(self._drawn, first=max(0, self._drawn.first + by))
        self.paint()

    def on_key(self, event: events.Key) -> None:
        """Choose, where the cursor is on no text."""
        change: Change | None = {
            "space": lambda state: pressed(state, 1),
            "right": lambda state: pressed(state, 1),
            "left": lambda state: pressed(state, -1),
            "home": lambda state: moved(state, -10_000),
            "end": lambda state: moved(state, 10_000),
        }.get(event.key)
        if text_of(self.state) is not None:
            if event.is_printable and event.character:  # where it is out of sight
                self._change(lambda state: state)
                self.field.insert_text_at_cursor(event.character)
        elif change is not None:
            event.stop()
            self._change(change)

    def on_input_changed(self, message: Input.Changed) -> None:
        if text_of(self.state) is not None:
            self._change(lambda state: with_text(state, message.value))

    def on_clicked(self, message: Clicked) -> None:
        hit = [
            each.key
            for each in self._drawn.targets
            if each.y == message.y and each.left <= message.x < each.right
        ]
        if hit:
            self._change(lambda state: pressed(stand_on(state, hit[0]), 1))
            if message.count == 2 and hit[0].startswith("workload="):
                self.action_start()

    def action_start(self) -> None:
        """Start the run, or go to what stands against it."""
        if self._busy:
            return
        if self.gpuwatch.look.read_only:
            self._say(f"✗ {READ_ONLY}")
            return
        against = obstacle(self.state)
        if against is not None:
            # What it is stands in the plan.
            self._change(lambda state: gone_to(state, against[0]))
            self._say("nothing was started")
            return
        self._busy, self._warned = True, False
        self._say("starting ...")
        # Of the app: it is told how it went, also where the form was left.
        self.app.run_worker(self._start(arguments(self.state.form)), group="start")

    async def _start(self, asked: tuple[str, ...]) -> None:
        outcome = await commands.run(*commands.record(asked), outlives=True)
        self._busy = False
        path = commands.session_path(outcome)
        if self._left:
            self._tell_home(outcome)
        elif outcome.good and path is not None:
            self.dismiss(None)
            self.gpuwatch.open_session(path)
        elif outcome.code == commands.NO_ANSWER:
            self._say(f"✗ {outcome.complaint}; it may still start: Esc, and look in the list")
        else:
            self._say(f"✗ {outcome.complaint}")

    def _tell_home(self, outcome: Outcome) -> None:
        """Say on the home screen how a start went whose form was left."""
        from gpuwatch.tui.home.screen import HomeScreen

        for home in self.app.screen_stack:
            if isinstance(home, HomeScreen):
                home.say("the run has started" if outcome.good else f"✗ {outcome.complaint}")
                home.action_refresh()

    def _say(self, message: str) -> None:
        self._change(lambda state: replace(state, message=message))

    def action_back(self) -> None:
        """Leave the form; while it starts something, on the second time."""
        if self._busy and not self._warned:
            self._warned = True
            self._say("it is being started, and goes on when you leave: Esc once more")
            return
        self._left = True
        self.dismiss(None)
