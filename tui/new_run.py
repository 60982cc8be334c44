"""The form that starts a run."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal
from textual.screen import Screen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from gpuwatch.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.canvas import Canvas
from gpuwatch.tui.cells import wrap
from gpuwatch.tui.keys import keys_row
from gpuwatch.tui.line import Line
from gpuwatch.tui.new_run_form import OWN_COMMAND, Form, Problem, arguments, command_line

_FIELDS = (
    ("environments", "environment", "bare", "such as: bare docker=IMAGE apptainer=FILE.sif"),
    ("steps", "steps", "", "timed steps; empty: the default"),
    ("batch_size", "batch size", "", "empty: the workload's default"),
    ("flags", "more flags", "", "such as --dtype bfloat16"),
    ("command", "command", "", "such as python3 train.py"),
)


class NewRunScreen(Screen[Path | None]):
    """Asks what to run and where, and starts it. Ends with the session's path, or ``None``."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "back", show=False, priority=True),
        Binding("enter", "start", show=False, priority=True),
        Binding("ctrl+s", "start", show=False, priority=True),
    ]

    def __init__(self) -> None:
        super().__init__()
        self._busy = False
        self._answer: tuple[str, str] | None = None

    def compose(self) -> ComposeResult:
        yield Canvas(id="head")
        yield OptionList(*self._options(), id="workload", markup=False)
        for name, label, value, hint in _FIELDS:
            with Horizontal(classes="row", id=f"row-{name}"):
                yield Label(label, classes="name", markup=False)
                yield Input(value, id=name, compact=True)
                yield Label(hint, classes="hint", markup=False)
        yield Canvas(id="answer")
        yield Canvas(id="foot")

    def _options(self) -> list[Option]:
        from gpuwatch.workloads import names

        known = names.known()
        choices = [*known.items(), (OWN_COMMAND, "any program, in any language")]
        return [
            Option(Text.assemble((f" {name:<15}", "bold"), f" {clean(what)}"), id=name)
            for name, what in choices
        ]

    def on_mount(self) -> None:
        options = self.query_one(OptionList)
        options.highlighted = 0
        options.focus()
        self.call_after_refresh(self.paint)

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    @on(Input.Changed)
    @on(OptionList.OptionHighlighted)
    def _edited(self) -> None:
        self._answer = None
        self.paint()

    @on(OptionList.OptionSelected)
    def _chosen(self) -> None:
        self.action_start()

    def form(self) -> Form:
        """The fields as they stand."""
        options = self.query_one(OptionList)
        highlighted = options.highlighted_option
        values = {name: self.query_one(f"#{name}", Input).value for name, *_ in _FIELDS}
        workload = highlighted.id if highlighted is not None else None
        return Form(workload=workload or "", **values)

    def paint(self) -> None:
        width = self.app.size.width
        form = self.form()
        own = form.workload == OWN_COMMAND
        for name in ("steps", "batch_size", "flags"):
            self.query_one(f"#row-{name}").display = not own
        self.query_one("#row-command").display = own
        title = Line(width).add(" gpuwatch ", "brand").add("start a run", "strong")
        self.query_one("#head", Canvas).show([title, Line(width)])
        self.query_one("#answer", Canvas).show(self._answer_rows(form, width))
        keys = [("Enter", "start"), ("↑↓", "workload"), ("Tab", "next field"), ("Esc", "back")]
        self.query_one("#foot", Canvas).show([keys_row(keys, width)])

    def _answer_rows(self, form: Form, width: int) -> list[Line]:
        rows = [Line(width)]
        parts = arguments(form)
        if isinstance(parts, Problem):
            rows.append(Line(width).add(" ✗ ", "bad").add(clean(parts.text), "text"))
        else:
            for index, text in enumerate(wrap(clean(command_line(parts)), width - 5, 2)):
                rows.append(Line(width).add(" $ " if index == 0 else "   ", "key").add(text))
        if self._answer is not None:
            text, role = self._answer
            sign = " ✗ " if role == "bad" else " » "
            for index, piece in enumerate(wrap(text, width - 5, 3)):
                rows.append(
                    Line(width).add(sign if index == 0 else "   ", role).add(piece, "strong")
                )
        return rows

    def action_start(self) -> None:
        """Start the run, or go to the field that is wrong."""
        if self._busy:
            return
        parts = arguments(self.form())
        if isinstance(parts, Problem):
            self.query_one(f"#{parts.field}").focus()
            return
        self._busy = True
        self._answer = ("starting …", "key")
        self.paint()
        self.run_worker(self._start(parts), exclusive=True)

    async def _start(self, parts: tuple[str, ...]) -> None:
        outcome = await commands.run(*commands.record(parts))
        self._busy = False
        path = commands.session_path(outcome)
        if outcome.good and path is not None:
            self.dismiss(path)
            return
        self._answer = (outcome.complaint, "bad")
        self.paint()

    def action_back(self) -> None:
        self.dismiss(None)
