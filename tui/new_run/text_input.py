"""One line of text being edited: what keys and the clipboard do to it."""

from __future__ import annotations

from dataclasses import replace

from gpuwatch.core.lazy_dataclass import dataclass

LONGEST = 2000
"""Characters that a line takes."""


@dataclass(frozen=True)
class Text:
    """A line and the place of the cursor in it, in characters from its start."""

    value: str = ""
    at: int = 0

    def typed(self, text: str) -> Text:
        """With the printable characters of ``text`` at the cursor; line ends become blanks."""
        kept = "".join(c for c in " ".join(text.splitlines()) if c.isprintable())
        kept = kept[: max(0, LONGEST - len(self.value))]
        return Text(self.value[: self.at] + kept + self.value[self.at :], self.at + len(kept))

    def pressed(self, key: str) -> Text | None:
        """After a key that edits or moves, in Textual's words; ``None``: it is no such key."""
        before, behind = self.value[: self.at], self.value[self.at :]
        if key in ("left", "ctrl+b"):
            return replace(self, at=max(0, self.at - 1))
        if key in ("right", "ctrl+f"):
            return replace(self, at=min(len(self.value), self.at + 1))
        if key in ("home", "ctrl+a"):
            return replace(self, at=0)
        if key in ("end", "ctrl+e"):
            return replace(self, at=len(self.value))
        if key in ("backspace", "ctrl+h"):
            return Text(before[:-1] + behind, max(0, self.at - 1))
        if key in ("delete", "ctrl+d"):
            return Text(before + behind[1:], self.at)
        if key == "ctrl+u":
            return Text(behind, 0)
        if key == "ctrl+k":
            return Text(before, self.at)
        if key == "ctrl+w":
            kept = before.rstrip()
            kept = kept[: kept.rfind(" ") + 1]
            return Text(kept + behind, len(kept))
        return None
