"""Which cells of a row changed, and what stands in them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby
from typing import NamedTuple

from rich.cells import cell_len

from gpuwatch.tui.widgets.line import Span

_GAP = 5
"""Equal cells between two changes that cost less to send than to jump over."""
_CHUNK = 8
"""Cells that are compared at once: most of a row is as it was."""
_NARROW = re.compile(
    "[\u0020-\u007e\u00a0-\u00ac\u00ae-\u02ff\u2010-\u2027\u2190-\u22ff\u2500-\u25fc\u2800-\u28ff]*"
).fullmatch
"""Texts of letters, blocks and lines, each of which is one cell wide."""


def narrow(text: str) -> bool:
    """Whether every terminal has each character of ``text`` in one cell."""
    return (text.isascii() and text.isprintable()) or _NARROW(text) is not None


class _Letters(dict[str, str]):
    """A letter for each role."""

    def __missing__(self, role: str) -> str:
        letter = self[role] = chr(len(self) + 1)
        _ROLES[letter] = role
        return letter


_ROLES: dict[str, str] = {}
_LETTERS = _Letters()
_TEXT = _LETTERS["text"]


class Cells(NamedTuple):
    """A row cell by cell: as many characters in both, a wide one stands in each of its cells."""

    text: str
    roles: str
    """A letter for each cell's role."""
    narrow: bool
    """Each character of the row is one cell wide."""

    def filled(self, width: int) -> Cells:
        """With blanks up to ``width``."""
        more = width - len(self.text)
        if more <= 0:
            return self
        return Cells(self.text + " " * more, self.roles + _TEXT * more, self.narrow)

    def spans(self, start: int, end: int) -> list[Span]:
        """What stands from ``start`` to ``end``, of a narrow row; behind its end are blanks."""
        text, roles = self.text[start:end], self.roles[start:end]
        if roles and roles == roles[0] * len(roles):
            found = [(text, _ROLES[roles[0]])]
        else:
            found, at = [], 0
            for letter, run in groupby(roles):
                size = sum(1 for _ in run)
                found.append((text[at : at + size], _ROLES[letter]))
                at += size
        lacking = end - start - len(text)
        return [*found, (" " * lacking, "text")] if lacking else found


def cells_of(row: Iterable[Span]) -> Cells:
    """The cells of a row of spans."""
    texts, roles, all_narrow = [], [], True
    for text, role in row:
        if not narrow(text):
            all_narrow = False
            text = "".join(each * max(1, cell_len(each)) for each in text)
        texts.append(text)
        roles.append(_LETTERS[role] * len(text))
    return Cells("".join(texts), "".join(roles), all_narrow)


def changed(before: Cells, after: Cells, width: int) -> list[tuple[int, int]]:
    """The stretches of columns, up to ``width``, in which two rows differ; a short gap does not
    split one."""
    old, new = before.filled(len(after.text)), after.filled(len(before.text))
    found: list[tuple[int, int]] = []
    for chunk in range(0, min(width, len(new.text)), _CHUNK):
        end = chunk + _CHUNK
        if old.text[chunk:end] == new.text[chunk:end] and (
            old.roles[chunk:end] == new.roles[chunk:end]
        ):
            continue
        for at in range(chunk, min(end, width, len(new.text))):
            if old.text[at] == new.text[at] and old.roles[at] == new.roles[at]:
                continue
            if found and at - found[-1][1] < _GAP:
                found[-1] = (found[-1][0], at + 1)
            else:
                found.append((at, at + 1))
    return found
