"""The document of a study: every subject once, in the order in which formats show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from gpuwatch.analysis.comparison.side_by_side import Comparison, compare, headings, with_judged
from gpuwatch.analysis.results import Kind, Question, StudyResult, Verdict
from gpuwatch.analysis.study.letters import LegendEntry, letters, with_letters
from gpuwatch.analysis.study.notes import conditions, doubts, notes
from gpuwatch.analysis.summary.identity import sound
from gpuwatch.report.document import (
    about,
    answer,
    devices,
    differing,
    origin,
    quantities,
    reasons,
    sessions,
)
from gpuwatch.report.document.blocks import (
    MARKDOWN,
    PAGE,
    Curves,
    Document,
    Dots,
    Section,
    Sentence,
)

_MOST_DOUBTS = 6
_MOST_BESIDE = 4
"""Most runs of one cell that stand side by side; of more, their median is told."""


def one_by_one(result: StudyResult) -> bool:
    """Whether sessions stand side by side: every cell has at most one run, outside blocks, or a few
    runs of one cell were put together by hand."""
    cells = [cell for question in result.questions for cell in question.cells]
    if len(cells) == 1 and result.plan is None:
        return len(cells[0].runs) <= _MOST_BESIDE
    return all(
        len(cell.runs) <= 1 and all(run.block is None for run in cell.runs) for cell in cells
    )


def lettered(result: StudyResult) -> tuple[StudyResult, tuple[LegendEntry, ...]]:
    """``result`` with letters for long labels, and their legend.

    Sessions of several questions that stand side by side have letters of their own.
    """
    if one_by_one(result) and len(result.questions) > 1:
        return result, ()
    return with_letters(result)


def columns(result: StudyResult) -> list[str]:
    """Names of the sessions side by side: the labels of their cells, where each has its own, with
    the letters of the legend."""
    (shown, _), paths = lettered(result), [each.path for each in result.sessions]
    of = {
        run.session.path: cell.label
        for question in shown.questions
        for cell in question.cells
        for run in cell.runs
    }
    labels = [of[path] for path in paths if path in of]
    if len(shown.questions) == 1 and len(set(labels)) == len(paths):
        return labels
    return letters(headings(result.sessions))


def compared(result: StudyResult) -> Comparison:
    """The comparison of all sessions, with the study's notes.

    Ratios are relative to the first sound run of the question's baseline. They are given only
    within a cell or where the study compares two: not between questions, nor if that is invalid.
    """
    bases = _bases(result)
    comparison = with_judged(compare(result.sessions), result.questions, bases)
    notes_ = notes(result)
    against = sorted({base for at, base in bases.items() if at != base})
    if against:
        names = headings(result.sessions)
        named = ", ".join(names[base] for base in against)
        notes_.append(f"ratios (×…) are against {named}; none from or to a run that failed")
    baseline = against[0] if against else comparison.baseline
    return replace(comparison, baseline=baseline, notes=tuple(notes_))


def _bases(result: StudyResult) -> dict[int, int]:
    """Index of each session with a ratio -> index of its baseline session."""
    place = {session.path: at for at, session in enumerate(result.sessions)}
    bases: dict[int, int] = {}
    for question in result.questions:
        if len(question.cells) == 1 and len(question.cells[0].runs) > 1:
            of_cell = [run.session for run in question.cells[0].runs]
            first = next((place[each.path] for each in of_cell if sound(each)), None)
            bases |= {} if first is None else {place[each.path]: first for each in of_cell}
        for contrast in question.contrasts:
            baseline, other = question.cells[contrast.baseline], question.cells[contrast.other]
            sound_runs = [run.session for run in baseline.judged if sound(run.session)]
            if contrast.verdict.kind is Kind.INVALID or not sound_runs:
                continue
            base = place[sound_runs[0].path]
            for run in (*baseline.runs, *other.runs):
                bases[place[run.session.path]] = base
    return bases


def _verdicts(result: StudyResult) -> dict[int, Verdict]:
    """The verdicts on sessions that stand side by side."""
    place = {session.path: at for at, session in enumerate(result.sessions)}
    return {
        place[run.session.path]: contrast.verdict
        for question in result.questions
        for contrast in question.contrasts
        for run in question.cells[contrast.other].runs
    }


def document(result: StudyResult) -> Document:
    """The report of ``result``: of single runs side by side, else of each question."""
    shown, legend = lettered(result)
    beside = one_by_one(result)
    body = _beside(shown, legend=bool(legend)) if beside else _sections(shown)
    return replace(_head(result), sections=tuple(each for each in body if each.items))


def _head(result: StudyResult) -> Document:
    """The answer, above all sections."""
    beside, plan = one_by_one(result), result.plan
    result, legend = lettered(result)
    names = (result.title, *([] if plan is None else [plan.title, plan.question]))
    return replace(
        answer.top(result),
        asked=() if beside else tuple(dict.fromkeys(each for each in names if each)),
        facts=origin.facts(result),
        origin=() if beside else origin.lines(result),
        legend=legend,
    )


def brief(result: StudyResult) -> Document:
    """The answer alone, or for single runs their main figures; then doubts, without the outcomes
    of single runs."""
    head = _head(result)
    if one_by_one(result):
        first = [about.costs(each) for each in result.questions]
        first += [sessions.brief(compared(result), columns(result), legend=bool(head.legend))]
    else:
        first = [about.sweeps(result)]
    notes = Section("", [Sentence("", f"note: {each}") for each in cautions(result)])
    return replace(head, sections=tuple(each for each in (*first, notes) if each.items))


def verdict_first(result: StudyResult, more: str) -> Document:
    """``result`` in a screen or two: the verdict, what to know before believing it, its reasons,
    and only what differs. ``more`` says how to see all of it."""
    shown, legend = lettered(result)
    body = [_cautions(result)]
    if one_by_one(result):
        body += [about.costs(each) for each in shown.questions]
        of_all, names = compared(shown), columns(shown)
        verdicts = _verdicts(shown)
        first = sessions.main_rows(of_all)
        body += [
            sessions.brief(of_all, names, legend=bool(legend), verdicts=verdicts),
            differing.of_sessions(of_all, names, first, verdicts),
        ]
        if of_all.families:
            table = reasons.kernel_table(names, of_all.kernels, of_all.families)
            body.append(Section("kernels", (table,)))
        around = reasons.difference_items(of_all.differences, names)
        body.append(Section(reasons.DIFFERENCES, around))
    else:
        body.append(about.sweeps(shown))
        for question in shown.questions:
            of = (
                about.costs(question),
                reasons.evidence(question),
                differing.of_question(question),
                reasons.kernels(question),
                reasons.facts(question),
            )
            several = len(shown.questions) > 1
            body += [replace(each, of=question.label if several else "") for each in of]
    body.append(Section("", [Sentence("", more)]))
    return replace(_head(result), sections=tuple(each for each in body if each.items))


def _cautions(result: StudyResult) -> Section:
    return Section("before you believe it", [Sentence("", each) for each in cautions(result)])


def cautions(result: StudyResult) -> list[str]:
    """What casts doubt on the figures of ``result``, the first of it; of single runs without their
    outcomes, which stand beside their figures; nor what the answer says."""
    shown = [item.text for item in answer.top(result).answer if isinstance(item, Sentence)]
    if one_by_one(result):
        shown += [each.status.text for each in result.sessions]
        shown += [f"{each.label}: {each.status.text}" for each in result.sessions]
    found = [each for each in doubts(result) if each not in shown]
    if len(found) > _MOST_DOUBTS:
        rest = len(found) - _MOST_DOUBTS + 1
        found = [*found[: _MOST_DOUBTS - 1], f"{rest} more notes in the report"]
    return found


def _beside(result: StudyResult, *, legend: bool) -> Iterator[Section]:
    yield devices.devices(result)
    for question in result.questions:
        yield about.costs(question)
    told = [*result.notices, *conditions(result.questions)]
    of_all, names = compared(result), columns(result)
    differs = differing.of_sessions(of_all, names, (), _verdicts(result))
    yield replace(differs, folded=False, formats=(MARKDOWN, PAGE))
    drawn, alone = [], len(result.sessions) == 1
    for question in result.questions:
        every, gauges = _drawn(question, {})
        of_page = (every, gauges, reasons.evidence(question), reasons.roofline(question))
        drawn += [replace(each, formats=(PAGE,)) for each in of_page[alone:]]
    yield from drawn if alone else ()
    yield from sessions.sessions(of_all, names, told, legend=legend)
    yield from () if alone else drawn


def _sections(result: StudyResult) -> Iterator[Section]:
    yield about.sweeps(result)
    yield devices.devices(result)
    order = quantities.orders(result.plan)
    several = len(result.questions) > 1
    yield replace(_cautions(result), formats=(PAGE,))
    for question in result.questions:
        differs = differing.of_question(question)
        for section in (
            about.costs(question),
            reasons.evidence(question),
            replace(differs, folded=False, formats=(MARKDOWN, PAGE)),
            replace(quantities.cells(question), closed=bool(differs.items)),
            *_drawn(question, order),
            reasons.roofline(question),
            reasons.kernels(question),
            reasons.ranks(question),
            reasons.facts(question),
            replace(quantities.verdicts(question), closed=True),
        ):
            yield replace(section, of=question.label if several else "")
    yield about.noise(result)
    yield about.notes(result)
    yield replace(about.method(result), closed=True)
    yield replace(about.all_runs(result), closed=True)


def _drawn(question: Question, order: Mapping[str, int]) -> tuple[Section, Section]:
    """Every run, and the gauges, which only the page draws."""
    every = Section("every run", (Dots(question), quantities.runs(question, order)))
    return every, Section("gauges", (Curves(question),), formats=(PAGE,))
