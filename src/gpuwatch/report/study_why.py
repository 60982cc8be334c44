"""What goes with the differences of one question: evidence, kernels, versions, start-up."""

from __future__ import annotations

from gpuwatch import units
from gpuwatch.analysis.results import Contrast, Evidence, Question, Run
from gpuwatch.report.efficiency import kernel_grid
from gpuwatch.report.study_document import Grid, Heading, Item, Said, Section
from gpuwatch.report.study_tables import baseline_of
from gpuwatch.report.side_by_side import short_fact

_ROOM_FOR_FACTS = 120


def evidence(question: Question) -> Section:
    """Down the ladder, for each contrast; then what bounds a run of each cell."""
    items: list[Item] = []
    base = question.cells[baseline_of(question)].label
    for contrast in question.contrasts:
        if of := contrast.explanation.evidence:
            items.append(Heading(f"{question.cells[contrast.other].label} against {base}"))
            items += [Said(each.rung, _told(each)) for each in of]
    bound = _bounds(question)
    items += [Heading("what bounds a run in the middle of each cell"), *bound] if bound else []
    return Section("what goes with it", tuple(items))


def _told(evidence: Evidence) -> str:
    points = evidence.points
    if points is None:
        return evidence.text
    estimate, low, high = (100 * each for each in (points.estimate, points.low, points.high))
    told = f"{evidence.text}: {estimate:+.1f} points"
    return told if low == high else f"{told} ({low:+.1f} to {high:+.1f})"


def _bounds(question: Question) -> list[Item]:
    return [
        Said(cell.label, run.session.efficiency.roofline.verdict.text)
        for cell, run in zip(question.cells, middle_runs(question), strict=True)
        if run is not None and run.session.workload.get("kind") not in ("machine", "import")
    ]


def middle_runs(question: Question) -> list[Run | None]:
    """Of each cell the run that is nearest to its median; where none has a value, the last."""
    found: list[Run | None] = []
    for cell in question.cells:
        median = cell.median
        known = [run for run in cell.judged if run.value is not None]
        found.append(
            min(known, key=lambda run: abs((run.value or 0.0) - (median or 0.0)))
            if known and median is not None
            else (cell.runs[-1] if cell.runs else None)
        )
    return found


def kernels(question: Question) -> Section:
    """Kernels that ran in one of two cells, for each contrast that has any."""
    items: list[Item] = []
    for contrast in question.contrasts:
        if contrast.explanation.kernels:
            labels = [question.cells[at].label for at in (contrast.baseline, contrast.other)]
            head, rows = kernel_grid(labels, contrast.explanation.kernels, str)
            items.append(Grid(tuple(head), tuple(tuple(row) for row in rows)))
    return Section("kernels", tuple(items))


def differences(question: Question) -> Section:
    """Facts of the fingerprints that are not those of the baseline; empty: no such difference."""
    found: dict[tuple[str, str], dict[int, object]] = {}
    for contrast in question.contrasts:
        for each in contrast.explanation.differences:
            values = found.setdefault((each.scope, each.key), {})
            values[contrast.baseline], values[contrast.other] = each.values
    longest = max(20, _ROOM_FOR_FACTS // len(question.cells))
    rows = tuple(
        (
            f"{scope}: {key}",
            *(
                short_fact(key, values[at], longest) if at in values else ""
                for at in range(len(question.cells))
            ),
        )
        for (scope, key), values in found.items()
    )
    head = ("fingerprint", *(cell.label for cell in question.cells))
    return Section("what differs around the runs", (Grid(head, rows),) if rows else ())


def start_up(question: Question) -> Section:
    """What starting costs in each cell, and after how many steps that is made up for."""
    items = tuple(
        Said(question.cells[each.other].label, text)
        for each in question.contrasts
        if (text := _start(each, question.cells[each.baseline].label))
    )
    return Section("start-up", items)


def _start(contrast: Contrast, base: str) -> str:
    start = contrast.explanation.start_up
    if start is None or start.seconds is None:
        return ""
    told = units.milliseconds(start.seconds)
    if start.extra_seconds is None:
        return told
    more = "more" if start.extra_seconds >= 0 else "less"
    told += f", {units.milliseconds(abs(start.extra_seconds))} {more} than {base}"
    if start.steps_to_amortise is None:
        return told
    margin = f"{100 * contrast.verdict.margin:g} %"
    return f"{told}: under {margin} of the whole time after {start.steps_to_amortise:,} steps"
