"""The document of a study: every subject once, in the order in which formats show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import WHOLE_RUN
from gpuwatch.analysis.comparison.side_by_side import Comparison, compare, with_judged
from gpuwatch.analysis.results import Cell, Kind, Question, StudyResult
from gpuwatch.analysis.samples.steady_state import ONLY
from gpuwatch.analysis.study.letters import LegendEntry, in_letters, with_letters
from gpuwatch.analysis.study.notes import (
    UNPAIRED,
    conditions,
    doubts,
    notes,
    notices,
    one_by_one,
    run_names,
)
from gpuwatch.analysis.study.question import IS_BASELINE
from gpuwatch.analysis.summary.identity import headings, sound
from gpuwatch.analysis.summary.load import OTHERS
from gpuwatch.analysis.summary.training import LOST
from gpuwatch.core import units
from gpuwatch.report.document import (
    about,
    answer,
    blocks,
    devices,
    differing,
    origin,
    quantities,
    reasons,
    sessions,
)

_MOST_DOUBTS = 6
_FAR = 3.0
"""Factor between the runs of a side from which on their spread is told: no one of them stands out.
"""


def lettered(result: StudyResult) -> tuple[StudyResult, tuple[LegendEntry, ...]]:
    """``result`` with letters for long labels, and their legend.

    Sessions of several questions that stand side by side have a letter each.
    """
    return with_letters(result, each_run=one_by_one(result) and len(result.questions) > 1)


def columns(result: StudyResult) -> list[str]:
    """Names of the sessions side by side: the labels of their cells, where each has its own, with
    the letters of the legend."""
    return _names(lettered(result)[0])


def _names(shown: StudyResult) -> list[str]:
    of = {run.session.path: cell.label for _, cell, run in quantities.every_run(shown)}
    paths = [each.path for each in shown.sessions]
    labels = [of[path] for path in paths if path in of]
    return labels if len(set(labels)) == len(paths) else headings(shown.sessions)


def compared(result: StudyResult) -> Comparison:
    """The comparison of all sessions, with the study's notes.

    Ratios are relative to the first sound run of the question's baseline. Of single runs side by
    side they describe an invalid pair, too; else only what is compared.
    """
    bases = _bases(result)
    comparison = with_judged(compare(result.sessions), result.questions, bases)
    notes_ = notes(result)
    against = sorted({base for at, base in bases.items() if at != base})
    if against:
        names = _names(result)
        named = ", ".join(names[base] for base in against)
        steps = quantities.steps_of(comparison.rows)
        notes_.append(f"changes are against {named}; none from or to a run that failed{steps}")
    baseline = against[0] if against else comparison.baseline
    return replace(comparison, baseline=baseline, notes=tuple(notes_))


def _bases(result: StudyResult) -> dict[int, int]:
    """Index of each session with a ratio -> index of its baseline session."""
    place = {session.path: at for at, session in enumerate(result.sessions)}
    bases: dict[int, int] = {}
    beside = one_by_one(result)
    for question in result.questions:
        for contrast in question.contrasts:
            against, other = question.cells[contrast.baseline], question.cells[contrast.other]
            sound_runs = [run.session for run in against.judged if sound(run.session)]
            if not sound_runs or (contrast.verdict.kind is Kind.INVALID and not beside):
                continue
            base = place[sound_runs[0].path]
            for run in (*against.runs, *other.runs):
                bases[place[run.session.path]] = base
    return bases


def document(result: StudyResult) -> blocks.Document:
    """The report of ``result``: of single runs side by side, else of each question."""
    shown, legend = lettered(result)
    body = _beside(shown, legend) if one_by_one(result) else _sections(shown, result.questions)
    return replace(_head(result), sections=tuple(each for each in body if each.items))


def _head(result: StudyResult) -> blocks.Document:
    """The answer, above all sections."""
    beside, plan = one_by_one(result), result.plan
    title = answer.top(result).title  # of names, where all else has letters
    result, legend = lettered(result)
    names = (result.title, *([] if plan is None else [plan.title, plan.question]))
    return replace(
        answer.top(result),
        title=title,
        asked=() if beside else tuple(dict.fromkeys(each for each in names if each)),
        facts=origin.facts(result),
        origin=() if beside else origin.lines(result),
        legend=legend,
    )


def brief(result: StudyResult) -> blocks.Document:
    """The answer alone, or for single runs their main figures; then doubts, without the outcomes
    of single runs."""
    head = _head(result)
    shown, legend = lettered(result)
    alike = _alike(cautions(shown), result.questions)
    if one_by_one(result):
        alike = in_letters(alike, legend)
        first = [about.costs(each) for each in shown.questions]
        first += [sessions.brief(compared(shown), _names(shown))]
    else:
        first = [about.sweeps(shown), *map(differing.rates, shown.questions)]
    notes = blocks.Section("", [blocks.Sentence("", f"note: {each}") for each in alike])
    return replace(head, sections=tuple(each for each in (*first, notes) if each.items))


def verdict_first(result: StudyResult, more: str) -> blocks.Document:
    """``result`` in a screen or two: the verdict, what to know before believing it, its reasons,
    and only what differs. ``more`` says how to see all of it."""
    shown, legend = lettered(result)
    known, beside = cautions(shown), one_by_one(result)
    body = [_cautions(known, result.questions, legend if beside else ())]
    if beside:
        body += [about.costs(each) for each in shown.questions]
        of_all, names = compared(shown), _names(shown)
        body.append(sessions.brief(of_all, names))
        if any(question.contrasts for question in shown.questions):  # else nearly all differs
            body.append(differing.of_sessions(of_all, names, sessions.main_rows(of_all)))
            body += reasons.around(of_all, names)
    else:
        body.append(about.sweeps(shown))
        for question in shown.questions:
            kernels = reasons.kernels(question)
            of = (
                about.costs(question),
                reasons.evidence(question, known, kernels=not kernels.items),
                differing.of_question(question),
                kernels,
            )
            several = len(shown.questions) > 1
            body += [replace(each, of=question.label if several else "") for each in of]
    body.append(blocks.Section("", [blocks.Sentence("", more)]))
    return replace(_head(result), sections=tuple(each for each in body if each.items))


def _alike(told: Sequence[str], questions: Sequence[Question]) -> list[str]:
    """``told``, what is the same of several cells of ``questions`` in one line."""
    labels = {cell.label for question in questions for cell in question.cells}
    alike: dict[str, list[str]] = {}
    for each in told:
        front, _, of = each.rpartition(" in ")
        alike.setdefault(front if of in labels else each, []).append(of if of in labels else "")
    return [f"{front} in {' and '.join(of)}" if of[0] else front for front, of in alike.items()]


def _far_apart(cell: Cell, metric: str) -> list[str]:
    """Its outliers; without any its ends, if they are far from each other."""
    outliers = [run for run in cell.judged if run.outlier and run.block]
    far = [f"{quantities.value_of(run)} in block {run.block}" for run in outliers]
    values = sorted(run.value for run in cell.judged if run.value is not None)
    if not far and values and values[-1] > _FAR * values[0]:
        low, high = units.quantity(values[0], "s"), units.quantity(values[-1], "s")
        its = "its runs take" if metric == WHOLE_RUN else f"the {metric} of its runs is"
        return [f"{its} {low} to {high}"]
    return [f"of its runs {each} is an outlier, and kept" for each in far]


def _cautions(
    told: Sequence[str], questions: Sequence[Question] = (), legend: Sequence[LegendEntry] = ()
) -> blocks.Section:
    """``told`` last, as its end says how many more there are."""
    outliers = [
        f"{cell.label}: {each}"
        for question in questions
        for cell in question.cells
        for each in _far_apart(cell, question.metric)
    ]
    known = in_letters((*outliers, *_alike(told, questions)), legend)
    lines = [blocks.Sentence("", each) for each in sorted(known, key=lambda each: LOST not in each)]
    return blocks.Section("before you believe it", lines)


def cautions(result: StudyResult, where: str = "in the report") -> list[str]:
    """What casts doubt on the figures of ``result``, the first of it; of single runs without their
    outcomes, which stand beside their figures; nor what the answer says. ``where`` the rest is."""
    shown = [item.text for item in answer.top(result).answer if isinstance(item, blocks.Sentence)]
    cells = [cell for question in result.questions for cell in question.cells if cell.lack]
    if one_by_one(result):
        shown += [each.end for each in result.sessions]
        shown += [f"{run_names(result)[e.path]}: {e.end}" for e in result.sessions]
        failed = [cell for cell in cells if not any(sound(e.session) for e in cell.judged)]
        shown += [cell.lack.text for cell in failed if cell.lack]
    said = _bare(" ".join(shown))
    lacks = [_bare(cell.lack.text) for cell in cells if cell.lack]

    def told(note: str) -> bool:
        of, _, what = map(_bare, note.partition(": "))  # the name of a run or question, often
        in_lack = what not in lacks and any(what in each for each in lacks)
        again = " " in what and (in_lack or (of in said and what in said))
        return _bare(note) in said or again

    found = [each for each in doubts(result) if not told(each)]
    found.sort(key=_place)  # the first are never among the rest
    if len(found) > _MOST_DOUBTS:
        rest = len(found) - _MOST_DOUBTS + 1
        found = [*found[: _MOST_DOUBTS - 1], f"{rest} more notes {where}"]
    return found


def _place(note: str) -> int:
    """The place of what changes what the figures mean, and then of other programs' load."""
    if LOST in note:
        return 0
    if note.endswith(IS_BASELINE) or ONLY in note or note.startswith(UNPAIRED[:40]):
        return 1
    return 2 if note.startswith(OTHERS) else 3


def _bare(text: str) -> str:
    """Without what differs where the same is said in brackets, or at the start of a sentence."""
    return text.casefold().replace("(", "").replace(")", "")


def _beside(result: StudyResult, legend: Sequence[LegendEntry]) -> Iterator[blocks.Section]:
    yield devices.devices(result)
    if len(result.sessions) > 1:
        yield replace(_cautions(cautions(result, "below"), (), legend), formats=(blocks.PAGE,))
    for question in result.questions:
        yield about.costs(question)
    told = [*notices(result), *in_letters(conditions(result.questions), legend)]
    of_all, names = compared(result), _names(result)
    of_all = replace(of_all, notes=tuple(in_letters(of_all.notes, legend)))
    differs = differing.of_sessions(of_all, names)
    yield replace(differs, folded=False, formats=(blocks.MARKDOWN, blocks.PAGE))
    drawn: list[blocks.Section] = []
    alone = len(result.sessions) == 1
    for question in result.questions:
        every, gauges = _drawn(question, {})
        of_page = [gauges, reasons.roofline(question)]
        if not alone:
            of_page.insert(0, every)
        drawn += [replace(each, formats=(blocks.PAGE,)) for each in of_page]
    yield from drawn if alone else ()
    yield from sessions.sessions(of_all, names, told)
    yield from () if alone else drawn


def _sections(result: StudyResult, named: Sequence[Question]) -> Iterator[blocks.Section]:
    """``named``: the questions with the labels that sentences keep."""
    yield about.sweeps(result)
    yield devices.devices(result)
    order = quantities.orders(result.plan)
    several = len(result.questions) > 1
    known = cautions(result, "below")
    yield replace(_cautions(known, named), folded=several)
    for question in result.questions:
        differs = differing.of_question(question)
        for section in (
            about.costs(question),
            reasons.evidence(question, known),
            replace(differs, folded=False, formats=(blocks.MARKDOWN, blocks.PAGE)),
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
    yield replace(about.notes(result), closed=True)
    yield replace(about.method(result), closed=True)
    yield replace(about.all_runs(result), closed=True)


def _drawn(question: Question, order: Mapping[str, int]) -> tuple[blocks.Section, blocks.Section]:
    """Every run, and the gauges, which only the page draws."""
    every = blocks.Section("every run", (blocks.Dots(question), quantities.runs(question, order)))
    return every, blocks.Section("gauges", (blocks.Curves(question),), formats=(blocks.PAGE,))
