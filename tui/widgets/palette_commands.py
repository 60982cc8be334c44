"""What the command palette finds: every key of the screen below it, by what it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rich.text import Text
from textual.command import DiscoveryHit, Hit, Hits, Provider

from gpuwatch.tui.widgets.cells import pad
from gpuwatch.tui.widgets.keys import all_keys, names_of

_MOVES = frozenset({"up", "down", "left", "right", "pageup", "pagedown", "home", "end", "ctrl+p"})
"""Keys that nobody looks for by words."""
_KEY = 18
"""Columns of the keys."""


class Commands(Provider):
    """Each action presses its key."""

    def _known(self) -> Iterable[tuple[str, str, Callable[[], None]]]:
        """Keys as they are written, what they do, and the act."""
        for label, what in all_keys(getattr(self.screen, "KEYS", ())):
            names = names_of(label)
            if names and names[0] not in _MOVES:
                yield label, what, self._pressing(names[0])

    def _pressing(self, key: str) -> Callable[[], None]:
        return lambda: self.app.simulate_key(key)

    async def discover(self) -> Hits:
        """All of them, in the order of the page of keys."""
        for label, what, press in self._known():
            yield DiscoveryHit(_shown(label, what), press, text=what)

    async def search(self, query: str) -> Hits:
        """Those that have every word of ``query``, or the beginning of it."""
        wanted = query.casefold().split()
        for label, what, press in self._known():
            told = f"{label} {what}".casefold()
            if wanted and all(word in told for word in wanted):
                yield Hit(1.0, _shown(label, what), press, text=what)


def _shown(label: str, what: str) -> Text:
    return Text.assemble((pad(label, _KEY), "bold"), what)
