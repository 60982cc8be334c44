"""What the command palette finds: every key of the screen below it, by what it does."""

from __future__ import annotations

from collections.abc import Callable

from textual.command import DiscoveryHit, Hit, Hits, Provider

from gpuwatch.tui.keys import all_keys, names_of

_MOVES = frozenset({"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "ctrl+p"})
"""Keys that nobody looks for by words."""


class Commands(Provider):
    """Each action presses its key."""

    def _known(self) -> list[tuple[str, str, Callable[[], None]]]:
        """Words, keys as they are written, and what to do."""
        keys = getattr(self.screen, "KEYS", ())
        found = []
        for label, what in all_keys(keys):
            names = names_of(label)
            if names and names[0] not in _MOVES:
                found.append((what, label, self._pressing(names[0])))
        return found

    def _pressing(self, key: str) -> Callable[[], None]:
        return lambda: self.app.simulate_key(key)

    async def discover(self) -> Hits:
        """All of them, in the order of the page of keys."""
        for what, label, press in self._known():
            yield DiscoveryHit(f"{label:<16} {what}", press, text=what)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for what, label, press in self._known():
            score = matcher.match(what)
            if score > 0:
                yield Hit(score, matcher.highlight(what), press, text=what, help=label)
