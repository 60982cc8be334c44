"""What a report of a study is made of, before it is text or Markdown: unescaped, in order."""

from __future__ import annotations

from gpuwatch.analysis.results import Verdict
from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence behind a word, such as a verdict or a name."""

    word: str
    text: str
    hint: str | None = None
    """The command that fixes what the sentence says."""


@dataclass(frozen=True)
class Heading:
    """What the items below are of."""

    text: str


@dataclass(frozen=True)
class Grid:
    """A table. A row with nothing behind its first cell is a heading.

    A newline in a cell begins a line, a tab one where the table has not the room for a space.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Plot:
    """Changes with their intervals on one axis."""

    contrasts: tuple[tuple[str, Verdict], ...]


Item = LabelledSentence | Heading | Grid | Plot


@dataclass(frozen=True)
class Section:
    """Items under a title that is gpuwatch's own; the answer has none."""

    title: str
    items: tuple[Item, ...]
