"""Verdicts as sentences to quote: plain ASCII signs, one or two terminal lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.cells import STEP_TIME, WHOLE_RUN
from gpuwatch.analysis.comparison.comparison_row import STEADY
from gpuwatch.analysis.comparison.verdict import beyond_margin
from gpuwatch.analysis.results import Cell, Contrast, Evidence, Kind, Verdict
from gpuwatch.analysis.statistics.intervals import FEWEST, Interval, lower_end
from gpuwatch.analysis.summary.training import LOST
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import capital

UNPAIRED = "not paired, so that drift between them is in the difference"
_USUAL = "95"
"""Per cent of confidence that goes without saying."""
_LEAST_POINTS = 0.003
"""Smallest share of the step time that counts as a change."""
_NUMBERED = re.compile(r"#\d+$")
_KERNELS = "GPU kernel time"
_LOST, _SMALLEST = 3.0, 1e-6
"""Factor between the ends of an interval from which on a change is lost in noise."""
_MOST, _TOLD = 2, 1 / 3
"""Most parts of the step that are named, and their smallest share of the largest."""


@dataclass(frozen=True)
class Side:
    """A cell, as far as a sentence needs it."""

    label: str
    environment: str
    runs: int
    """Number of judged runs with a value."""
    setting: int | None = None
    """As in :class:`Cell`."""
    samples: bool = True
    """Whether its runs tell how many samples a step takes."""
    lost: str = ""
    """``2 of 7 runs of docker``: those whose loss is no finite number any more; empty: none."""


def sentence(
    baseline: Side,
    other: Side,
    verdict: Verdict,
    *,
    metric: str,
    evidence: Sequence[Evidence] = (),
    slow: str | None = None,
    blocks_lost: int = 0,
    blocks_to_come: int = 0,
    goes_on: bool = True,
) -> str:
    """``verdict`` on ``other`` against ``baseline`` in words.

    Args:
        evidence: the explanation; parts of the step that changed are named.
        slow: which steps are slower, where the typical step does not say it.
        blocks_lost: blocks in which a run of either side gave no value.
        blocks_to_come: blocks still to be run; if the study does not go on, that never ran.
    """
    kind = verdict.kind
    if kind is Kind.INVALID:
        reasons = "; ".join(verdict.reasons) or "they differ in more than the environment"
        return f"{other.label} is not comparable with {baseline.label}: {reasons}."
    rest = f" so far, {blocks_to_come} to come" if goes_on else f", {blocks_to_come} never ran"
    rest = rest if blocks_to_come else ""
    if kind is Kind.DESCRIBED:
        first = _described(baseline, other, verdict, metric, blocks_lost, rest)
    elif kind is Kind.CANT_TELL:
        first = _cant_tell(baseline, other, verdict, metric)
    else:
        unlike = any(each.rung == "versions" for each in evidence)
        first = _decided(baseline, other, verdict, metric, slow, unlike=unlike)
        if kind in (Kind.SLOWER, Kind.FASTER, Kind.SMALL):
            parts = _parts_of_change(verdict.leading, evidence)
            first += f" {parts}." if parts else ""
    if lost := " and ".join(side.lost for side in (baseline, other) if side.lost):
        first += f" In {lost} {LOST}."
    return " ".join([first, *_conditions(baseline, other, verdict, blocks_lost, rest, metric)])


def after_word(contrast: Contrast) -> str:
    """The contrast's sentence without what :func:`heading` says before it."""
    verdict = contrast.verdict
    if verdict.kind is Kind.DESCRIBED:
        return contrast.sentence.replace(f" {_no_verdict(verdict)}", "", 1)
    if verdict.kind is not Kind.CANT_TELL:
        return contrast.sentence
    for repeated, shorter in ((": can't tell: ", ": "), (": can't tell against ", " against ")):
        if repeated in contrast.sentence:
            return contrast.sentence.replace(repeated, shorter, 1)
    return contrast.sentence


def heading(verdict: Verdict) -> str:
    """The verdict before its sentence: ``SLOWER``, ``NO VERDICT (3 blocks, needs 5)``."""
    word = verdict.kind.word
    return f"{word} ({_amount(verdict)})" if verdict.kind is Kind.DESCRIBED else word


def of_cell(cell: Cell, metric: str) -> str:
    """The sentence for a cell without a comparison."""
    values = [run.value for run in cell.judged if run.value is not None]
    if not values and cell.lack is not None:
        return cell.lack.text
    text = f"{cell.label}: {value_name(metric)} {units.quantity(cell.mean, 's')}"
    text += f" ({units.span(min(values), max(values), 's')})" if len(values) > 1 else ""
    judged = len(cell.judged)
    return f"{text}, {f'{len(values)} of {judged} runs' if judged > 1 else '1 run'}"


def value_name(metric: str) -> str:
    """The value that is judged, as tables call it: ``step time, typical``."""
    return STEADY if metric == STEP_TIME else metric


def repeats(one: Side | Cell, other: Side | Cell) -> bool:
    """Whether two cells of a question are the same environment, given twice.

    The plan decides if there is one, as labels do not tell everything; else the labels.
    """
    if one.setting is not None and other.setting is not None:
        return one.setting == other.setting
    return same_environment(one.environment, other.environment)


def unnumbered(label: str) -> str:
    """``label`` without its number: ``bare`` for ``bare#1``."""
    return _NUMBERED.sub("", label)


def same_environment(one: str, other: str) -> bool:
    """Whether two labels name the same environment, given twice: ``bare#1``, ``bare#2``."""
    first, second = unnumbered(one), unnumbered(other)
    return one != other and first == second and first != one and second != other


def change_text(interval: Interval) -> str:
    """``+3.1 % (+2.4 to +3.8)``, with as many decimals as the interval's width justifies."""
    places = _places(interval.estimate, interval.high - interval.low)
    ends = [signed(end, places) for end in (interval.low, interval.high)]
    if interval.low > 0 or interval.high < 0:  # an end that rounds to zero would seem to be one
        ends = [
            next(filter(float, (signed(share, places + more) for more in range(4))), end)
            for end, share in zip(ends, (interval.low, interval.high), strict=True)
        ]
    return f"{signed(interval.estimate, places)} % ({' to '.join(ends)})"


def signed(share: float, places: int = 1) -> str:
    """A share in per cent with its sign: ``+3.1``; what rounds to zero is ``+0.0``."""
    text = f"{share * 100:+.{places}f}"
    return text if float(text) else text.replace("-", "+")


def per_cent(share: float) -> str:
    """A share without a sign, such as a margin: ``1 %``, ``0.5 %``."""
    return f"{share * 100:.3g} %"


def throughput(total: Verdict) -> Verdict:
    """A verdict on the time per step, told of its inverse: steps, so samples, per second."""
    change, within = total.change, total.equivalence
    return replace(
        total,
        change=None if change is None else inverse(change),
        equivalence=None if within is None else inverse(within),
        estimate=None if total.estimate is None else _inverse(total.estimate),
    )


def inverse(change: Interval) -> Interval:
    """A change of a time as that of its inverse, a rate."""
    estimate, low, high = map(_inverse, (change.estimate, change.high, change.low))
    return Interval(estimate, low, high, change.level)


def _inverse(change: float) -> float:
    return 1 / (1 + change) - 1


def _rate(baseline: Side, other: Side) -> str:
    """What the inverse of the time of all steps is: of other commands, whose steps may take other
    numbers of samples, no throughput."""
    alike = baseline.environment != other.environment or repeats(baseline, other)
    return "throughput" if alike or (baseline.samples and other.samples) else "steps/s"


def _both(
    metric: str, rate: str, verdict: Verdict, text: Callable[[Verdict], str | None]
) -> str | None:
    """``text`` of the typical step, and of the rate where it is judged, too: then each says of what
    it is, as one is not the other's inverse."""
    told = text(verdict)
    if not told or verdict.total is None:
        return told and f"{metric} {told}"
    return f"typical step {told}, steady {rate} {text(throughput(verdict.total))}"


def _typical_step(verdict: Verdict) -> str:
    """``the typical step is the same (+0.2 %)``, where the time of all steps decides."""
    alone = "" if verdict.estimate is None else f" ({signed(verdict.estimate)} %)"
    if verdict.typical is Kind.CANT_TELL:
        return f"the typical step is too uncertain to tell{alone}"
    words = {Kind.SLOWER: "slower", Kind.FASTER: "faster"}
    return f"the typical step is {words.get(verdict.typical or Kind.SAME, 'the same')}{alone}"


def _decided(
    baseline: Side, other: Side, verdict: Verdict, metric: str, slow: str | None, *, unlike: bool
) -> str:
    """The first sentence for SAME, SLOWER, FASTER and SMALL; ``unlike``: versions differ, so that
    the environment's cost alone is not known."""
    both, rate = f"{other.label} and {baseline.label}", _rate(baseline, other)
    if verdict.kind is Kind.SAME:
        told, margin = _both(metric, rate, verdict, _equivalence), per_cent(verdict.margin)
        if repeats(baseline, other):
            return f"{both}, two of the same: no difference of {margin} or more: {told}."
        if unlike or baseline.environment == other.environment:
            return f"{both}: no difference of {margin} or more: {told}."
        return f"{other.label} costs less than {margin} here: {told} against {baseline.label}."
    told = f": {_both(metric, rate, verdict, _change)}"
    if verdict.total is not None and verdict.total.kind is Kind.CANT_TELL:
        told += ", too uncertain to tell"
    if verdict.total is not None and verdict.by_total:
        total, typical = throughput(verdict.total), _typical_step(verdict)
        if verdict.kind is Kind.SMALL:
            within = f"within {per_cent(verdict.margin)}, though {typical}"
            return f"{both}: {rate} {_equivalence(total)}, {within}.{_alike(baseline, other)}"
        told = f": {rate} {_change(total)}, {typical}{f': {slow}' if slow else ''}"
    if verdict.kind is Kind.SMALL:
        small = f"a real difference, below your margin of {per_cent(verdict.margin)}"
        return f"{both}: {small}{told}.{_alike(baseline, other)}"
    word = "slower" if verdict.kind is Kind.SLOWER else "faster"
    return f"{other.label} is {word} than {baseline.label}{told}.{_alike(baseline, other)}"


def _alike(baseline: Side, other: Side) -> str:
    """The meaning of a difference between two of the same environment."""
    if not repeats(baseline, other):
        return ""
    return " They are the same: chance, or runs that disturb each other."


def _cant_tell(baseline: Side, other: Side, verdict: Verdict, metric: str) -> str:
    told = _both(metric, _rate(baseline, other), verdict, _estimate)
    first = f"{other.label}: can't tell against {baseline.label}."
    if told:
        first = f"{other.label}: can't tell: {told} against {baseline.label}."
    texts = [first]
    if verdict.reasons:
        texts.append(f"{capital('; '.join(verdict.reasons))}.")
    if (more := verdict.more_blocks) is not None:
        total, what = verdict.total, "it really is"
        open_ = [verdict] if verdict.typical in (None, verdict.kind) else []
        if total is not None and total.kind is verdict.kind:
            open_.append(total)
        beyond = beyond_margin(open_)
        deciding = beyond or open_
        of = deciding[-1] if deciding[-1].more_blocks == more else deciding[0]
        if total is not None:
            rate = f"steady {_rate(baseline, other)}"
            what = f"the {rate if of is total else 'typical step'} really changes by"
        size = _change(throughput(of) if of is total else of).partition(" (")[0]
        shown = "it" if beyond else f"that it is below {per_cent(verdict.margin)}"
        unit = "blocks" if verdict.paired else "runs of each"
        texts.append(
            f"If {what} about {size}, a new study of about {more} {unit} would show {shown} "
            "(in 4 of 5)."
        )
    return " ".join(texts)


def _described(
    baseline: Side, other: Side, verdict: Verdict, metric: str, lost: int, to_come: str
) -> str:
    told = _both(metric, _rate(baseline, other), verdict, _estimate)
    first = f"{other.label}: {told} against {baseline.label}" if told else other.label
    if not verdict.pairs:
        return f"{first}: there is nothing to compare with {baseline.label} yet."
    unpaired = f"{units.counted(verdict.pairs, 'run')} of each"
    many = _blocks(verdict, lost) if verdict.paired else unpaired
    if to_come:
        return f"{first}. {many}{to_come}."
    rest = f" {many} gave a pair." if lost else ""
    return f"{first}. {_no_verdict(verdict)}{rest}"


def _no_verdict(verdict: Verdict) -> str:
    return f"No verdict: {_amount(verdict)}."


def _amount(verdict: Verdict) -> str:
    """How few pairs there are: ``3 blocks, needs 5``."""
    one, of = ("block", "") if verdict.paired else ("run", " of each")
    return f"{units.counted(verdict.pairs, one)}{of}, needs {FEWEST}"


def _estimate(verdict: Verdict) -> str | None:
    """The change with its interval, else the estimate alone."""
    if verdict.change is not None:
        return _change(verdict)
    if verdict.estimate is None:
        return None
    return f"{signed(verdict.estimate, _places(verdict.estimate, None))} %"


def _change(verdict: Verdict) -> str:
    return "" if verdict.change is None else change_text(verdict.change)


def _equivalence(verdict: Verdict) -> str:
    within = _within(verdict)
    return "" if within is None else change_text(within)


def _within(verdict: Verdict) -> Interval | None:
    """The interval within the margin: the narrower one if the wider is not."""
    change, narrow = verdict.change, verdict.equivalence
    if change is None or narrow is None:
        return change
    wide = lower_end(verdict.margin) < change.low and change.high < verdict.margin
    return change if wide else narrow


def _levels(verdict: Verdict) -> str | None:
    """The confidence of the intervals that a sentence tells, in their order, where it is not the
    usual one: ``97.5 and 95 % intervals (Holm, 2 tests)``."""
    total = verdict.total
    decided = verdict.by_total and verdict.kind not in (Kind.SAME, Kind.CANT_TELL, Kind.DESCRIBED)
    of = [total] if total is not None and decided else [verdict, total]
    inside = verdict.kind is Kind.SAME or (verdict.kind is Kind.SMALL and verdict.by_total)
    told = [_within(each) if inside else each.change for each in of if each is not None]
    levels = list(dict.fromkeys(f"{each.level * 100:.3g}" for each in told if each is not None))
    if levels in ([], [_USUAL]):
        return None
    shared = f" (Holm, {verdict.tests} tests)" if verdict.tests > 1 else ""
    return f"{' and '.join(levels)} % interval{'s' if len(told) > 1 else ''}{shared}"


def _parts_of_change(verdict: Verdict, evidence: Sequence[Evidence]) -> str | None:
    """``GPU kernel time unchanged; host wait accounts for 2.9 of 3.1 points``; no part first that
    goes against the change."""
    whole = 0.0 if verdict.change is None else verdict.change.estimate
    known = [
        (each.part.removeprefix("the "), each.points)
        for each in evidence
        if each.points is not None and each.part
    ]
    changed = sorted(
        ((name, points) for name, points in known if _is_changed(points)),
        key=lambda each: -abs(each[1].estimate),
    )
    if not changed:
        return None
    least = _TOLD * abs(changed[0][1].estimate)
    shares = [
        (points.estimate * whole < 0, name, f"{abs(points.estimate) * 100:.1f}")
        for name, points in changed[:_MOST]
        if abs(points.estimate) >= least
    ]
    (against, name, share), *others = sorted(shares, key=lambda each: each[0])
    if against:
        return None
    change = f" of {abs(whole) * 100:.1f}" if whole else ""
    told = f"{name} accounts for {share}{change} points"
    told += "".join(f", {of} for {size}{' against it' * turned}" for turned, of, size in others)
    margin = verdict.margin
    if any(
        each == _KERNELS
        and not _is_changed(points)
        and lower_end(margin) < points.low
        and points.high < margin
        for each, points in known
    ):
        told = f"{_KERNELS} unchanged; {told}"
    return capital(told)


def _is_changed(points: Interval) -> bool:
    return abs(points.estimate) >= _LEAST_POINTS and not points.low <= 0 <= points.high


def _blocks(verdict: Verdict, lost: int, what: str = "block") -> str:
    """``7 blocks``, or ``6 of 7 blocks`` if one was lost."""
    if not lost:
        return units.counted(verdict.pairs, what)
    return f"{verdict.pairs} of {units.counted(verdict.pairs + lost, what)}"


def _conditions(
    baseline: Side, other: Side, verdict: Verdict, lost: int, to_come: str, metric: str
) -> Iterator[str]:
    """Sentences on the data behind the verdict."""
    rests = []
    if verdict.kind in (Kind.SAME, Kind.SMALL, Kind.SLOWER, Kind.FASTER):
        if verdict.paired:
            rests.append(_blocks(verdict, lost, "paired block") + to_come)
        known = [each.noise for each in (verdict.leading, verdict.total) if each is not None]
        noise, *of_rate = dict.fromkeys(map(units.percent, known))
        if verdict.leading.noise is not None:
            more = "".join(f" ({_rate(baseline, other)} {each})" for each in of_rate)
            rests.append(f"noise {noise}{more}")
    elif verdict.kind is Kind.CANT_TELL and verdict.paired and not verdict.lacking:
        rests += [_blocks(verdict, lost) + to_come] if lost or to_come else []
    if verdict.kind is not Kind.INVALID and (levels := _levels(verdict)):
        rests.append(levels)
    if rests:
        yield f"{capital(', '.join(rests))}."
    if not verdict.paired and verdict.pairs and max(baseline.runs, other.runs) > 1:
        yield (f"{units.counted(other.runs, 'run')} against {baseline.runs}, {UNPAIRED}.")
    change = verdict.change
    if verdict.kind is Kind.DESCRIBED and change is not None:  # others tell their noise
        factor = (1 + change.high) / max(_SMALLEST, 1 + change.low)
        if factor >= _LOST:
            by = units.percent(verdict.noise)
            ends = f"the ends of the interval differ by a factor of {factor:,.0f}"
            yield f"Very noisy: one run varies by {by}, and {ends}."
    if metric == WHOLE_RUN and verdict.kind is not Kind.INVALID and verdict.pairs:
        yield "Start-up included."


def _places(estimate: float, width: float | None) -> int:
    """Decimals of a percentage: two if the interval is narrower than half a point and the change
    under 10 %, none from a width of 100 points or a change of 1000 % on (100 % without interval),
    else one."""
    size = abs(estimate) * 100
    if width is None:
        return 1 if size < 100 else 0
    if width * 100 < 0.5 and size < 10:
        return 2
    return 0 if width * 100 >= 100 or size >= 1000 else 1
