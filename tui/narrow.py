"""Sending only the changed cells of a row.

Textual sends each changed row of a widget from the widget's left edge on. On a screen that is one
widget that is most of the row for one new column of a history: five times the bytes.
"""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.control import Control
from textual._compositor import ChopsUpdate, CompositorUpdate
from textual.screen import Screen


class NarrowUpdate(ChopsUpdate):
    """A partial update whose rows are cut at both ends."""

    def render_segments(self, console: Console) -> str:
        sequences: list[str] = []
        for y, x1, x2 in self.spans:
            for end, (x, strip) in zip(self.chop_ends[y], self.chops[y].items(), strict=False):
                if strip is None or x >= x2 or end <= x1:
                    continue
                start = max(x, x1)
                sequences.append(Control.move_to(start, y).segment.text)
                sequences.append(strip.crop(start - x, min(end, x2) - x).render(console))
        return "".join(sequences)


def send_only_changes(screen: Screen[Any]) -> None:
    """Let ``screen`` send narrow updates from now on."""
    compositor = screen._compositor
    whole = compositor.render_partial_update

    def narrow() -> CompositorUpdate | None:
        update = whole()
        if type(update) is not ChopsUpdate:
            return update
        return NarrowUpdate(update.chops, update.spans, update.chop_ends)

    compositor.render_partial_update = narrow  # type: ignore[method-assign,assignment]
