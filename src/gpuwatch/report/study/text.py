"""A study for a terminal: the answer first, then its basis."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Iterator, Sequence

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study import interval_plot
from gpuwatch.analysis.study.notes import conditions, doubts
from gpuwatch.core.text import clean
from gpuwatch.report.session import side_by_side
from gpuwatch.report.study import (
    about,
    answer,
    devices,
    facts,
    origin,
    ranks,
    tables,
    why,
)
from gpuwatch.report.study.compared import compared, lettered, one_run_each
from gpuwatch.report.study.document import Grid, Heading, Item, LabelledSentence, Plot, Section
from gpuwatch.report.tables.grid import grid_text

_NARROWEST, _WIDEST = 40, 100
"""Limits on the width of sentences, in columns."""
_LONGEST_WORD = 24
_LONGEST_TEXT = 1000
_MOST_DOUBTS = 6


def terminal(result: StudyResult, *, columns: int = 80, short: bool = False) -> str:
    """Sentences, an interval plot, and for each question its tables, runs and explanation.

    No table is wider than ``columns``; only the commands of hints may be. If every cell has one
    run, the sessions are shown side by side instead. ``short`` gives only the answer, or for single
    runs their main figures.
    """
    columns = max(_NARROWEST, columns)
    result, legend = lettered(result)
    if one_run_each(result):
        lines = _items(answer.answer(result), columns)
        lines += [line for each in result.questions for line in _items(about.costs(each), columns)]
        lines += [] if short else _items(devices.devices(result), columns)
        if short:
            beside = side_by_side.brief(compared(result), columns=columns)
            beside += _doubts(result, columns)
        else:
            notices = [*result.notices, *conditions(result.questions)]
            beside = side_by_side.terminal(compared(result), notices, columns=columns)
        return "\n".join([*lines, "", beside]) if lines else beside
    lines = [part for each in answer.heading(result) for part in _wrap("", each, columns)]
    lines += [_short(each, columns) for each in origin.lines(result)]
    sections = _answers(result) if short else _sections(result)
    for section in (answer.legend(legend), *sections):
        if isinstance(section, Heading):
            lines += ["", clean(section.text, 200), "-" * min(columns, len(clean(section.text)))]
        elif section.items and section.title:
            lines += ["", section.title]
            lines += [f"  {line}".rstrip() for line in _items(section, columns - 2)]
        elif section.items:
            lines += ["", *_items(section, columns)]
    notes = _doubts(result, columns) if short else ""
    return "\n".join(lines) + "\n" + (f"\n{notes}" if notes else "")


def _doubts(result: StudyResult, columns: int) -> str:
    """Notes on the reliability of the answer, without the outcomes of single runs shown above."""
    shown = [each.status.text for each in result.sessions]
    shown += [f"{each.label}: {each.status.text}" for each in result.sessions]
    notes = [each for each in doubts(result) if each not in shown or not one_run_each(result)]
    if len(notes) > _MOST_DOUBTS:
        rest = len(notes) - _MOST_DOUBTS + 1
        notes = [*notes[: _MOST_DOUBTS - 1], f"{rest} more notes: summary.md has all of them"]
    return "".join(f"{line}\n" for each in notes for line in _wrap("note: ", each, columns))


def _short(text: str, columns: int) -> str:
    line = clean(text)
    return line if len(line) <= columns else f"{line[: columns - 1]}\u2026"


def _answers(result: StudyResult) -> Iterator[Section | Heading]:
    yield answer.answer(result)
    yield about.sweeps(result)


def _sections(result: StudyResult) -> Iterator[Section | Heading]:
    yield from _answers(result)
    yield devices.devices(result)
    order = tables.orders(result.plan)
    for question in result.questions:
        if len(result.questions) > 1:
            yield Heading(question.label)
        yield about.costs(question)
        yield why.evidence(question)
        yield why.kernels(question)
        yield ranks.ranks(question)
        yield facts.listed(question)
        yield tables.cells(question)
        yield tables.runs(question, order)
        yield tables.verdicts(question)
    yield about.noise(result)
    yield about.notes(result)
    yield about.method(result)


def _items(section: Section, columns: int) -> list[str]:
    width = 0
    lines: list[str] = []
    for at, item in enumerate(section.items):
        before = section.items[at - 1] if at else None
        if before is None or isinstance(before, Heading):
            width = _width(section.items[at:])
        apart = isinstance(item, (Grid, Plot)) or isinstance(before, (Grid, Plot))
        new = _item(item, width, columns)
        lines += ["", *new] if apart and lines and new else new
    return lines


def _width(items: Sequence[Item]) -> int:
    """Width of the labels up to the next heading."""
    until = itertools.takewhile(lambda item: not isinstance(item, Heading), items)
    words = [clean(item.word) for item in until if isinstance(item, LabelledSentence)]
    return max((len(word) for word in words if len(word) <= _LONGEST_WORD), default=0)


def _item(item: Item, width: int, columns: int) -> list[str]:
    if isinstance(item, LabelledSentence):
        word = clean(item.word)
        fits = 0 < len(word) <= _LONGEST_WORD
        text = item.text if fits or not word else f"{word}: {item.text}"
        lines = _wrap(f"{word:{width}}  " if fits else "", text, columns)
        return [*lines, f"    Fix: {clean(item.hint)}"] if item.hint else lines
    if isinstance(item, Heading):
        return _wrap("", f"{item.text}:", columns)
    if isinstance(item, Plot):
        return interval_plot.rows(item.contrasts, columns)
    return grid_text(item, columns).split("\n")


def _wrap(name: str, text: str, columns: int) -> list[str]:
    """``text`` wrapped after ``name``; a per cent sign stays with its number."""
    lines = textwrap.wrap(
        clean(text, _LONGEST_TEXT).replace(" %", "\u00a0%"),
        min(columns, _WIDEST),
        initial_indent=name,
        subsequent_indent=" " * len(name) or "  ",
        break_on_hyphens=False,
        break_long_words=False,
    )
    return [line.replace("\u00a0", " ") for line in lines] or [name.rstrip()]
