"""The blocks of a report, in order and unescaped: what the text, Markdown and page write.

A format leaves out what it cannot draw: curves, dots and heat maps are of the page alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.analysis.ranks.ranks import Heat
from gpuwatch.analysis.results import Kind, Question, Sweep, Verdict
from gpuwatch.analysis.study.letters import LegendEntry
from gpuwatch.core.lazy_dataclass import dataclass

CHANGED = "changed"
"""A cell that states a change of which nothing says whether it is better or worse."""
TEXT, MARKDOWN, PAGE = "text", "markdown", "page"
"""Formats that show a section."""


@dataclass(frozen=True)
class Sentence:
    """A sentence after a label, such as a verdict or a name."""

    word: str
    text: str
    hint: str | None = None
    """The command that fixes the stated problem."""
    kind: Kind | None = None
    """Of the verdict that ``word`` states."""
    how: str = ""
    """How it was obtained."""


@dataclass(frozen=True)
class Heading:
    """The subject of the items below."""

    text: str


@dataclass(frozen=True)
class Table:
    """A row with only its first cell filled is a heading.

    A newline in a cell starts a new line; a tab does so if there is no room for a space.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    kept: tuple[int, ...] = ()
    """Columns that each part of a split table has, besides the first one: the baseline, methods."""
    marks: Mapping[tuple[int, int], str] = field(default_factory=dict)
    """By row and column what a cell states: a change, ``better`` or ``worse``."""


@dataclass(frozen=True)
class Change:
    """A row of a chart of changes."""

    name: str
    against: str
    verdict: Verdict
    ratios: tuple[float | None, ...] = ()
    """Within the blocks, one by one."""


@dataclass(frozen=True)
class Intervals:
    """Changes with their intervals on one axis."""

    changes: tuple[Change, ...]


@dataclass(frozen=True)
class Bar:
    name: str
    value: float
    text: str
    """The value as people read it."""


@dataclass(frozen=True)
class Bars:
    """Values on a common axis from zero."""

    title: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True)
class Dots:
    """The value of every run of a question."""

    question: Question


@dataclass(frozen=True)
class Curves:
    """The gauges of every run of a question."""

    question: Question


@dataclass(frozen=True)
class SweepChart:
    """Throughput by the value of a parameter."""

    sweep: Sweep


@dataclass(frozen=True)
class HeatMap:
    """The own time of ranks over time."""

    label: str
    heat: Heat


@dataclass(frozen=True)
class Rooflines:
    """A run of each cell in one picture."""

    rooflines: tuple[Roofline, ...]


Item = (
    Sentence | Heading | Table | Intervals | Bars | Dots | Curves | SweepChart | HeatMap | Rooflines
)


@dataclass(frozen=True)
class Section:
    """Items under a title, which may be empty."""

    title: str
    items: Sequence[Item]
    of: str = ""
    """Label of the question, where there are several."""
    folded: bool = True
    """Whether Markdown folds it."""
    closed: bool = False
    """Whether the page shows it only when it is opened."""
    formats: tuple[str, ...] = (TEXT, MARKDOWN, PAGE)


@dataclass(frozen=True)
class Figure:
    """One of the main figures of a single run."""

    name: str
    value: str
    """``unavailable`` if unknown."""
    note: str
    """How it was obtained, or why it is unknown."""


@dataclass(frozen=True)
class Document:
    title: str
    """``B against A``."""
    asked: tuple[str, ...] = ()
    """The study's name, and title and question of its plan."""
    facts: tuple[tuple[str, str], ...] = ()
    """When, where and by which command it was made."""
    origin: tuple[str, ...] = ()
    """The main ones of ``facts`` in a line or two."""
    legend: tuple[LegendEntry, ...] = ()
    figures: tuple[Figure, ...] = ()
    """Of a single run."""
    chart: Intervals | Bars | None = None
    answer: tuple[Item, ...] = ()
    """Verdicts in words."""
    missing: tuple[Sentence, ...] = ()
    """Runs that did not take place, and those to come."""
    sections: tuple[Section, ...] = ()
