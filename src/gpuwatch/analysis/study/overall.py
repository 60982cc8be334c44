"""Results of a study beyond single cases: means over them, sweeps, noise floors."""

from __future__ import annotations

import json
import math
import statistics
from collections.abc import Iterator, Mapping, Sequence

from gpuwatch.analysis.comparison.cells import Case
from gpuwatch.analysis.comparison.verdict import paired
from gpuwatch.analysis.comparison.wording import change_text, repeats, unnumbered
from gpuwatch.analysis.results import (
    Cell,
    Contrast,
    Kind,
    NoiseFloor,
    Overall,
    Question,
    Sweep,
    Verdict,
)
from gpuwatch.analysis.statistics.intervals import ALPHA, FEWEST, Interval, freedom
from gpuwatch.analysis.statistics.power import DetectableChange, resolves
from gpuwatch.analysis.study.sweep import sweep_of
from gpuwatch.analysis.summary.identity import parameter_text
from gpuwatch.core import units
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean
from gpuwatch.session.study.plan import Plan

BLOCKS = (5, 7, 10, 20)
"""Numbers of blocks whose resolution is reported."""
_USUAL = 10
"""Default number of blocks of a study."""
_TAIL = 0.025
"""Error on each side of the 95 % interval of the noise."""
_ABSURD = 1.0
"""Relative change from which on the exact size is not reported."""


def noise_floor(label: str, sides: str, contrast: Contrast, margin: float) -> NoiseFloor | None:
    """The noise floor from an environment compared with itself; ``None`` if noise or interval is
    unknown.

    ``sides``: the two, as each verdict has its own noise. ``margin``: relative change that matters.
    """
    verdict = contrast.verdict
    if verdict.noise is None or verdict.change is None or not math.isfinite(verdict.noise):
        return None
    detectable = tuple(resolves(verdict.noise, margin, blocks) for blocks in BLOCKS)
    out = "drift taken out" if verdict.paired else "drift included, as the runs share no blocks"
    low, high = _interval(verdict)
    shared = "blocks" if verdict.paired else "runs of each"
    between = f"{_range(low, high)} by {verdict.pairs} {shared}"
    varies = f"one run varies by {units.percent(verdict.noise)} ({between}; {out})"
    sentences = [f"{sides}: {varies}."]
    if verdict.pairs < FEWEST:
        sentences.append(f"{verdict.pairs} {shared} are few: the figure is rough.")
    sentences.append(_resolution(detectable))
    sentences += _disturbed(verdict.change)
    text = " ".join(sentences)
    return NoiseFloor(label, verdict.noise, verdict.change, detectable, text, low, high)


def _interval(verdict: Verdict) -> tuple[float, float]:
    """95 % interval of the noise, from the chi-square distribution of its square."""
    from scipy.special import chdtri

    noise = verdict.noise or 0.0
    placed = verdict.paired and verdict.pairs >= FEWEST
    degrees = freedom(verdict.pairs, placed=placed) * (1 if verdict.paired else 2)
    low, high = (noise * math.sqrt(degrees / float(chdtri(degrees, p))) for p in (_TAIL, 1 - _TAIL))
    return low, high


def _range(low: float, high: float) -> str:
    return f"{units.percent(low).removesuffix(' %')} to {units.percent(high)}"


def _resolution(detectable: Sequence[DetectableChange]) -> str:
    usual = next(each for each in detectable if each.blocks == _USUAL)
    reach = next((each.blocks for each in detectable if each.same), None)
    same = f"SAME needs {reach}" if reach else f"SAME takes more than {detectable[-1].blocks}"
    if usual.excludes_zero >= _ABSURD:
        return (
            f"That is too much noise to compare anything here: {usual.blocks} blocks find no "
            f"change under {units.percent(_ABSURD)}."
        )
    found = f"{usual.blocks} blocks find a change of {units.percent(usual.excludes_zero)} or more"
    slower = f", and call it SLOWER from {units.percent(usual.beyond_margin)} on"
    told = found + (slower if usual.beyond_margin < _ABSURD else "")
    return f"{told} (in 4 of 5 studies); {same} blocks."


def _disturbed(change: Interval) -> list[str]:
    """A sentence if a difference shows although there is none."""
    if change.low <= 0 <= change.high:
        return []
    between = _range(*sorted((abs(change.low), abs(change.high))))
    word = "slower" if change.estimate > 0 else "faster"
    return [
        f"Here the second looked {units.percent(abs(change.estimate))} {word} ({between}), though "
        f"the two are the same: {(1 - change.level) * 100:.0f} in 100 do so by chance; where it "
        "happens more often, the runs disturb each other."
    ]


CaseQuestions = Sequence[tuple[Case, Question | None]]
"""Cases in the plan's order with their questions; ``None``: no run of the case."""
TIME_PER_STEP = "mean step time"
_LONGEST = 60


def overalls(questions: Sequence[Question], plan: Plan | None) -> Iterator[Overall]:
    """For each part and environment, the geometric mean of the ratios over two or more cases: of
    the mean step time of the steady part where every case has it.

    A block's value is the mean of the cases' log-ratios in it, so only blocks common to all cases
    count. They are judged as those of a case are; the environments of a part share Holm's
    procedure. Cases that are not comparable, or lack too many runs, are left out and counted in
    the sentence.
    """
    parts: dict[tuple[int, str], dict[str, list[tuple[Contrast, str]]]] = {}
    for question in questions:
        for each in question.contrasts:
            other, first = (question.cells[at].label for at in (each.other, each.baseline))
            of = parts.setdefault((question.part, first), {}).setdefault(other, [])
            of.append((each, question.metric))
    several = plan is not None and len(plan.parts) > 1
    for (part, first), others in parts.items():
        kept = {other: left for other, of in others.items() if len(left := _comparable(of)) > 1}
        if not kept:
            continue
        known = [_in_all_cases(left) for left in kept.values()]
        verdicts = paired(
            [[value for value, _ in blocks] for blocks in known],
            next(iter(kept.values()))[0].verdict.margin,
            places=[[place for _, place in blocks] for blocks in known],
        )
        of_part = clean(plan.parts[part].name, _LONGEST) if several and plan else ""
        where = f"{of_part}: " if of_part else ""
        for (other, left), blocks, verdict in zip(kept.items(), known, verdicts, strict=True):
            change = verdict.change
            if change is None:
                continue
            every = others[other]
            cases = f"{len(left)} of {len(every)}" if len(left) < len(every) else f"{len(left)}"
            most = max(len(one.ratios) - one.ratios.count(None) for one in left)
            shared = f"{len(blocks)} of {most} blocks" if len(blocks) < most else f"{most} blocks"
            names = " or ".join(dict.fromkeys(metric for _, metric in every))
            metric = TIME_PER_STEP if _paid(left) else names
            level = "" if change.level == 1 - ALPHA else f", {change.level * 100:.3g} % interval"
            few = f", a verdict needs {FEWEST}" if verdict.pairs < FEWEST else ""
            yield Overall(
                environment=other,
                baseline=first,
                change=change,
                cases=len(left),
                sentence=f"{where}{other} against {first} over {cases} cases: "
                f"{verdict.kind.word}, {metric} {change_text(change)}, geometric mean of "
                f"{shared}{level}{few}.",
                kind=verdict.kind,
                metric=metric,
            )


def _comparable(of: Sequence[tuple[Contrast, str]]) -> list[Contrast]:
    """Those of the cases, each with its metric, that are judged in blocks."""
    return [
        each
        for each, _ in of
        if each.ratios and each.verdict.kind is not Kind.INVALID and not each.verdict.lacking
    ]


def _paid(of: Sequence[Contrast]) -> bool:
    """Whether the time of all steps is known of every case."""
    return all(each.total_ratios for each in of)


def _in_all_cases(of: Sequence[Contrast]) -> list[tuple[float, float]]:
    """The mean over the cases of the log-ratio, and of the places between the two, in each block
    that all of them have."""
    ratios = zip(*(each.total_ratios if _paid(of) else each.ratios for each in of), strict=False)
    places = zip(*(each.places for each in of), strict=False)
    return [
        (
            statistics.fmean(math.log(ratio) for ratio in in_block if ratio is not None),
            statistics.fmean(place for place in at if place is not None),
        )
        for in_block, at in zip(ratios, places, strict=True)
        if None not in in_block
    ]


def noise_floors(questions: CaseQuestions) -> Iterator[NoiseFloor]:
    """A noise floor for each environment compared with itself; the sides are named if there are
    several."""
    for case, question in questions:
        if question is None:
            continue
        found = [
            (unnumbered(first.environment), f"{other.label} against {first.label}", contrast)
            for contrast in question.contrasts
            for first, other in [
                (question.cells[contrast.baseline], question.cells[contrast.other])
            ]
            if contrast.verdict.kind is not Kind.INVALID and repeats(first, other)
        ]
        environments = [environment for environment, _, _ in found]
        for environment, sides, contrast in found:
            name = environment if environments.count(environment) == 1 else sides
            # That of commands in one environment names it.
            label = f"{case.label.removesuffix(f' in {name}')} in {name}"
            floor = noise_floor(label, sides, contrast, case.margin)
            if floor is not None:
                yield floor


def sweeps(questions: CaseQuestions, plan: Plan) -> Iterator[Sweep]:
    """A sweep for each swept parameter in each environment, and for each setting of the others."""
    for index, part in enumerate(plan.parts):
        of_part = [each for each in questions if each[0].part == index]
        for parameter in part.sweep:
            for of in _alike(of_part, parameter):
                for environment in of[0][0].environments:
                    yield _sweep(parameter, part.sweep, environment, of)


def _alike(questions: CaseQuestions, parameter: str) -> list[list[tuple[Case, Question | None]]]:
    """Cases grouped so that they differ only in ``parameter``."""
    found: dict[str, list[tuple[Case, Question | None]]] = {}
    for case, question in questions:
        workload = case.workload
        if workload is not None and parameter in workload.parameters:
            others = {key: value for key, value in workload.parameters.items() if key != parameter}
            key = json.dumps([workload.name, workload.kind, others], sort_keys=True, default=str)
            found.setdefault(key, []).append((case, question))
    return list(found.values())


def _sweep(
    parameter: str, swept: Mapping[str, Sequence[JSON]], environment: str, questions: CaseQuestions
) -> Sweep:
    first = questions[0][0]
    assert first.workload is not None
    fixed = [
        f", {_words(name)} {parameter_text(first.workload.parameters.get(name))}"
        for name in swept
        if name != parameter
    ]
    by_value = {
        json.dumps(case.workload.parameters.get(parameter), default=str): (case, question)
        for case, question in questions
        if case.workload is not None
    }
    points: list[tuple[JSON, Cell | None, str | None]] = []
    for value in swept[parameter]:
        case, question = by_value.get(json.dumps(value, default=str), (None, None))
        cells = () if question is None else question.cells
        cell = next((each for each in cells if each.label == environment), None)
        points.append((value, cell, None if case is None else _why(case, cell, environment)))
    label = f"{first.workload.name} in {environment}: {_words(parameter)}{''.join(fixed)}"
    return sweep_of(clean(label, 2 * _LONGEST), parameter, environment, points, first.margin)


def _why(case: Case, cell: Cell | None, environment: str) -> str | None:
    """Why no judged run has ended; ``None`` if one has, or a run gives a reason itself."""
    over = [run for run in cell.runs if not run.session.status.live] if cell else []
    if cell is None:
        known = case.why.get(environment)
    elif any(run.reason or not run.warm_up for run in over):
        return None
    else:
        known = next((each.problems[0].text for each in cell.not_run if each.problems), None)
    return known or ("still to come" if case.goes_on else "not run")


def _words(name: str) -> str:
    return name.replace("_", " ")
