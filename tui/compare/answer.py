"""What the compare screen shows of a study, and the runs for its pages of histories and kernels."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.explain.kernels import nearest_profiled
from gpuwatch.analysis.results import Cell, StudyResult
from gpuwatch.analysis.study.notes import one_by_one
from gpuwatch.analysis.summary.identity import baseline
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.report.document.blocks import Document, Table
from gpuwatch.report.document.study import columns, document, lettered, verdict_first
from gpuwatch.report.text import Row, parts
from gpuwatch.tui.compare.histories import Case, Group
from gpuwatch.tui.compare.kernel_differences import Pair
from gpuwatch.tui.feed.study import goes_on
from gpuwatch.tui.widgets.line import Line
from gpuwatch.tui.widgets.palette import VERDICTS

_MARGIN = 2
"""Columns on the left for the marks of verdicts."""
_AXIS = str.maketrans("<>|:[]-*", "◂▸│:├┤─●")
_ACROSS = re.compile("--across-(commands|devices)")
_KERNEL_RUNGS = frozenset({"kernels", "kernel time", "copies"})
"""Rungs of an explanation that come from a profile."""


@dataclass(frozen=True)
class Answer:
    """The result that the screen shows."""

    study: StudyResult
    whole: Document
    brief: Document
    """The verdict and what differs."""
    as_of: str
    """``as of run 7 of 18: `` for a study that is still going on, else empty."""


@dataclass(frozen=True)
class Section:
    """Rows under a heading, which stays in sight while any of them is visible."""

    heading: tuple[Line, ...]
    body: tuple[Line, ...]
    left_out: tuple[int, int]
    """Columns of a table before and after those that are shown."""


def answer(study: StudyResult, folder: Path | None) -> Answer:
    """The answer for a study in ``folder``, or for single sessions if that is ``None``."""
    brief = verdict_first(study, "a: all figures")
    return Answer(study, document(study), brief, "" if folder is None else _as_of(folder, study))


def _as_of(folder: Path, study: StudyResult) -> str:
    runs = study.plan.runs if study.plan is not None else ()
    if len(runs) < 2 or not goes_on(folder):
        return ""
    ended = {Path(each.path).name for each in study.sessions if not each.status.live}
    last = max((run.index for run in runs if run.file in ended), default=0)
    return f"as of run {last} of {len(runs)}: " if last else "before its first run is over: "


def sections(of: Document, width: int, column: int) -> list[Section]:
    """All that the document says; ``column``: the first one of tables that are too wide."""
    first, *others = parts(of, width - _MARGIN, column)
    return [
        Section(
            tuple(_line(row, width) for row in part.heading),
            tuple(_line(row, width) for row in part.body),
            part.left_out,
        )
        # Each part begins with a blank row, which the first one needs none of.
        for part in (replace(first, body=first.body[1:]), *others)
    ]


def _line(row: Row, width: int) -> Line:
    """A row of the document, a verdict's word after its mark; here flags of a command are keys."""
    line = Line(width)
    for at, (text, role) in enumerate(row):
        of = role.removeprefix("axis ")
        mark, colour = VERDICTS.get(of, (" ", of))
        if at == 0:
            line.add((mark if text.strip() else " ").ljust(_MARGIN), colour)
        text = _ACROSS.sub("x", text)
        line.add(text.translate(_AXIS) if role != of else text, colour)
    return line


def column_of(answer: Answer, path: str) -> int:
    """The column of tables with which the run at ``path`` is beside the baseline."""
    if one_by_one(answer.study):
        names = columns(answer.study)
        paths = [each.path for each in answer.study.sessions]
        name = names[paths.index(path)] if path in paths else ""
    else:
        cells = (cell for each in lettered(answer.study)[0].questions for cell in each.cells)
        of_path = (c.label for c in cells if any(run.session.path == path for run in c.runs))
        name = next(of_path, "")
    items = (item for section in answer.whole.sections for item in section.items)
    table = next((e for e in items if isinstance(e, Table) and name in e.head), None)
    if table is None:
        return 0
    return sum(at not in table.kept for at in range(1, table.head.index(name)))


def history_cases(answer: Answer) -> list[Case]:
    """The cases of the histories: one with every run, or one per question with its cells."""
    if one_by_one(answer.study):
        runs = _one_by_one(answer.study)
        short = all(len(letter) < 2 for letter, _, _ in runs)  # a line has room for one
        lines = (Group(label, (path,), letter * short) for letter, label, path in runs)
        return [Case("", tuple(lines))]
    cases = []
    for question in answer.study.questions:
        base = question.baseline
        cells = (question.cells[base], *question.cells[:base], *question.cells[base + 1 :])
        groups = (
            Group(each.label, tuple(Path(run.session.path) for run in each.judged or each.runs))
            for each in cells
        )
        cases.append(Case(question.label, tuple(groups)))
    return cases


def kernel_pairs(answer: Answer) -> list[Pair]:
    """The runs whose kernels are compared: those of each contrast, else each with the first."""
    pairs = []
    for question in answer.study.questions:
        for contrast in question.contrasts:
            first, second = question.cells[contrast.baseline], question.cells[contrast.other]
            told = contrast.explanation.evidence
            sentences = tuple(each.text for each in told if each.rung in _KERNEL_RUNGS)
            paths = (_profiled(first), _profiled(second))
            pairs.append(Pair((first.label, second.label), paths, sentences))
    if pairs or not one_by_one(answer.study):
        return pairs
    runs = _one_by_one(answer.study)
    (name, base), *others = [(f"{letter} {label}".strip(), path) for letter, label, path in runs]
    return [Pair((name, label), (base, path)) for label, path in others]


def _profiled(cell: Cell) -> Path:
    """The run that represents a cell: one with a profile if there is any."""
    return Path((nearest_profiled(cell) or (cell.judged or cell.runs)[0].session).path)


def _one_by_one(study: StudyResult) -> list[tuple[str, str, Path]]:
    """Letters, if they have some, names, else with numbers, and paths of the sessions, the baseline
    first."""
    told = {each.letter: each.label for each in lettered(study)[1]}
    runs = [
        (*((name, told[name]) if name in told else ("", f"{at} {name}")), Path(session.path))
        for at, (name, session) in enumerate(zip(columns(study), study.sessions, strict=True), 1)
    ]
    base = baseline(study.sessions) or 0
    return [*runs[base : base + 1], *runs[:base], *runs[base + 1 :]]
