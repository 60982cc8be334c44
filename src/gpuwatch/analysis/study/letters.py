"""Letters for long labels: tables and plots name the cells ``A``, ``B``; a legend explains them."""

from __future__ import annotations

import re
import string
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.results import Cell, Run, StudyResult
from gpuwatch.analysis.summary.failure import command_of
from gpuwatch.analysis.summary.identity import headings
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean

LONGEST = 12
"""Most characters of labels that need no letters."""
_ENVIRONMENTS = {"bare", "docker", "apptainer", "singularity", "charliecloud"}
"""Names that are no words of a sentence."""


@dataclass(frozen=True)
class LegendEntry:
    """A letter and the label that it stands for."""

    letter: str
    label: str
    is_baseline: bool
    questions: tuple[str, ...] = ()
    """Labels of the questions that have it."""
    names: frozenset[str] = frozenset()
    """What notes on cells and questions call it."""

    @property
    def text(self) -> str:
        """``bare (baseline)``, unescaped."""
        return f"{self.label} (baseline)" if self.is_baseline else self.label


def with_letters(
    result: StudyResult, *, each_run: bool = False
) -> tuple[StudyResult, tuple[LegendEntry, ...]]:
    """``result`` with letters as the labels of its cells, and their legend.

    A label has the same letter in every question; ``each_run``: every run has its own. So has every
    cell of several programs put together by hand, as letters have to stay across commands.
    Sentences keep the labels, so that they can be quoted. Without a long label among those
    compared, nothing changes and the legend is empty. Of runs put together by hand it has command,
    file and start, and letters go by their order.
    """
    by_hand = result.plan is None
    commands = by_hand and any(each.workload["kind"] == "command" for each in result.questions)
    apart = each_run or (commands and len(result.questions) > 1)
    asked = [each for each in result.questions if apart or len(each.cells) > 1]
    sessions = result.sessions if each_run or by_hand else ()
    order = {session.path: at for at, session in enumerate(sessions)}

    def first(cell: Cell) -> str:
        return cell.runs[0].session.path if cell.runs else ""

    def key(cell: Cell) -> str:
        return (apart and first(cell)) or cell.label

    found = grouped((key(of), (question, of)) for question in asked for of in question.cells)
    keys = sorted(found, key=lambda each: order.get(first(found[each][0][1]), len(order)))
    headed = dict(zip(order, headings(sessions), strict=True)) if each_run else {}
    names = [headed.get(each, found[each][0][1].label) for each in keys]
    if letters(names) == names:
        return result, ()
    letter_of = {each: _letter(at) for at, each in enumerate(keys)}
    baselines = {key(each.cells[each.baseline]) for each in asked if each.contrasts}
    others = {key(each.cells[c.other]) for each in asked for c in each.contrasts}
    legend = []
    for each, letter in letter_of.items():
        label, runs = found[each][0][1].label, [run for _, cell in found[each] for run in cell.runs]
        of = tuple(question.label for question, _ in found[each])
        told = headed.get(each, ", ".join((*of, label)) if apart else label)
        if by_hand and len(runs) == 1:
            told = _told(label, runs[0], alone=each_run)
        called = frozenset((label, *of[:each_run]))
        legend.append(LegendEntry(letter, told, each in baselines - others, of, called))
    questions = tuple(
        replace(
            each,
            cells=tuple(replace(of, label=letter_of.get(key(of), of.label)) for of in each.cells),
        )
        if each in asked
        else each
        for each in result.questions
    )
    overall = tuple(
        replace(
            each,
            environment=letter_of.get(each.environment, each.environment),
            baseline=letter_of.get(each.baseline, each.baseline),
        )
        for each in result.overall
    )
    return replace(result, questions=questions, overall=overall), tuple(legend)


def in_letters(notes: Sequence[str], legend: Sequence[LegendEntry]) -> list[str]:
    """``notes`` with letters in place of names that only one entry has; not of a name that may be a
    word of the sentence. A question and its run may have one letter: it is told once."""
    count = Counter(name for each in legend for name in each.names)
    letter_of = {
        name: each.letter
        for each in legend
        for name in each.names
        if count[name] == 1 and (not name.isalpha() or name in _ENVIRONMENTS)
    }
    named = "|".join(map(re.escape, sorted(letter_of, key=len, reverse=True))) or "(?!)"
    anywhere = re.compile(rf"(^|: |, | in | of | and )({named})(?![\w.=#/-])")
    told = (anywhere.sub(lambda found: found[1] + letter_of[found[2]], note) for note in notes)
    return [re.sub(r"^(\w+): (?=the run of \1\b)", "", note) for note in told]


def _told(label: str, run: Run, *, alone: bool) -> str:
    """The cell, command, file, environment and start of a run, none within another; ``alone``: the
    command, with the name of the run, first."""
    session, given = run.session, run.session.given
    where = session.environment.get("label")
    label = "" if label == where else label
    ran = filter(None, (session.workload.get("label"), command_of(session.workload)))
    first = [label, ": ".join(map(str, ran))]
    if alone:
        said = given.name and label.startswith(given.name)
        first = [given.heading(first[1]), "" if said else label]
    names = [clean(each) for each in (*first, Path(session.path).stem, where) if each]
    told = [
        each for each in dict.fromkeys(names) if not any(each in of for of in names if of != each)
    ]
    start = [f"{session.started[:16].replace('T', ' ')} UTC"] if session.started else []
    return ", ".join((*told, *start))


def letters(labels: Sequence[str]) -> list[str]:
    """``A``, ``B``, ... ``Z``, ``AA`` for ``labels`` of which one is long, else ``labels``."""
    if max(map(len, labels), default=0) <= LONGEST:
        return list(labels)
    return [_letter(at) for at in range(len(labels))]


def _letter(at: int) -> str:
    before, last = divmod(at, len(string.ascii_uppercase))
    return (_letter(before - 1) if before else "") + string.ascii_uppercase[last]
