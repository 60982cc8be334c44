"""The form that starts a run: a command or a workload, where it runs, and how often."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical, VerticalGroup, VerticalScroll
from textual.content import Content
from textual.suggester import SuggestFromList
from textual.timer import Timer
from textual.widget import Widget
from textual.widgets import Button, Collapsible, Footer, Input, Static

from gpuwatch.core.shell_line import in_bash, operator_in
from gpuwatch.core.units import binary, percent
from gpuwatch.tui import commands
from gpuwatch.tui.commands import Outcome
from gpuwatch.tui.feed.snapshot import Snapshot
from gpuwatch.tui.machine import Machine, ask_doctor
from gpuwatch.tui.new_run import parameters
from gpuwatch.tui.new_run.answers import (
    BAD,
    Answers,
    ask_plan,
    busy_text,
    field_problems,
    obstacle,
    plan_text,
    refusal,
    usable_environment,
)
from gpuwatch.tui.new_run.parameters import (
    OF_TORCHVISION,
    REPEATS,
    WORKLOADS,
    Form,
    arguments,
    command_line,
    problems,
)
from gpuwatch.tui.new_run.widgets import (
    EnvironmentRow,
    FieldRow,
    PlainCheckbox,
    parameter_field,
    select_of,
    text_row,
)
from gpuwatch.tui.widgets.base_screen import TitleRow, WidgetScreen
from gpuwatch.tui.widgets.line import fit

PLAN_AFTER_SECONDS = 0.25
"""Time between the last change and the question for the plan."""
PLAN_BESIDE_COLUMNS = 110
"""Columns from which on the plan is beside the form."""
PLAN_WIDER_COLUMNS = 160
"""Columns from which on it has more of them."""
OPEN_ROWS = 45
"""Rows from which on the GPUs and all settings are shown at once."""
_LARGEST_SEED = 9999


class NewRunScreen(WidgetScreen):
    """Asks what to run and where, shows the plan, and starts it."""

    AUTO_FOCUS = "#command"
    TYPED = True
    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012 - Textual declares it so
        *WidgetScreen.HORIZONTAL_BREAKPOINTS,
        (PLAN_BESIDE_COLUMNS, "-wide"),
        (PLAN_WIDER_COLUMNS, "-widest"),
    ]
    VERTICAL_BREAKPOINTS = [*WidgetScreen.VERTICAL_BREAKPOINTS, (20, "-medium")]  # noqa: RUF012
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "start", "start", tooltip="start the run; so does Enter in a text field"),
        Binding("ctrl+y", "copy", "copy command", tooltip="the plan's, to the clipboard"),
        Binding("escape", "back", "back", tooltip="leave; a run that is being started goes on"),
        Binding("tab", "app.focus_next", "next field", show=False),
        Binding("shift+tab", "app.focus_previous", "field before", show=False),
    ]

    def __init__(self, *, on: str = "", seen: Snapshot | None = None) -> None:
        """``on``: the place that is filled in at first. ``seen``: the devices as they were last."""
        super().__init__()
        self.answers = Answers()
        self._order_seed = secrets.randbelow(_LARGEST_SEED) + 1
        self._asked: tuple[str | None, str] | None = None
        """``Form.program`` and the folder of the latest question about the machine."""
        self._environments_changed = False
        """Whether the user has chosen environments."""
        self._starting = self._back_pressed = self._left = False
        self._timer: Timer | None = None
        self._seen = seen
        self._command = text_row(
            "command",
            "python train.py --lr 3e-4",
            "what to run, as in a shell; → takes the rest of a command that ran before",
        )
        here = "where gpuwatch was started, which is gone"
        with contextlib.suppress(FileNotFoundError):
            here = os.getcwd()
        self._folder = text_row("folder", here, "where it runs, if not there")
        self._variables = text_row(
            "variables", "OMP_NUM_THREADS=8 ...", "its environment variables: NAME=VALUE ..."
        )
        wide = max(map(len, WORKLOADS))
        workloads = {name: f"{name.rstrip(':'):<{wide}}  {of}" for name, of in WORKLOADS.items()}
        self._workload = FieldRow(
            "workload",
            select_of(workloads, id="workload"),
            tooltip="your own command, or a model that gpuwatch brings along",
            wide=True,
        )
        self._model = text_row("model", "vit_b_16", "name of a classification model in torchvision")
        self._parameters = {
            each.name: FieldRow(each.label, parameter_field(each))
            for each in parameters.parameters()
        }
        rest = (row for name, row in self._parameters.items() if name not in parameters.FIRST)
        self._more = Collapsible(*rest, title="more settings", id="more")
        self._environments = {"bare": EnvironmentRow("bare", chosen=True)}
        self._environment_list = VerticalGroup(*self._environments.values())
        self._looking = Static("looking for engines and images ...", id="looking")
        self._other = text_row(
            "other",
            "docker=IMAGE, apptainer=FILE.sif ...",
            "as --env takes them: KIND=IMAGE[,python=PATH][,mount=SRC:DST] ...",
            label="other images",
        )
        self._on = text_row(
            "on",
            "this machine",
            "where it runs, as --on takes it: ssh=HOST, or slurm,partition=gpu ...; several with "
            "blanks between: a study at each",
            value=on,
        )
        self._pull = FieldRow("pull", PlainCheckbox(compact=True, id="pull"), tooltip="--pull")
        self._gpus: dict[str, PlainCheckbox] = {}
        self._gpu_list = VerticalGroup()
        self._gpu_section = Collapsible(self._gpu_list, id="gpus")
        self._no_gpu = Static(id="no-gpu", markup=False)
        repeats = {name: f"{name:<13}  {text}" for name, (_, text) in REPEATS.items()}
        self._repeat = FieldRow(
            "repeat",
            select_of(repeats, id="repeat"),
            tooltip="how often each environment runs",
            wide=True,
        )
        self._options = text_row(
            "options",
            "--name low-lr --profile 5 --duration 10m ...",
            "further options, as gpuwatch run takes them",
        )
        self._message = Static(id="message", markup=False)
        self._plan = Static(id="plan-text")

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield TitleRow("start a run")
        with Container(id="body"):
            with VerticalScroll(id="form", can_focus=False):
                yield self._command
                yield self._workload
                yield self._folder
                yield self._variables
                yield self._model
                yield from (self._parameters[name] for name in parameters.FIRST)
                yield self._more
                yield Static("environments", classes="heading")
                yield self._environment_list
                yield self._looking
                yield self._other
                yield self._pull
                yield self._on
                yield self._gpu_section
                yield self._no_gpu
                yield self._repeat
                yield self._options
            with Vertical(id="side"):
                with VerticalScroll(id="plan"):
                    yield self._message
                    yield self._plan
                yield Button("Start", id="start", compact=True)
        yield Footer(compact=True)

    def on_mount(self) -> None:
        self.query_one("#side").border_title = "plan"
        self._gpu_section.collapsed = self._more.collapsed = self.app.size.height < OPEN_ROWS
        self._pull.update("fetch images that are not here")
        for field in self.query(Input):
            field.cursor_blink = False
        self._fill_in(self.gpuwatch.draft)
        self._show()
        self._ask()
        self.run_worker(self._suggest(), group="commands")

    def _fill_in(self, draft: Mapping[str | None, Any]) -> None:
        """Go on with what was left; the place is that of the row that ``n`` was pressed on."""
        for row in self.query(FieldRow):
            if row is not self._on or not row.text:
                row.field.value = draft.get(row.field.id, row.field.value)
            if isinstance(row.field, Input):
                row.field.cursor_position = len(row.field.value)
        if "ticked" in draft:
            self._environments_changed = True
            self._environments["bare"].checkbox.value = "bare" in draft["ticked"]

    async def _suggest(self) -> None:
        before = await asyncio.to_thread(parameters.commands_before)
        assert isinstance(self._command.field, Input)
        self._command.field.suggester = SuggestFromList(before)

    # The form.

    @property
    def _away(self) -> bool:
        """Whether it runs at another place, whose GPUs and environments are not known here."""
        return bool(self._on.text.strip())

    @property
    def form(self) -> Form:
        """The fields as they are filled in."""
        chosen = tuple(name for name, gpu in self._gpus.items() if gpu.value)
        return Form(
            workload=self._workload.text,
            command=self._command.text,
            folder=self._folder.text,
            variables=self._variables.text,
            model=self._model.text,
            ticked=tuple(name for name, row in self._environments.items() if row.checkbox.value),
            other=self._other.text,
            on=self._on.text,
            pull=bool(self._pull.text),
            gpus=None if self._away or len(chosen) == len(self._gpus) else chosen,
            repeat=self._repeat.text,
            options=self._options.text,
            values={name: row.text for name, row in self._parameters.items()},
            order_seed=self._order_seed,
        )

    def on_input_changed(self) -> None:
        if self._message.display:
            self.say("")
        self._ask_later()  # a form that is laid out at every letter is slow to type in

    def on_select_changed(self) -> None:
        self.say("")
        self._ask_later()

    def on_checkbox_changed(self, message: PlainCheckbox.Changed) -> None:
        rows = self._environments.values()
        if any(message.checkbox is row.checkbox for row in rows):
            self._environments_changed = True
        self.on_select_changed()

    def on_input_submitted(self) -> None:
        self.action_start()

    def _ask_later(self) -> None:
        """Ask for the plan once no more changes come."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self.set_timer(PLAN_AFTER_SECONDS, self._ask)

    # What is shown.

    def say(self, message: str) -> None:
        self._message.update(message)
        self._message.display = bool(message)
        self._show()

    def _show(self) -> None:
        """Show the hints, the problems and the plan of the form as it is."""
        form, found = self.form, field_problems(self.form, self.answers.machine)
        self._show_workload(form, found)
        for name, row in self._environments.items():
            known = self.answers.environment(form, name)
            row.update(known, refusal(form, self.answers, name))
        self._other.update(problem=found.get("other", ""))
        self._on.update(problem=found.get("on", ""))
        self._options.update(problem=found.get("options", ""))
        machine = self.answers.machine or Machine()
        self._gpu_section.display = bool(self._gpus) and not self._away
        self._no_gpu.display = machine.no_gpu is not None and not self._away
        which = fit(", ".join(form.gpus or ()), 24)
        chosen = "all" if form.gpus is None else len(form.gpus) or "none"
        chosen = f"{chosen} of {len(self._gpus)}"
        busy = busy_text(form, self._seen) if self._gpus else ""  # until then none is chosen
        seen = f"  ! {busy}" if busy else ", as they were when this was opened" * bool(self._seen)
        title = f"GPUs: {f'{which} ({chosen})' if which else chosen}{seen}"
        # Textual would read a text as markup, and its escape() leaves some names of programs.
        self._gpu_section.title = Content(title)  # type: ignore[assignment]
        self._plan.update(plan_text(form, self.answers, busy))

    def _show_workload(self, form: Form, found: dict[str, str]) -> None:
        """Show the fields of the chosen workload."""
        self._command.field.disabled = not form.own
        for name, row in (("folder", self._folder), ("variables", self._variables)):
            row.display = form.own
            row.update(problem=found.get(name, ""))
        self._command.update(problem=found.get("command", "") if form.command.strip() else "")
        self._model.display = form.workload == OF_TORCHVISION
        self._model.update(problem=found.get("model", ""))
        self._more.display = not form.own
        accepted = () if form.own else parameters.parameters_of(form.case)
        plan = self.answers.plan_for(form)
        for parameter in parameters.parameters():
            row = self._parameters[parameter.name]
            row.display = parameter in accepted
            if not row.display:
                continue
            default = parameters.default(parameter, form.case)
            if parameter.name == "steps" and plan is not None and plan.steps:
                default = plan.steps
            if isinstance(row.field, Input):
                row.field.placeholder = default
            flag = parameter.name.replace("_", "-")
            row.field.tooltip = Content(f"--{flag}: {parameter.help}; default: {default}")
            row.update(parameter.hint(row.text), found.get(parameter.name, ""))

    # Questions to gpuwatch's commands.

    def _ask(self) -> None:
        """Show what is entered; ask for the plan, and what can run here where the answer may be
        another."""
        self._show()
        form = self.form
        found = field_problems(form, self.answers.machine)
        asked = form.program, form.runs_in
        if asked != self._asked and "folder" not in found:
            self._asked = asked
            self.run_worker(self._ask_machine(*asked), exclusive=True, group="machine")
        if not found:
            planned = form.runs_in, *arguments(form)
            self.run_worker(self._ask_plan(planned), exclusive=True, group="plan")

    async def _ask_machine(self, program: str | None, folder: str) -> None:
        words = () if program is None else ("--", program)
        machine = await ask_doctor("--images", "--format", "json", *words, folder=folder)
        self.answers = replace(self.answers, machine=machine, program=program)
        if self._environment_list.is_attached:  # widgets go before their screen does
            await self._add_environments(machine)
            self._add_gpus(machine)
        self._show()

    async def _add_environments(self, machine: Machine) -> None:
        """Add rows for new environments, those that can run first; choose one where none can."""
        self._looking.display = bool(machine.complaint)
        self._looking.update(Content.assemble(("✗ ", BAD), machine.complaint))
        on_gpus = self.form.on_gpus
        ordered = sorted(machine.environments, key=lambda each: bool(each.refusal(on_gpus)))
        names = [each.text for each in ordered if each.text not in self._environments]
        ticked = self.gpuwatch.draft.get("ticked", ())
        rows = {name: EnvironmentRow(name, chosen=name in ticked) for name in names}
        self._environments |= rows
        await self._environment_list.mount(*rows.values())
        usable = usable_environment(self.form, machine)
        if usable is not None and not self._environments_changed:
            with self.prevent(PlainCheckbox.Changed):
                for name, row in self._environments.items():
                    row.checkbox.value = name == usable
            self._ask_later()

    def _add_gpus(self, machine: Machine) -> None:
        """Add a checkbox for each GPU, the first time that they are known, idle ones first; those
        are chosen, all where none is idle.

        In one piece: the question about the next program ends this one wherever it waits.
        """
        if self._gpus:
            return
        seen = {gpu.number: gpu for gpu in self._seen.gpus} if self._seen else {}
        uses: dict[str, float] = {}
        idle = set()
        for gpu in machine.gpus:
            now = seen.get(gpu.choice)
            text = f"{binary(gpu.memory_bytes)}" if gpu.memory_bytes else ""
            if now is not None:
                use = now.value("hw.gpu.utilization")
                text = now.memory
                if use is not None:
                    rest = "its memory held, idle" if now.held else "idle"
                    text += f", {rest}" if use == 0 else f", {percent(use)} busy"
                    idle |= {gpu.choice} if use == 0 and not now.held else set()
                uses[gpu.choice] = (use or 0) + (now.memory_share or 0)
            label = Content(f"{gpu.choice}  {gpu.name}  {text}")
            self._gpus[gpu.choice] = PlainCheckbox(label, True, compact=True)
        for choice in self._gpus.keys() - idle if idle else ():
            self._gpus[choice].value = False
        shown = sorted(self._gpus, key=lambda choice: uses.get(choice, 0))
        self._gpu_list.mount(*(self._gpus[choice] for choice in shown))
        if machine.no_gpu:
            self._no_gpu.update(f"runs use the CPU: {machine.no_gpu.text}")

    async def _ask_plan(self, planned: tuple[str, ...]) -> None:
        plan = await ask_plan(*planned)
        self.answers = replace(self.answers, plan=plan, planned=planned)
        self._show()

    # Start and leave.

    def on_button_pressed(self) -> None:
        self.action_start()

    def action_copy(self) -> None:
        """The terminal's clipboard, also over SSH: by OSC 52, which it may refuse in silence."""
        if problems(self.form):
            self.say("there is no command yet")
        else:
            self.app.copy_to_clipboard(command_line(self.form))
            self.say("sent to the terminal's clipboard")

    def action_start(self) -> None:
        """Start the run, or go to the field that prevents it."""
        if self._starting or self.refused():
            return
        found = obstacle(self.form, self.answers)
        if found is not None:
            wrapped = found[0] == "command" and operator_in(self.form.command) is not None
            self._go_to(found[0])
            what = "bash stands before it now: ^s starts it"
            self.say(what if wrapped else "nothing was started")
            return
        self._starting, self._back_pressed = True, False
        self.say("starting ...")
        # A worker of the app goes on when the form is left.
        form = self.form
        self.app.run_worker(self._start(form.runs_in, arguments(form)), group="start")

    def _go_to(self, name: str) -> None:
        """Focus a field; a command that needs a shell is given one."""
        command = self._command.field
        if name == "command" and operator_in(self.form.command):
            assert isinstance(command, Input)
            with self.prevent(Input.Changed):
                command.value = in_bash(self.form.command.strip())
            command.cursor_position = len(command.value)
            self._ask_later()
        if name in self._environments:
            field: Widget = self._environments[name].checkbox
        elif name == "environments":
            field = self._environments["bare"].checkbox
        elif name == "command" and not self.form.own:
            field = self._workload.field
        else:
            field = self.query_one(f"#{name}")
        if self._more in field.ancestors:
            self._more.collapsed = False
        field.focus()

    async def _start(self, folder: str, planned: tuple[str, ...]) -> None:
        words = ("--record", "--detach", *planned)
        outcome = await commands.run(*words, outlives=True, folder=folder)
        self._starting = False
        if outcome.good:
            self.gpuwatch.draft = {}
        named = commands.recorded(outcome)
        self.gpuwatch.started += named
        if self._left:
            self._tell_home(outcome)
        elif outcome.good and self._away:
            self.dismiss(None)
            self._tell_home(outcome)
        elif outcome.good and named:
            self.dismiss(None)
            self.gpuwatch.open_session(named[0], follow=True)
        elif outcome.code == commands.NO_ANSWER:
            self.say(f"✗ {outcome.complaint}; it may still start: Esc, and look in the list")
        else:
            self.say(f"✗ {outcome.complaint}")

    def _tell_home(self, outcome: Outcome) -> None:
        good = outcome.good
        self.gpuwatch.tell_home("the run has started" if good else f"✗ {outcome.complaint}")

    def action_back(self) -> None:
        """Leave the form; while a run is being started, on the second time."""
        if self._starting and not self._back_pressed:
            self._back_pressed = True
            self.say("it is being started, and goes on when you leave: Esc once more")
            return
        self._left = True
        fields = [row.field for row in self.query(FieldRow)]
        draft = self.gpuwatch.draft = {field.id: field.value for field in fields}
        if self._environments_changed:
            draft["ticked"] = self.form.ticked
        self.dismiss(None)
