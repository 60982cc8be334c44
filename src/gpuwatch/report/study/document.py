"""The elements of a study report, in order and unescaped, before rendering as text or Markdown."""

from __future__ import annotations

from gpuwatch.analysis.results import Verdict
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.report.tables.grid import Grid as Grid


@dataclass(frozen=True)
class LabelledSentence:
    """A sentence after a label, such as a verdict or a name."""

    word: str
    text: str
    hint: str | None = None
    """The command that fixes the stated problem."""


@dataclass(frozen=True)
class Heading:
    """The subject of the items below."""

    text: str


@dataclass(frozen=True)
class Plot:
    """Changes with their intervals on one axis."""

    contrasts: tuple[tuple[str, Verdict], ...]


Item = LabelledSentence | Heading | Grid | Plot


@dataclass(frozen=True)
class Section:
    """Items under a fixed title, which is empty for the answer."""

    title: str
    items: tuple[Item, ...]
