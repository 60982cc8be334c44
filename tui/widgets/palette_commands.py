"""The actions of the screen below, in Textual's command palette."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from textual.command import DiscoveryHit, Hit, Hits, Provider

from gpuwatch.tui.widgets.help import UNUSED, text_of

_MOVES = frozenset({"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "tab"})
"""Keys that nobody looks for by words, nor the other keys of what they do."""


class Commands(Provider):
    """Every binding with a description."""

    def _commands(self) -> Iterator[tuple[str, str, Callable[[], Any]]]:
        """What it does, the key, and the action; each action once."""
        active = self.screen.active_bindings.values()
        bindings = [each.binding for each in active]
        moves = {each.action for each in bindings if each.key.rpartition("+")[2] in _MOVES}
        seen = UNUSED | moves
        for node, binding, enabled, _ in active:
            text = text_of(binding)
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
