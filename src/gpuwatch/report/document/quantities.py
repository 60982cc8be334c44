"""The tables of one question: quantities of each cell, its runs, and verdicts in numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from gpuwatch.analysis.comparison.comparison_row import DEGREES, STEADY, THROUGHPUT
from gpuwatch.analysis.comparison.effect import effect
from gpuwatch.analysis.comparison.side_by_side import PEAK_MEMORY
from gpuwatch.analysis.comparison.wording import change_text, per_cent, signed
from gpuwatch.analysis.hardware.mfu import MFU
from gpuwatch.analysis.results import Cell, ComparisonRow, Question, Run, StudyResult, Verdict
from gpuwatch.analysis.samples.steady_state import Steady
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.analysis.statistics.power import NOISE_GATE, NOISY_ALPHA
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.metrics import Method, label
from gpuwatch.core.text import clean
from gpuwatch.report.document.blocks import CHANGED, Section, Sentence, Table
from gpuwatch.session.reading.status import BAD
from gpuwatch.session.study.plan import Plan

_FIRST = "steps"
"""The group of the metric that verdicts are about."""
BADGES = {Method.COUNTED.value: "c", Method.BOUND.value: "b"}
"""Letters for methods; without one a quantity is measured."""
_IN_NAME = {"{sample}/s": ", samples/s", "{token}/s": ", tokens/s"}
"""Units that a table has behind the names, as they would widen each of its columns."""
_BEFORE = {"maximum": "maximum ", "phases, mean": "phase: "}
"""What stands before the names of a group where it has no heading."""
_LEAST, _MOST = 0.1, 10.0
"""Ratios between which a change is told in per cent."""


def orders(plan: Plan | None) -> Mapping[str, int]:
    """Session file name -> number of the run in the plan."""
    return {} if plan is None else {run.file: run.index for run in plan.runs}


def every_run(result: StudyResult) -> Iterator[tuple[Question, Cell, Run]]:
    """All runs, with their questions and cells."""
    for question in result.questions:
        for cell in question.cells:
            yield from ((question, cell, run) for run in cell.runs)


def order_of(session: Summary, order: Mapping[str, int]) -> int | None:
    """The session's number in the plan; ``None`` if it is not part of it."""
    return order.get(Path(session.path).name)


def cells(question: Question) -> Section:
    """One row per quantity: means and ratios, with the range of the runs below."""
    if not question.table:
        return Section("what was measured", ())
    told = "geometric means over the judged runs that gave a value, medians where one is 0, and "
    told += "their range where it shows"
    told += f"; {badge_legend(question.table) or 'all measured'}{steps_of(question.table)}"
    legend = [told, *change_legend(question.table, question.baseline)]
    labels = [cell.label for cell in question.cells]
    grid = quantity_table(
        question.table, labels, question.baseline, badges=True, first=_judged(question)
    )
    return Section("what was measured", (grid, *(Sentence("", each) for each in legend)))


def badge_legend(rows: Sequence[ComparisonRow]) -> str:
    """``(c) counted, all else measured``; empty where all is measured."""
    methods = {each for row in rows for each in _methods(row)}
    marks = [f"({mark}) {each}" for each, mark in BADGES.items() if each in methods]
    return f"{', '.join(marks)}, all else measured" if marks else ""


def steps_of(rows: Sequence[ComparisonRow]) -> str:
    """Of which steps the figures are, where rows of the steady part stand beside others."""
    names = {row.name for row in rows}
    if STEADY not in names or names.isdisjoint((MFU, "gpuwatch.flop.rate")):
        return ""
    steady = "typical step, steady mean and their throughput are of the steady part of a run"
    plain = "plain throughput, " * (THROUGHPUT in names)
    return f"; {steady}, {plain}model FLOP/s and MFU of all its timed steps"


def _judged(question: Question) -> list[tuple[str, ...]]:
    """How many runs the means are over, and how far apart these are."""
    counts = []
    for cell in question.cells:
        ended = [run for run in cell.judged if not run.session.status.live]
        in_part = sum(each.in_part for each in cell.not_run)
        others = (
            (len(cell.judged) - len(ended), "going on"),
            (sum(run.session.status.state in BAD for run in ended), "failed"),
            (len(cell.not_run) - in_part, "did not run"),
            (in_part, "fetched in part"),
        )
        told = [f"{count} {what}" for count, what in others if count]
        counts.append("\n".join((str(len(ended)), *told)))
    spreads = [units.percent(cell.spread) for cell in question.cells]
    return [("judged runs", *counts), ("their standard deviation", *spreads)]


def change_legend(rows: Sequence[ComparisonRow], baseline: int) -> list[str]:
    """What the changes of ``rows`` are: with an interval, without one."""
    changes = [
        row.change(at) is not None
        for row in rows
        for at, ratio in enumerate(row.ratios)
        if at != baseline and ratio is not None
    ]
    shares = any(row.unit == "1" for row in rows)
    moved = any(any(row.measured) for row in rows)
    having = f"values{' and what is as measured' * moved} keep it"
    told = []
    if True in changes:
        told = [
            f"changes are means within blocks{', of shares as factors' * shares}, with 95 % "
            "intervals; of what is judged they are the verdict's, which from five blocks on "
            f"leaves out the effect of the order in a block; {having}",
            "of twenty quantities that do not differ one interval excludes zero by chance",
        ]
    if False in changes:
        points = ", of shares in points (pp)" * shares
        if told:
            told.append(f"changes without an interval are of the means{points}")
        else:
            told.append(f"changes are of the means{points}; of what is judged the verdict's")
    return told


def runs(question: Question, order: Mapping[str, int]) -> Table:
    """Every run of each cell: its number in the study (or its session id), its value, with the
    change within its block, or why it has none, and its steady state."""
    ratios = {each.other: each.ratios for each in question.contrasts}
    rows: list[tuple[str, ...]] = []
    for at, cell in enumerate(question.cells):
        rows.append((cell.label, *[""] * 4))
        seen: set[int | None] = set()
        for run in cell.runs:
            known = ratios.get(at, ())
            alone = run.block is not None and 0 < run.block <= len(known) and run.block not in seen
            change = _against(known[run.block - 1], run.value, "s") if alone and run.block else ""
            seen.add(run.block)
            block = units.UNKNOWN if run.block is None else str(run.block or "warm-up")
            marked = ", outlier" if run.outlier else ""
            rows.append(
                (
                    str(order_of(run.session, order) or run.session.id[:6]),
                    block,
                    f"{value_of(run)} {change}".rstrip() + marked,
                    _steady(run.steady),
                    units.percent(run.steady.spread),
                )
            )
    head = ("run", "block", question.metric, "steady state", "spread of its steps")
    return Table(head, tuple(rows))


def value_of(run: Run) -> str:
    """The value, or why there is none."""
    if run.value is None:
        return f"no value: {run.reason or 'not known'}"
    return units.quantity(run.value, "s")


def _steady(steady: Steady) -> str:
    if steady.seconds is None:
        return f"none: {steady.reason or 'not known'}"
    last = steady.first + steady.count
    span = f"steps {steady.first + 1} to {last}, median {units.quantity(steady.seconds, 's')}"
    if not steady.changes:
        return span
    return f"{span}; the level changed at {', '.join(str(each + 1) for each in steady.changes)}"


def verdicts(question: Question) -> Section:
    """The numbers behind the verdicts: one column per contrast."""
    contrasts = question.contrasts
    if all(each.verdict.estimate is None for each in contrasts):
        return Section("verdicts in numbers", ())
    base = question.cells[question.baseline].label
    head = (f"against {base}", *(question.cells[each.other].label for each in contrasts))
    found = [_verdict(each.verdict) for each in contrasts]
    names = list(dict.fromkeys(name for of in found for name in of))
    rows = tuple((name, *(of.get(name, units.UNKNOWN) for of in found)) for name in names)
    return Section("verdicts in numbers", (Table(head, rows),))


def _verdict(verdict: Verdict) -> dict[str, str]:
    figures = {"verdict": verdict.kind.word, "margin": per_cent(verdict.margin)}
    if verdict.total is None:
        figures |= _changes(verdict, "")
    else:
        figures |= _changes(verdict, ", typical step") | _changes(verdict.total, ", steady mean")
    figures["pairs" if verdict.paired else "runs"] = str(verdict.pairs)
    if verdict.p_zero is not None:
        figures["tests (Holm)"] = str(verdict.tests)
    if verdict.more_blocks is not None:
        figures["blocks to show it, about"] = str(verdict.more_blocks)
    return figures


def _changes(verdict: Verdict, of: str) -> dict[str, str]:
    """The figures of one value, ``of`` in their names."""
    figures = {}
    if verdict.estimate is not None:
        figures[f"change{of}"] = estimate(verdict.estimate, verdict.change)
    if verdict.change is not None:
        figures[f"interval{of}"] = interval(verdict.change)
    if verdict.equivalence is not None:
        figures[f"equivalence interval{of}"] = interval(verdict.equivalence)
    if verdict.p_zero is not None:
        figures[f"p{of}"] = f"{verdict.p_zero:.2g}"
    noise = verdict.noise or 0.0
    if verdict.p_beyond is not None:
        asked = f"\n{NOISY_ALPHA} or beyond {units.percent(noise / NOISE_GATE)} needed"
        noisy = noise > NOISE_GATE * verdict.margin
        figures[f"p beyond the margin{of}"] = f"{verdict.p_beyond:.2g}{asked * noisy}"
    if verdict.noise is not None:
        figures[f"noise of one run{of}"] = units.percent(verdict.noise)
    return figures


def estimate(change: float, interval: Interval | None = None) -> str:
    """A relative change with as many digits as its interval justifies: ``+3.1 %``."""
    if interval is None:
        return f"{signed(change, 1 if abs(change) < 1 else 0)} %"
    return change_text(interval).partition(" (")[0]


def ends(interval: Interval) -> str:
    """``+2.7 to +3.5``, in per cent, with the digits of ``estimate``."""
    return change_text(interval).partition(" (")[2].removesuffix(")")


def interval(of: Interval) -> str:
    """``-0.1 to +0.5 % at 95 %``."""
    return f"{ends(of)} %\nat {100 * of.level:.3g} %"


def quantity_table(
    rows: Sequence[ComparisonRow],
    labels: Sequence[str],
    baseline: int | None,
    *,
    badges: bool = False,
    brief: bool = False,
    verdicts: Mapping[int, Verdict] | None = None,
    first: Sequence[Sequence[str]] = (),
) -> Table:
    """Quantities, those of the steps first, under the names of their groups, their methods last.

    Behind a value stands its change, of blocks with its interval below. With ``badges`` the methods
    are letters behind the names, which :data:`BADGES` explains. ``brief``: in the order given,
    without the groups' names, and without the runs' range below an interval. ``verdicts``: of the
    columns; with them a cell of repeated runs says whether it is better or worse. ``first``: rows
    before all others, a name and a text for each label.
    """
    last = [] if badges else [""]
    made: list[tuple[str, ...]] = [(*each, *last) for each in first]
    marks: dict[tuple[int, int], str] = {}
    group = ""
    for row in rows if brief else sorted(rows, key=lambda row: row.group != _FIRST):
        if not brief and row.group != group:
            group = row.group
            made.append((f"{clean(group)}:", *[""] * len(labels), *last))
        cells: list[str] = []
        for at in range(len(labels)):
            change, word = row.change(at), ""
            if verdicts is not None and baseline is not None:
                word = effect(row, at, baseline, verdicts[at]) if at in verdicts else ""
            cells.append(_cell(row, at, baseline, word, brief=brief))
            if word or (change and not change.low <= 0 <= change.high):
                marks[len(made), len(cells)] = word or CHANGED
        methods = _methods(row)
        letters = "/".join(BADGES[each] for each in methods if each in BADGES) if badges else ""
        # The name alone could be another's.
        before = _BEFORE.get(row.group, "") if brief or row.group == "maximum" else ""
        before = "" if row.name == PEAK_MEMORY else before
        name = f"{before}{name_of(row)}{_IN_NAME.get(row.unit, '')}"
        named = f"{name} ({letters})" if letters else name
        made.append((named, *cells, *([] if badges else ["/".join(methods)])))
    kept = [] if badges else [len(labels) + 1]
    if baseline is not None and len(labels) > 1:
        kept = [1 + baseline, *kept]
    head = ("", *labels, *([] if badges else ["method"]))
    return Table(head, tuple(made), tuple(kept), marks)


def name_of(row: ComparisonRow) -> str:
    """The quantity as people call it."""
    name = clean(row.name)
    return label(name) if "." in name else name


def _methods(row: ComparisonRow) -> list[str]:
    methods = dict.fromkeys(each.value for each in row.methods)
    return [each for each in methods if each != Method.UNAVAILABLE.value]


def _against(ratio: float | None, value: float | None, unit: str, base: float | None = None) -> str:
    """How far a value is from another, by their ratio: ``+3.1 %``, ``×2.50``; of shares in points:
    ``-6.2 pp``. Empty if they are equal, or it is unknown. ``base``: the other, where it is."""
    if ratio is None or value is None or ratio == 1:
        return ""
    was = value / ratio if ratio else base
    if unit == "1" and was is not None:
        points = signed(value - was)
        return "" if points == "+0.0" else f"{points} pp"
    return f"{signed(ratio - 1)} %" if _LEAST <= ratio < _MOST else units.ratio(ratio)


def _cell(row: ComparisonRow, at: int, baseline: int | None, word: str, *, brief: bool) -> str:
    """Value and change; below them the range of the runs, the change's interval, and how many runs
    have a value if not all."""
    value, change = row.values[at], row.change(at)
    text = units.quantity(value, row.unit, is_traffic=row.is_traffic)
    if value is None:
        return text
    base = None if baseline in (None, at) else row.values[baseline]
    # Of several sessions the baseline may be none of this one's.
    alike = row.of_cells or len(row.values) == 2
    told = ends = ""
    if change is not None:
        told, ends = _change(change, row.unit)
    elif row.unit == DEGREES and base is not None and alike:
        told = f"{round(value) - round(base):+d} °C"
    elif at != baseline:
        told = _against(row.ratios[at], value, row.unit, base if alike else None)
    if alike and base and baseline is not None and not told:
        error = row.error(baseline, at)
        within = error and abs(value / base - 1) <= error
        told = f"within ±{units.percent(error)}" if within else ""
    short = text.removesuffix(_IN_NAME.get(row.unit, "").replace(",", ""))
    beside = " ".join(filter(None, (told, word)))
    if len(row.values) == 1 and any(row.errors):
        short += units.give_or_take(row.errors[at])
    lines = ["\t".join(filter(None, (units.bounded(short, row.bound(at)), beside)))]
    if row.of_cells and not (brief and any(row.changes)):
        lines.append(breakable(_span(row, at, text)))
    lines.append(ends)
    if row.measured and row.measured[at]:
        lines.append(f"as measured {_against(row.measured[at], value, row.unit)}")
    if row.known and 0 < row.known[at] < row.runs[at]:
        lines.append(f"{row.known[at]} of {row.runs[at]} runs")
    return "\n".join(filter(None, lines))


def _span(row: ComparisonRow, at: int, value: str) -> str:
    """The range of the runs where it shows, without the value's unit: ``499 to 506``."""
    low, high = row.lows[at], row.highs[at]
    if low is None or high is None:
        return ""
    first, to, last = units.span(low, high, row.unit, is_traffic=row.is_traffic).partition(" to ")
    number, _, unit = last.rpartition(" ")
    shared = " " not in first and value.endswith(f" {unit}")
    return f"{first}{to}{number if shared else last}" if to else ""


def _change(change: Interval, unit: str) -> tuple[str, str]:
    """The estimate and its interval in brackets, of shares as factors: per cent of per cent would
    be read as points."""
    if unit == "1":
        low, mean, high = (units.ratio(1 + e) for e in (change.low, change.estimate, change.high))
        return mean, f"({low[1:]} to {high[1:]})"
    told, _, ends = change_text(change).partition(" (")
    return told, f"({ends}"


def breakable(span: str) -> str:
    """A range that may be broken before its upper end."""
    return span.replace(" to ", "\tto ")
