"""Rates of counted work: work per step times the measured step rate."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gpuwatch.session.rows import StepRow


def intervals(steps: Iterable[StepRow]) -> list[tuple[int, int, StepRow]]:
    """``(start, end, row)`` in nanoseconds: the time each step line covers.

    It ends when the line's last step ended. With step times it is as long as they are together,
    otherwise it begins where the line before ended; a first line without times covers no time.
    """
    found: list[tuple[int, int, StepRow]] = []
    before: int | None = None
    for row in steps:
        if row.seconds:
            start = row.t - int(sum(row.seconds) * 1e9)
        else:
            start = row.t if before is None else before
        if before is not None:
            start = max(start, before)
        found.append((min(start, row.t), row.t, row))
        before = row.t
    return found


def rate_series(
    steps: Iterable[StepRow], work: Callable[[StepRow], float | None], edges: Sequence[int]
) -> list[float | None]:
    """Work per second between neighbouring ``edges`` (nanoseconds), one value fewer than edges.

    A step line's work is spread evenly over the time it covers. ``None`` where the work is unknown
    or no step line reaches; where steps were still to come at the end, the known part counts.
    """
    totals: list[float | None] = [None] * max(0, len(edges) - 1)
    first = 0
    for start, end, row in intervals(steps):
        amount = work(row)
        if amount is None or end <= start:
            continue
        while first < len(totals) and edges[first + 1] <= start:
            first += 1
        index = first
        while index < len(totals) and edges[index] < end:
            overlap = min(end, edges[index + 1]) - max(start, edges[index])
            share = amount * overlap / (end - start)
            totals[index] = (totals[index] or 0.0) + share
            index += 1
    return [
        None if total is None else total / ((edges[i + 1] - edges[i]) / 1e9)
        for i, total in enumerate(totals)
    ]


def samples_of(row: StepRow) -> float | None:
    """Samples of a step line."""
    return row.samples


def flop_of(per_step: float | None) -> Callable[[StepRow], float | None]:
    """Model FLOP of a step line: its own figure, else ``per_step`` times its steps."""
    return lambda row: _work(row.flop, per_step, row)


def bytes_of(per_step: float | None) -> Callable[[StepRow], float | None]:
    """Algorithmic bytes of a step line: its own figure, else ``per_step`` times its steps."""
    return lambda row: _work(row.bytes, per_step, row)


def _work(own: float | None, per_step: float | None, row: StepRow) -> float | None:
    if own is not None:
        return own
    return None if per_step is None else per_step * row.count
