"""The part of a session that its figures are taken over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.samples.rates import StepLine, begin
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.reading.reader import SessionReader

WHOLE_RUN = "whole run"
"""Kind of a window that covers the whole session, up to its last sample."""
_FEWEST_SAMPLES = 2
_LONGEST = 1e9
"""Seconds beyond which a run cannot have taken: files may come from anywhere."""


@dataclass(frozen=True)
class Window:
    """A span of the session, in nanoseconds since its start."""

    kind: str
    """``timed steps``, or ``whole run`` where steps are unknown or too short for two samples."""
    start: int
    end: int

    @property
    def seconds(self) -> float:
        return (self.end - self.start) / 1e9


def span_of(steps: Sequence[StepLine]) -> tuple[int, int] | None:
    """Start of the first timed step and end of the last, in nanoseconds; ``None`` without any.

    The start is by the times of the steps: lines of a GPU's may overlap, as the warm-up is told
    late, and energy is divided by all timed steps.
    """
    timed = [at for at, row in enumerate(steps) if not row.warmup]
    if not timed:
        return None
    first = timed[0]
    start = begin(steps[first], steps[first - 1].t if first else None)
    return max(0, start), steps[timed[-1]].t


def timed_window(steps: Sequence[StepLine], sample_times: Sequence[int]) -> Window:
    """The span of the timed steps if at least two samples lie in it, else the whole run.

    ``sample_times``: nanoseconds; the whole run ends with the last one.
    """
    return _window(span_of(steps), sample_times)


def _window(span: tuple[int, int] | None, sample_times: Sequence[int]) -> Window:
    whole = Window(WHOLE_RUN, 0, sample_times[-1] if sample_times else 0)
    if span is None or sum(span[0] <= t <= span[1] for t in sample_times) < _FEWEST_SAMPLES:
        return whole
    return Window("timed steps", *span)


def few_sample_times(reader: SessionReader, span: tuple[int, int] | None) -> list[int]:
    """The times of samples that :func:`timed_window` needs: the first two from the start of
    ``span`` on, and the last one."""
    last = reader.last_sample()
    if last is None:
        return []
    first = reader.samples((), span[0] - 1, span[1]).t[:2] if span is not None else []
    return [*(t for t in first if t < last), last]


def window_in(reader: SessionReader) -> Window:
    """:func:`timed_window` of a session, read from a few rows."""
    first, last, span = first_timed(reader), reader.last_step(), None
    if first is not None:
        span = first[0], reader.steps(last - 1, 1)[0].t
    return _window(span, few_sample_times(reader, span))


def first_timed(reader: SessionReader) -> tuple[int, int] | None:
    """Start of the first timed step in nanoseconds, and its number."""
    n = reader.first_timed_step()
    if n is None:
        return None
    rows = [row for row in reader.steps(n - 2, 2) if row.n <= n]
    start = begin(rows[-1], rows[0].t if len(rows) > 1 else None)
    return max(0, start), rows[-1].step - rows[-1].count + 1


def spent(meta: Mapping[str, JSON], key: str) -> float | None:
    """Time of the process without profile and counters, else the workload's own report."""
    total = number(mapping(meta.get("result")).get(key))
    if total is None:
        return number(mapping(meta.get("end")).get(key))
    return max(0.0, total - behind(meta, key)) if 0 <= total < _LONGEST else None


def behind(meta: Mapping[str, JSON], key: str) -> float:
    """Seconds of the profile and counters after the run, which are not part of its times."""
    stages = (mapping(meta.get(name)) for name in ("profile", "counters"))
    return sum(max(0.0, number(stage.get(key)) or 0.0) for stage in stages)
