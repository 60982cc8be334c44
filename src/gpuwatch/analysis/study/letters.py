"""Letters for long labels: tables and plots name the cells ``A``, ``B``; a legend explains them."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from dataclasses import replace

from gpuwatch.analysis.results import Question, StudyResult
from gpuwatch.core.lazy_dataclass import dataclass

LONGEST = 12
"""Most characters of labels that need no letters."""


@dataclass(frozen=True)
class LegendEntry:
    """A letter and the label that it stands for."""

    letter: str
    label: str
    is_baseline: bool

    @property
    def text(self) -> str:
        """``bare (baseline)``, unescaped."""
        return f"{self.label} (baseline)" if self.is_baseline else self.label


def with_letters(result: StudyResult) -> tuple[StudyResult, tuple[LegendEntry, ...]]:
    """``result`` with letters as the labels of its cells, and their legend.

    A label has the same letter in every question. Sentences keep the labels, so that they can be
    quoted. Without a long label among those compared, nothing changes and the legend is empty.
    """
    several = [question for question in result.questions if len(question.cells) > 1]
    labels = list(dict.fromkeys(cell.label for each in several for cell in each.cells))
    names = letters(labels)
    if names == labels:
        return result, ()
    letter_of = dict(zip(labels, names, strict=True))
    baselines = {each.cells[each.baseline].label for each in several if each.contrasts}
    others = {e.cells[c.other].label for e in several for c in e.contrasts}
    legend = tuple(
        LegendEntry(letter, label, label in baselines - others)
        for label, letter in letter_of.items()
    )
    questions = tuple(
        _lettered(each, letter_of) if len(each.cells) > 1 else each for each in result.questions
    )
    overall = tuple(
        replace(
            each,
            environment=letter_of.get(each.environment, each.environment),
            baseline=letter_of.get(each.baseline, each.baseline),
        )
        for each in result.overall
    )
    return replace(result, questions=questions, overall=overall), legend


def letters(labels: Sequence[str]) -> list[str]:
    """``A``, ``B``, ... ``Z``, ``AA`` for ``labels`` of which one is long, else ``labels``."""
    if max(map(len, labels), default=0) <= LONGEST:
        return list(labels)
    return [_letter(at) for at in range(len(labels))]


def _letter(at: int) -> str:
    before, last = divmod(at, len(string.ascii_uppercase))
    return (_letter(before - 1) if before else "") + string.ascii_uppercase[last]


def _lettered(question: Question, letter_of: Mapping[str, str]) -> Question:
    cells = tuple(replace(cell, label=letter_of[cell.label]) for cell in question.cells)
    return replace(question, cells=cells)
