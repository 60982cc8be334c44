"""A line of text that is edited in the foot of the home screen."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuwatch.text import clean
from gpuwatch.tui.home_list import Item
from gpuwatch.tui.line import Line

LONGEST = 2000
LINE_END = "↵"
"""Stands for the end of a line in a note of several."""


@dataclass(frozen=True)
class Edit:
    """What is being written, and for what."""

    what: str
    """What stands in front of the line: ``find``, ``search``, ``name``, ``tags`` or ``note``."""
    text: str = ""
    at: int = 0
    """Characters before the cursor."""
    target: Item | None = None
    """The session or study that a label is written for, as it was when that began."""

    @staticmethod
    def of(what: str, text: str, target: Item | None = None) -> Edit:
        """The cursor behind ``text``."""
        return Edit(what, text, len(text), target)

    def pressed(self, key: str, character: str | None) -> Edit:
        """After a key; the same where the key is of no meaning here."""
        text, at = self.text, self.at
        if key == "backspace" and at:
            return replace(self, text=text[: at - 1] + text[at:], at=at - 1)
        if key == "delete":
            return replace(self, text=text[:at] + text[at + 1 :])
        if key == "ctrl+u":
            return replace(self, text=text[at:], at=0)
        if key == "ctrl+w":
            head = text[:at].rstrip()
            head = head[: max(head.rfind(" "), head.rfind("\n")) + 1]
            return replace(self, text=head + text[at:], at=len(head))
        moves = {"left": at - 1, "right": at + 1, "home": 0, "ctrl+a": 0}
        moves |= {"end": len(text), "ctrl+e": len(text)}
        if key in moves:
            return replace(self, at=max(0, min(len(text), moves[key])))
        return self.written(character) if character and character.isprintable() else self

    def written(self, more: str) -> Edit:
        """With ``more`` put in, on one line."""
        more = clean(more.replace("\n", " "))[: max(0, LONGEST - len(self.text))]
        text = self.text[: self.at] + more + self.text[self.at :]
        return replace(self, text=text, at=self.at + len(more))


def edit_row(edit: Edit, width: int) -> Line:
    """The line with its cursor, which stays in sight; the end of a line within it is a sign."""
    row = Line(width).add(f" {edit.what}: ", "key")
    room = max(1, row.left - 1)
    first = max(0, edit.at - room + 1)
    shown = edit.text[first : first + room].replace("\n", LINE_END) + " "
    here = edit.at - first
    return row.add(shown[:here]).add(shown[here : here + 1], "select").add(shown[here + 1 :])
