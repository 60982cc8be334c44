"""What every screen has: its help, a footer of whole keys, questions over it; and the
base of screens that are drawn, on which a line can be written."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual import events, on
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.events import Mount
from textual.message import Message
from textual.screen import ModalScreen, Screen
from textual.widgets import Button, Footer, Input, Static

from gpuwatch.core.aggregate import grouped
from gpuwatch.core.text import clean
from gpuwatch.tui.commands import export_report
from gpuwatch.tui.display_options import LEAST, READ_ONLY
from gpuwatch.tui.messages import Question
from gpuwatch.tui.widgets.canvas import Canvas, Scrolled
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.palette import styles

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp


class Dialog(ModalScreen[int]):
    """Which answer ``question`` gets: 0 is no, 1 is yes, then follow its other ways."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(0)", show=False),
        Binding("left,up", "app.focus_previous", show=False),
        Binding("right,down", "app.focus_next", show=False),
        Binding("f10", "app.quit", show=False),
    ]

    def __init__(self, question: Question) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        question = self._question
        with Vertical():
            yield Static(question.text, markup=False)
            # Several ways of doing it are told in full, one below the other.
            with Vertical() if question.more else Horizontal():
                for n, answer in enumerate((question.no, question.yes, *question.more)):
                    yield Button(answer, id=f"answer-{n}", compact=True)
            yield Static("Arrows choose, Enter confirms, Esc cancels")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        self.dismiss(list(self.query(Button)).index(event.button))


TOO_SMALL = f"too small\nneeds {LEAST[0]}x{LEAST[1]}"


class BaseScreen(Screen[None]):
    """Keys are declared once, in ``BINDINGS``: a binding's description stands in the footer, its
    tooltip in the help and the palette."""

    AUTO_FOCUS = ""
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("question_mark,f1", "app.help", "help", tooltip="all keys of this screen")
    ]
    _keys_that_apply: object = None
    TYPED: ClassVar[bool] = False
    """Whether it is for typing, so that no single letter acts."""
    SIGNS: ClassVar[tuple[tuple[str, str], ...]] = ()
    """Marks on the screen and what they mean, for the help."""

    @property
    def gpuwatch(self) -> GpuwatchApp:
        return self.app  # type: ignore[return-value]

    @property
    def on_top(self) -> bool:
        """Whether no other screen is over this one; ``is_current`` holds one further down too."""
        return self.app.screen is self

    @on(Mount)
    def _watch_layout(self) -> None:
        self.screen_layout_refresh_signal.subscribe(self, lambda _: self._show_whole_keys())

    def _show_whole_keys(self) -> None:
        """Hide the keys of the footer that have no room beside the last one, the palette's."""
        keys = list(self.query("FooterKey"))
        room = self.size.width - sum(palette.outer_size.width for palette in keys[-1:])
        for key in keys[:-1]:
            room -= key.outer_size.width
            key.visible = room >= 0
            room -= key.styles.margin.right

    def refresh_keys(self, apply: object) -> None:
        """Have the footer drawn anew where other keys ``apply`` than before."""
        if apply != self._keys_that_apply:
            self._keys_that_apply = apply
            self.refresh_bindings()

    def say(self, message: str) -> None:
        """Show a word where this screen answers its keys, if it has such a place."""

    def refused(self) -> bool:
        """Whether keys may not act; it is said then."""
        if self.gpuwatch.look.read_only:
            self.say(READ_ONLY)
        return self.gpuwatch.look.read_only

    def export(self, paths: Sequence[Path], **judging: Any) -> None:
        """Write a report, and say where it is; see :func:`export_report`."""
        if not self.refused():
            self.say("writing the report …")
            self.run_worker(self._write_report(paths, judging), exclusive=True, group="export")

    async def _write_report(self, paths: Sequence[Path], judging: dict[str, Any]) -> None:
        self.say(await export_report(paths, self.gpuwatch.writing, **judging))

    def ask(self, question: Question, *then: Callable[[], None]) -> None:
        """Ask over this screen, and do what the answer says: ``then`` is of yes, and of its other
        ways in their order."""
        self.app.push_screen(Dialog(question), lambda n: then[n - 1]() if n else None)


class WidgetScreen(BaseScreen):
    """A screen of widgets; on a terminal that is too small for any it says so in their place.

    What a subclass composes comes behind ``super().compose()``.
    """

    HORIZONTAL_BREAKPOINTS = [(0, "-too-narrow"), (LEAST[0], "-narrow")]  # noqa: RUF012
    VERTICAL_BREAKPOINTS = [(0, "-too-low"), (LEAST[1], "-low")]  # noqa: RUF012

    def compose(self) -> ComposeResult:
        yield Static(TOO_SMALL, id="too-small")


class TitleRow(Static):
    """``gpuwatch`` and what a screen shows at the left, its state at the right."""

    def __init__(self, left: str) -> None:
        super().__init__()
        self._left, self._right = left, ""

    def say(self, left: str, right: str = "") -> None:
        if (left, right) != (self._left, self._right):
            self._left, self._right = left, right
            self.refresh()

    def render(self) -> Table:
        roles = styles(self.app.current_theme, self.app.no_color)
        row = Table.grid(expand=True)
        row.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
        row.add_column(no_wrap=True, overflow="ellipsis")
        row.add_row(
            Text.assemble((" gpuwatch ", roles["brand"]), (self._left, roles["strong"])),
            Text(f"  {self._right} ", roles["muted"]),
        )
        return row


MAX_LENGTH = 2000
"""Default limit of the text in characters."""


class Field(Input):
    """Textual's input, hidden while it is not in use."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "submit", "done"),
        Binding("escape", "leave", "cancel"),
    ]

    class Left(Message):
        """Esc was pressed."""

    class Cut(Message):
        """Pasted text was too long and was cut."""

        def __init__(self, longest: int) -> None:
            super().__init__()
            self.why = f"at most {longest} characters: the rest is left out"

    def __init__(self) -> None:
        super().__init__(compact=True, select_on_focus=False, max_length=MAX_LENGTH)
        self.cursor_blink = False
        self.display = False
        self.line_end = " "
        """Replaces the ends of lines in pasted text."""

    def write(self, value: str, *, longest: int = MAX_LENGTH, line_end: str = " ") -> None:
        """Show the input with ``value`` and the cursor at its end."""
        self.max_length, self.line_end = longest, line_end
        with self.prevent(Input.Changed):
            self.value = value
        self.cursor_position = len(value)
        self.display = True
        self.screen.set_focus(self, scroll_visible=False)

    def hide(self) -> None:
        """Hide the input."""
        if self.display:
            self.screen.set_focus(None)
            self.display = False

    def stand(self, x: int, y: int, width: int) -> None:
        """Move to column ``x`` and row ``y``, with ``width`` cells."""
        self.styles.offset, self.styles.width = (x, y), max(1, width)

    def action_leave(self) -> None:
        self.post_message(self.Left())

    def on_paste(self, event: events.Paste) -> None:
        """Insert pasted lines as one; text that is too long is cut, with a :class:`Cut`."""
        event.stop()
        event.prevent_default()
        text = self.line_end.join(map(clean, event.text.splitlines()))
        longest = self.max_length or MAX_LENGTH
        fitting = text[: max(0, longest - len(self.value) + len(self.selected_text))]
        self.replace(fitting, *sorted(self.selection))
        if fitting != text:
            self.post_message(self.Cut(longest))


class CanvasScreen(BaseScreen):
    """Subclasses draw in :meth:`paint`."""

    _canvas: Canvas | None = None

    @property
    def room(self) -> tuple[int, int]:
        """Columns and rows of the canvas: the terminal without the footer."""
        width, height = self.app.size
        return width, height - 1

    @abstractmethod
    def paint(self) -> None:
        """Draw the current state, with :meth:`show`."""

    def show(self, lines: Sequence[Line]) -> None:
        """Draw ``lines``; nothing once the canvas is gone, which happens before its screen goes."""
        if self._canvas is not None and self._canvas.is_attached:
            self._canvas.show(lines)

    def compose(self) -> ComposeResult:
        self._canvas = Canvas(ascii=self.gpuwatch.look.ascii)
        yield self._canvas
        yield Footer(compact=True)

    def on_scrolled(self, message: Scrolled) -> None:
        """The wheel does what a screen's ``action_scroll_by(rows)`` does, if it has one."""
        scroll_by = getattr(self, "action_scroll_by", None)
        if scroll_by is not None:
            scroll_by(message.by)

    def on_resize(self) -> None:
        self.call_after_refresh(self.paint)

    on_screen_resume = on_resize


class WritingScreen(CanvasScreen):
    """A canvas screen on which a line of text can be written."""

    def __init__(self) -> None:
        super().__init__()
        self.field = Field()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.field


FIND = " find: "


class FindScreen(WritingScreen):
    """A screen that shows only what has some text, while one is given."""

    _wanted = ""

    def action_find(self) -> None:
        self.field.write(self._wanted)
        self.paint()

    def narrow(self, wanted: str) -> None:
        self._wanted = wanted
        self.paint()

    def on_input_changed(self, message: Field.Changed) -> None:
        self.narrow(message.value)

    def on_input_submitted(self) -> None:
        self.field.hide()
        self.paint()

    def on_field_left(self) -> None:
        self.action_close()

    def action_close(self) -> None:
        """Show all again, or leave."""
        if self._wanted or self.field.display:
            self.field.hide()
            self.narrow("")
        else:
            self.dismiss(None)


_KEYS_WIDTH = 19
"""Most columns of the names of keys."""


class HelpScreen(ModalScreen[None]):
    """Scrolls with the arrows; the key that opened it closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark,f1", "dismiss", show=False),
        Binding("f10", "app.quit", show=False),
    ]

    def __init__(self, keys: Iterable[tuple[str, str]]) -> None:
        """``keys``: keys as they are written, and what they do."""
        super().__init__()
        self._keys = tuple(keys)

    def compose(self) -> ComposeResult:
        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
        table.add_column(max_width=_KEYS_WIDTH)
        for key, text in self._keys:
            table.add_row(Text(key, style="bold"), Text(text))
        with VerticalScroll():
            yield Static(table)
        yield Static("Esc closes, arrows scroll", classes="muted")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


UNUSED = frozenset(("screen.copy_text", "scroll_left", "scroll_right", "page_left", "page_right"))
"""Actions of Textual for which no screen has a use."""
_FOCUS = frozenset({"app.focus_next", "app.focus_previous"})


def text_of(binding: Binding) -> str:
    """What a binding does: its description, and its tooltip where that says more."""
    word = " ".join(map(_small, binding.description.split(" ")))
    first, blank, rest = binding.tooltip.partition(" ")
    more = f"{_small(first)}{blank}{rest}"
    if not word or not more:
        return word or more
    return more if more.startswith(word) else f"{word}: {more}"


def _small(word: str) -> str:
    """Without a capital, as in our texts: Textual's begin with one."""
    return word.lower() if word.istitle() else word


def keys_of(
    bindings: Iterable[ActiveBinding], display: Callable[[Binding], str], *, focus: bool
) -> list[tuple[str, str]]:
    """The names of keys and what they do, those of one action together.

    ``display`` writes a binding's key as the footer does; ``focus``: whether the focus can go to
    another place. Bindings without a description are left out, and keys of other systems. Those of
    the footer come first, those without a tooltip, such as the editing keys of an input, last.
    """
    unused = UNUSED if focus else UNUSED | _FOCUS
    actions: dict[str, tuple[list[str], str]] = {}
    for _, binding, _, _ in sorted(
        bindings, key=lambda each: (not each.binding.tooltip, not each.binding.show)
    ):
        text = text_of(binding)
        ours = not binding.system and not binding.key.startswith("super+")
        if text and ours and binding.action not in unused:
            keys, _ = actions.setdefault(binding.action, ([], text))
            keys.append(key_name(display(binding)))
    told = grouped((text, key) for keys, text in actions.values() for key in keys)
    return [(" ".join(dict.fromkeys(keys)), text) for text, keys in told.items()]


_KEY_NAMES = {"pgup": "PageUp", "pgdn": "PageDown", "⌫": "Backspace"}


def key_name(text: str) -> str:
    """What stands on the keyboard, of a key as the footer writes it: ``Ctrl+C`` of ``^c``."""
    if len(text) == 1:
        return _KEY_NAMES.get(text, text)
    *modifiers, key = text.replace("^", "ctrl+").split("+")
    return "+".join([*map(str.capitalize, modifiers), _KEY_NAMES.get(key, key.capitalize())])


_MOVES = frozenset({"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "tab"})
"""Keys that nobody looks for by words, nor the other keys of what they do."""


class Commands(Provider):
    """Every binding with a description, but those that edit a text."""

    def _commands(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """What it does, the key, and the action; each action once."""
        active = self.screen.active_bindings.values()
        bindings = [each.binding for each in active]
        moves = {each.action for each in bindings if each.key.rpartition("+")[2] in _MOVES}
        # Both leave where a screen has a key of its own for it.
        quit = {"quit"} if any(each.action == "leave" for each in bindings) else set()
        seen = UNUSED | moves | quit | {"command_palette"}
        for node, binding, enabled, _ in active:
            text = "" if isinstance(node, Input) else text_of(binding)
            if enabled and text and binding.action not in seen:
                seen |= {binding.action}
                act = partial(self.app.run_action, binding.action, node)
                yield text, self.app.get_key_display(binding), act

    async def discover(self) -> Hits:
        """All of them, in the order of their declaration."""
        for text, key, act in self._commands():
            yield DiscoveryHit(text, act, help=key)

    async def search(self, query: str) -> Hits:
        """Those that match, the best first."""
        matcher = self.matcher(query)
        for text, key, act in self._commands():
            score = matcher.match(text)
            if score > 0:
                yield Hit(score, matcher.highlight(text), act, help=key)
