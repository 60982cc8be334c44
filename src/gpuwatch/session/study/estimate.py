"""Estimates how long runs take, from earlier recordings."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from itertools import pairwise
from pathlib import Path

from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session import placement
from gpuwatch.session.reading.reader import known_meta
from gpuwatch.session.reading.status import State, process_id, status
from gpuwatch.session.study.plan import PlannedRun, read

_MOST_FILES, _ENOUGH = 100, 3
Cell = tuple[str, str, tuple[str, ...], str]
"""A workload in an environment: name, kind and arguments of the workload, label."""


@dataclass(frozen=True)
class Timing:
    """Time, duration and content of a finished recording."""

    cell: Cell
    path: Path
    start: float
    """Unix time in seconds."""
    seconds: float
    """From the start of the recording to its end."""
    index: int
    """Position in its study, from 1; 0: not known."""
    host: str | None
    finished: bool

    @property
    def end(self) -> float:
        return self.start + self.seconds


@dataclass(frozen=True)
class KnownTimes:
    """Known durations, in seconds."""

    runs: Mapping[Cell, Sequence[float]] = field(default_factory=dict)
    pauses: Sequence[float] = ()
    """Between the end of a run and the start of the next one."""

    def left(self, cells: Sequence[Cell], pauses: int) -> float | None:
        """Seconds for runs of these cells with ``pauses`` pauses; ``None`` if one is unknown."""
        if any(cell not in self.runs for cell in cells) or (pauses and not self.pauses):
            return None
        rest = pauses * _mean(self.pauses) if pauses else 0.0
        return sum(_mean(self.runs[cell]) for cell in cells) + rest


def _mean(times: Sequence[float]) -> float:
    """Not the median: a few pauses with a summary may be most of the time of all."""
    return sum(times) / len(times)


def cell(run: PlannedRun) -> Cell:
    """The key for the durations of ``run``."""
    workload = run.workload
    return workload.name, workload.kind, workload.arguments, run.environment.label


def timing(path: Path) -> Timing | None:
    """Timing of a session; ``None`` if it did not end or cannot be read."""
    meta = known_meta(path)
    return None if meta is None else timing_of_meta(meta, path)


def cell_of(meta: Mapping[str, JSON]) -> Cell:
    """The same of a session by its meta data."""
    workload = mapping(meta.get("workload"))
    arguments = workload.get("arguments")
    return (
        str(workload.get("name")),
        str(workload.get("kind")),
        tuple(map(str, arguments)) if isinstance(arguments, list) else (),
        str(mapping(meta.get("environment")).get("label")),
    )


def timing_of_meta(meta: Mapping[str, JSON], path: Path) -> Timing | None:
    """As :func:`timing`, for a session whose meta is already read."""
    clock = mapping(meta.get("clock"))
    start, closed = number(clock.get("unix_ns")), number(mapping(meta.get("closed")).get("t"))
    if start is None or closed is None:
        return None
    recorder = process_id(meta.get("recorder"))
    index = mapping(meta.get("session")).get("index")
    return Timing(
        cell=cell_of(meta),
        path=path,
        start=start / 1e9,
        seconds=closed / 1e9,
        index=index if isinstance(index, int) else 0,
        host=recorder.host if recorder else None,
        finished=status(meta, path).state is State.FINISHED,
    )


def times_of_study(timings: Iterable[Timing]) -> KnownTimes:
    """Durations from the runs of one study, failed runs included."""
    ordered = sorted(timings, key=lambda timing: timing.start)
    runs = grouped((timing.cell, timing.seconds) for timing in ordered)
    return KnownTimes(runs, [after.start - before.end for before, after in _neighbours(ordered)])


def history(paths: Iterable[Path], cells: Sequence[Cell], place: str | None = None) -> KnownTimes:
    """Durations of ``cells`` from finished sessions on this host, or of studies that were sent to
    ``place``; pauses without the cool-down.

    Opens at most the hundred newest of ``paths``.
    """
    runs: dict[Cell, list[float]] = {cell: [] for cell in cells}
    seen: list[Timing] = []
    for path in sorted(dict.fromkeys(paths), key=changed, reverse=True)[:_MOST_FILES]:
        paused = len(cells) < 2 or _neighbours(seen)
        if paused and all(len(seconds) >= _ENOUGH for seconds in runs.values()):
            break
        earlier = timing(path)
        if earlier is None or not earlier.finished or not _was_at(earlier, place):
            continue
        seen.append(earlier)
        if len(runs.get(earlier.cell, [0.0] * _ENOUGH)) < _ENOUGH:
            runs[earlier.cell].append(earlier.seconds)
    pauses = [
        max(0.0, after.start - before.end - rest)
        for before, after in _neighbours(seen)
        if (rest := _cool_down(after)) is not None
    ]
    return KnownTimes({cell: times for cell, times in runs.items() if times}, pauses)


def _was_at(earlier: Timing, place: str | None) -> bool:
    if place is None:
        return earlier.host == socket.gethostname()
    known = placement.read(earlier.path.parent)
    return known is not None and known.place == place


def about(seconds: float) -> str:
    """A rough time: ``under 10 s``, ``about 40 s``, ``about 12 min``, ``about 2.5 h``."""
    if seconds < 10:
        return "under 10 s"
    if seconds < 95:
        return f"about {round(seconds, -1):.0f} s"
    if seconds < 95 * 60:
        return f"about {seconds / 60:.0f} min"
    return f"about {seconds / 3600:.1f} h" if seconds < 36000 else f"about {seconds / 3600:.0f} h"


def _neighbours(timings: Iterable[Timing]) -> list[tuple[Timing, Timing]]:
    """Pairs of consecutive runs of one study."""
    return [
        (before, after)
        for before, after in pairwise(sorted(timings, key=lambda timing: timing.start))
        if before.path.parent == after.path.parent and after.index == before.index + 1
    ]


def _cool_down(after: Timing) -> float | None:
    plan = read(after.path.parent)
    if plan is None or not 1 <= after.index <= len(plan.runs):
        return None
    return plan.parts[plan.runs[after.index - 1].part].cool_down


def changed(path: Path) -> float:
    """When a file was written last, in Unix seconds; 0: not known."""
    with contextlib.suppress(OSError):
        return path.stat().st_mtime
    return 0.0
