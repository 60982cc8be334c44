"""The help: the keys of the screen below, and what each does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import ActiveBinding, Binding, BindingType
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static


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
        table = Table(box=None, show_header=False, padding=(0, 2, 0, 0))
        for key, text in self._keys:
            table.add_row(Text(key, style="bold", no_wrap=True), Text(text))
        with VerticalScroll():
            yield Static(table)
        yield Static("Esc closes, arrows scroll", classes="muted")

    def on_mount(self) -> None:
        self.query_one(VerticalScroll).focus()


UNUSED = frozenset({"screen.copy_text"})
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
    """Keys as they are written and what they do, those of one action together.

    ``display`` writes a binding's key; ``focus``: whether anything can have the focus. Bindings
    without a description are left out; those without a tooltip, such as the editing keys of an
    input, come last.
    """
    unused = UNUSED if focus else UNUSED | _FOCUS
    actions: dict[str, tuple[list[str], str]] = {}
    for _, binding, _, _ in sorted(bindings, key=lambda each: not each.binding.tooltip):
        text = text_of(binding)
        if text and not binding.system and binding.action not in unused:
            keys, _ = actions.setdefault(binding.action, ([], text))
            keys.append(display(binding))
    return [(" ".join(dict.fromkeys(keys)), text) for keys, text in actions.values()]


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
