"""What is written in the foot of the home screen: a filter, or a label."""

from __future__ import annotations

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.study.label import (
    LONGEST_NAME,
    LONGEST_NOTE,
    LONGEST_TAG,
    MOST_TAGS,
    NONE,
    clean_name,
    clean_note,
    clean_tag,
    with_tags,
)
from gpuwatch.tui.home.list import Item
from gpuwatch.tui.widgets.base_screen import MAX_LENGTH

_LONGEST = {"name": LONGEST_NAME, "tags": MOST_TAGS * (LONGEST_TAG + 1) - 1, "note": LONGEST_NOTE}
LINE_END = "↵"
"""Stands for the end of a line in a note of several."""


@dataclass(frozen=True)
class Edit:
    """What is being written, and for what."""

    what: str
    """What stands in front of the line: ``find``, ``name``, ``tags`` or ``note``."""
    text: str = ""
    target: Item | None = None
    """The session or study that a label is written for, as it was when that began."""
    trouble: str = ""
    """Why what was written is not taken as it is."""

    @property
    def longest(self) -> int:
        """Characters that it takes."""
        return _LONGEST.get(self.what, MAX_LENGTH)

    def refused(self) -> str:
        """Why it can be no label; empty: it can be one, or is none."""
        try:
            if self.what == "name":
                clean_name(self.text)
            elif self.what == "note":
                clean_note(self.text)
            elif self.what == "tags":
                with_tags(NONE, [clean_tag(each) for each in tags_of(self.text)], ())
        except UsageError as error:
            return str(error)
        return ""


def tags_of(text: str) -> list[str]:
    """The tags of a line; a plus in front of one is of the command line."""
    return [tag.removeprefix("+") for tag in text.split()]


def label_command(edit: Edit) -> tuple[str, ...] | None:
    """The command that writes a label for what it was begun for; ``None``: nothing changes."""
    item = edit.target
    if item is None:
        return None
    of, path, text = item.of, str(item.path), edit.text.strip()
    if edit.what == "name":
        return None if text == of.name else ("rename", path, "--", text)
    if edit.what == "note":
        return None if text == of.note else ("note", path, "--", text)
    wanted = tags_of(text)
    changes = [f"+{tag}" for tag in wanted if tag not in of.tags]
    changes += [f"-{tag}" for tag in of.tags if tag not in wanted]
    return ("tag", path, *changes) if changes else None
