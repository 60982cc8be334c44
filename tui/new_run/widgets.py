"""The rows of the form: a labelled field, an environment."""

from __future__ import annotations

from collections.abc import Mapping

from textual.app import ComposeResult
from textual.containers import HorizontalGroup, VerticalGroup
from textual.content import Content
from textual.geometry import Size
from textual.widgets import Checkbox, Input, Label, Select, Static

from gpuwatch.tui.machine import Environment, Refusal
from gpuwatch.tui.new_run.answers import BAD, GOOD
from gpuwatch.tui.new_run.parameters import Parameter


class PlainCheckbox(Checkbox):
    """``[x]`` while it is on, ``[ ]`` while it is off; Textual's own differ by colour alone."""

    def render(self) -> Content:
        label = self.label.pad(1, 1).stylize_before(self.get_visual_style("toggle--label"))
        return Content.assemble("[x]" if self.value else "[ ]", label)

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """As many rows as the label takes where ``text-wrap`` lets it wrap."""
        return self.render().get_height(self.styles.get_rules(), width)


Field = Input | Select[str] | Checkbox


class FieldRow(HorizontalGroup):
    """A label, a field, and beside it a hint or what is wrong with its value."""

    def __init__(self, label: str, field: Field, *, tooltip: str = "", wide: bool = False) -> None:
        """``wide``: the field takes the whole row, with the hint below it."""
        super().__init__(classes="-wide" if wide else None)
        self.field = field
        self._label = Label(label, markup=False)
        self._hint = Static(classes="hint")
        self._hint.display = False
        self._shown = ("", "")
        if tooltip:
            self.field.tooltip = Content(tooltip)

    def compose(self) -> ComposeResult:
        yield self._label
        with VerticalGroup():
            yield self.field
            yield self._hint

    @property
    def text(self) -> str:
        """What the field holds; of a checkbox ``yes`` or nothing."""
        value = self.field.value
        return ("yes" if value else "") if isinstance(value, bool) else str(value)

    def update(self, hint: str = "", problem: str = "") -> None:
        """Show a hint, or in its place what is wrong with the value."""
        if (hint, problem) == self._shown:
            return  # a form that is laid out at every letter is slow to type in
        self._shown = hint, problem
        self.set_class(bool(problem), "-invalid")
        self._hint.display = bool(hint or problem)
        self._hint.update(Content.assemble(("✗ ", BAD), problem) if problem else Content(hint))


class EnvironmentRow(VerticalGroup):
    """A checkbox for an environment, and in one row whether it can run here; the whole reason and
    how to fix it while it has the focus."""

    def __init__(self, environment: str, *, chosen: bool = False) -> None:
        """``environment``: as ``--env`` takes it."""
        super().__init__()
        self.checkbox = PlainCheckbox(Content(environment), chosen, compact=True)
        self._status = Static(classes="hint")
        self._fix = Static()
        self._shown: tuple[Environment | None, Refusal | None] | None = None

    def compose(self) -> ComposeResult:
        with HorizontalGroup():
            yield self.checkbox
            yield self._status
        yield self._fix

    def on_descendant_focus(self) -> None:
        self.add_class("-focused")

    def on_descendant_blur(self) -> None:
        self.remove_class("-focused")

    def update(self, known: Environment | None, refusal: Refusal | None) -> None:
        """Show why nothing can run in it, else its engine; ``known`` None: not checked yet."""
        if (known, refusal) == self._shown:
            return
        self._shown = known, refusal
        if refusal is not None:
            self._status.update(Content.assemble(("✗ ", BAD), refusal.text))
        elif known is not None:
            self._status.update(Content.assemble(("✓ ", GOOD), known.engine))
        else:
            self._status.update()
        hint = refusal.hint if refusal is not None else ""
        self._fix.update(Content(f"Fix: {hint}"))
        self.set_class(bool(hint), "-fixable")
        self.tooltip = Content(f"Fix: {hint}") if hint else None


def text_row(
    id: str, placeholder: str, tooltip: str, *, label: str = "", value: str = ""
) -> FieldRow:
    """A text in a row of its own; ``label``: in place of its id."""
    field = Input(value, placeholder=placeholder, compact=True, id=id)
    return FieldRow(label or id, field, tooltip=tooltip, wide=True)


def parameter_field(parameter: Parameter) -> Field:
    """The widget in which a parameter is set; its id is the parameter's name."""
    name = parameter.name
    if parameter.switch:
        return PlainCheckbox(compact=True, id=name)
    if parameter.choices:
        return select_of({value: value for value in parameter.choices}, id=name)
    return Input(restrict=parameter.restrict, compact=True, id=name)


def select_of(labels: Mapping[str, str], id: str) -> Select[str]:
    """A choice of values, shown with their labels; the first one is chosen."""
    options = [(label, value) for value, label in labels.items()]
    first = next(iter(labels))
    return Select(options, value=first, allow_blank=False, compact=True, id=id)
