"""A line of text that is edited in the foot of the home screen."""

from __future__ import annotations

import re
from dataclasses import replace

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.session.study.label import (
    LONGEST_NAME,
    LONGEST_NOTE,
    LONGEST_TAG,
    MOST_TAGS,
    NONE,
    named,
    noted,
    retagged,
    tagged,
)
from gpuwatch.tui.home.list import Item
from gpuwatch.tui.widgets.line import Line

LONGEST = 2000
"""Characters of a line that is no label: a filter."""
_LONGEST = {"name": LONGEST_NAME, "tags": MOST_TAGS * (LONGEST_TAG + 1) - 1, "note": LONGEST_NOTE}
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
    trouble: str = ""
    """Why what was written is not taken as it is."""

    @property
    def longest(self) -> int:
        """Characters that it takes."""
        return _LONGEST.get(self.what, LONGEST)

    @staticmethod
    def of(what: str, text: str, target: Item | None = None) -> Edit:
        """The cursor behind ``text``."""
        return Edit(what, text, len(text), target)

    def pressed(self, key: str, character: str | None) -> Edit:
        """After a key; the same where the key is of no meaning here."""
        text, at = self.text, self.at
        if key == "backspace" and at:
            return self._changed(text[: at - 1] + text[at:], at - 1)
        if key == "delete":
            return self._changed(text[:at] + text[at + 1 :], at)
        if key == "ctrl+u":
            return self._changed(text[at:], 0)
        if key == "ctrl+w":
            head = text[:at].rstrip()
            head = head[: max(head.rfind(" "), head.rfind("\n")) + 1]
            return self._changed(head + text[at:], len(head))
        moves = {"left": at - 1, "right": at + 1, "home": 0, "ctrl+a": 0}
        moves |= {"end": len(text), "ctrl+e": len(text)}
        if key in moves:
            return replace(self, at=max(0, min(len(text), moves[key])))
        return self.written(character) if character and character.isprintable() else self

    def written(self, more: str) -> Edit:
        """With ``more`` put in: a note keeps its lines, all else is one line. A cut is said."""
        more = ("\n" if self.what == "note" else " ").join(map(clean, more.splitlines()))
        kept = more[: max(0, self.longest - len(self.text))]
        text = self.text[: self.at] + kept + self.text[self.at :]
        cut = f"at most {self.longest} characters: the rest is left out"
        return self._changed(text, self.at + len(kept), "" if kept == more else cut)

    def _changed(self, text: str, at: int, trouble: str = "") -> Edit:
        return replace(self, text=text, at=at, trouble=trouble)

    def refused(self) -> str:
        """Why it can be no label; empty: it can be one, or is none."""
        try:
            if self.what == "name":
                named(self.text)
            elif self.what == "note":
                noted(self.text)
            elif self.what == "tags":
                retagged(NONE, [tagged(each) for each in tags_of(self.text)], ())
        except UsageError as error:
            return str(error)
        return ""


def tags_of(text: str) -> list[str]:
    """The tags of a line; a plus in front of one is of the command line."""
    return [tag.removeprefix("+") for tag in text.split()]


def label_command(edit: Edit) -> tuple[str, ...] | None:
    """The command that writes a label for what it was begun for; ``None``: nothing changes."""
    item = edit.target
    of = None if item is None else item.entry or item.study
    if item is None or of is None:
        return None
    path, text = str(item.path), edit.text.strip()
    if edit.what == "name":
        return None if text == of.name else ("rename", path, "--", text)
    if edit.what == "note":
        return None if text == of.note else ("note", path, "--", text)
    wanted = tags_of(text)
    changes = [f"+{tag}" for tag in wanted if tag not in of.tags]
    changes += [f"-{tag}" for tag in of.tags if tag not in wanted]
    return ("tag", path, *changes) if changes else None


def leaves(key: str) -> bool:
    """Whether a key ends the writing: Esc, also where a letter came so soon behind it that a
    terminal's reader takes the two for Alt and that letter."""
    return key == "escape" or re.fullmatch(r"alt\+(shift\+)?.", key) is not None


def edit_row(edit: Edit, width: int) -> Line:
    """The line with its cursor, which stays in sight; the end of a line within it is a sign."""
    row = Line(width).add(f" {edit.what}: ", "key")
    room = max(1, row.left - 1)
    first = max(0, edit.at - room + 1)
    shown = edit.text[first : first + room].replace("\n", LINE_END) + " "
    here = edit.at - first
    return row.add(shown[:here]).add(shown[here : here + 1], "select").add(shown[here + 1 :])
