"""A study for a terminal: what it says first, then what that rests on."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from gpuwatch.analysis import interval_plot
from gpuwatch.analysis.results import StudyResult
from gpuwatch.report import side_by_side, study_about, study_answer, study_tables, study_why
from gpuwatch.report.fitted import fitted
from gpuwatch.report.study_compared import compared, one_run_each
from gpuwatch.report.study_document import Grid, Heading, Item, Plot, Said, Section
from gpuwatch.text import clean

_NARROWEST, _WIDEST = 40, 100
"""Columns of sentences, however wide the terminal is."""
_LONGEST_WORD = 20
_LONGEST_TEXT = 1000


def terminal(result: StudyResult, *, columns: int = 80) -> str:
    """Sentences, an interval plot, and per question its table, runs and explanation.

    No line of a table is wider than ``columns``; only commands that mend something may be. Where
    every cell has one run, the sentences and the sessions side by side.
    """
    columns = max(_NARROWEST, columns)
    if one_run_each(result):
        lines = _items(study_answer.answer(result), columns)
        beside = side_by_side.terminal(compared(result), result.notices, columns=columns)
        return "\n".join([*lines, "", beside]) if lines else beside
    lines = [part for each in study_answer.heading(result) for part in _wrap("", each, columns)]
    for section in _sections(result):
        if isinstance(section, Heading):
            lines += ["", clean(section.text, 200), "-" * min(columns, len(clean(section.text)))]
        elif section.items:
            lines += ["", section.title] if section.title else [""]
            lines += _items(section, columns)
    return "\n".join(lines) + "\n"


def _sections(result: StudyResult) -> Iterator[Section | Heading]:
    yield study_answer.answer(result)
    yield study_about.sweeps(result)
    order = study_tables.orders(result.plan)
    for question in result.questions:
        if len(result.questions) > 1:
            yield Heading(question.label)
        yield study_why.evidence(question)
        yield study_why.start_up(question)
        yield study_why.kernels(question)
        yield study_why.differences(question)
        yield study_tables.cells(question)
        yield study_tables.runs(question, order)
        yield study_tables.verdicts(question)
    yield study_about.noise(result)
    yield study_about.notes(result)
    yield study_about.method(result)


def _items(section: Section, columns: int) -> list[str]:
    said = [clean(item.word) for item in section.items if isinstance(item, Said)]
    width = min(_LONGEST_WORD, max(map(len, said), default=0))
    lines: list[str] = []
    for item in section.items:
        if isinstance(item, (Grid, Plot)) and lines:
            lines.append("")
        lines += _item(item, width, columns)
        if isinstance(item, (Grid, Plot)):
            lines.append("")
    return lines[:-1] if lines and not lines[-1] else lines


def _item(item: Item, width: int, columns: int) -> list[str]:
    if isinstance(item, Said):
        name = f"{clean(item.word):{width}}  " if width else ""
        lines = _wrap(name, item.text, columns)
        return [*lines, f"    mend: {clean(item.mend)}"] if item.mend else lines
    if isinstance(item, Heading):
        return _wrap("", f"{item.text}:", columns)
    if isinstance(item, Plot):
        return interval_plot.rows(item.contrasts, columns)
    head = [clean(cell) for cell in item.head]
    rows = [["\n".join(map(clean, cell.split("\n"))) for cell in row] for row in item.rows]
    return fitted(head, rows, columns, repeat_last=item.repeat_last).split("\n")


def _wrap(name: str, text: str, columns: int) -> list[str]:
    return textwrap.wrap(
        clean(text, _LONGEST_TEXT),
        min(columns, _WIDEST),
        initial_indent=name,
        subsequent_indent=" " * len(name) if len(name) <= _LONGEST_WORD + 2 else "  ",
        break_on_hyphens=False,
        break_long_words=False,
    ) or [name.rstrip()]
