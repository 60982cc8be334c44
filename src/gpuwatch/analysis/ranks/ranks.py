"""The ranks of one run: figures of each, imbalance, and stragglers with what goes with them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import median_low

import numpy as np

from gpuwatch.analysis.ranks import stragglers
from gpuwatch.analysis.ranks.own_time import Cells, cells_of, own_seconds, seconds_of
from gpuwatch.analysis.samples.source import Source, select_channels
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core.aggregate import average_of, grouped, total_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import MPS_SERVER, RankRow, RankStepRow, mean_phases

COLUMNS = 60


@dataclass(frozen=True)
class Heat:
    """Own time of each rank over that of the median rank of the same moment, less 1.

    Of an even number of ranks the lower of the two in the middle is the median: of two ranks the
    faster one.
    """

    ranks: tuple[int, ...]
    starts: tuple[float, ...]
    """Session nanoseconds, one for each column."""
    ends: tuple[float, ...]
    values: tuple[tuple[float, ...], ...]
    """For each rank one value per column: 0.12 is 12 % longer."""


def heat_of(cells: Cells) -> Heat:
    """The map in at most :data:`COLUMNS` columns, neighbouring cells put together."""
    parts = np.array_split(np.arange(cells.edges.shape[0]), min(COLUMNS, cells.edges.shape[0]))
    first = [part[0] for part in parts]
    last = [part[-1] for part in parts]
    own = np.add.reduceat(cells.own, first, axis=1) / np.add.reduceat(cells.steps, first, axis=1)
    median = np.sort(own, axis=0)[(own.shape[0] - 1) // 2]
    relative = np.divide(own, median, out=np.ones_like(own), where=median > 0) - 1
    return Heat(
        cells.ranks,
        tuple(map(float, cells.edges[first, 0])),
        tuple(map(float, cells.edges[last, 1])),
        tuple(tuple(map(float, row)) for row in relative),
    )


NO_PHASES = "the ranks' own time is unknown: they report no phases"
SHARDED = "their parameters are sharded, so that ranks wait for each other in forward, too"
NO_STEPS = "the ranks reported no timed steps"


@dataclass(frozen=True)
class RankFigures:
    """One rank, over its timed steps; ``None`` is unknown."""

    rank: int
    local_rank: int | None
    pid: int | None
    """As the process sees itself."""
    device: str | None
    """UUID of its GPU, or ``cpu``."""
    steps: int
    step_seconds: float | None
    own_seconds: float | None
    """Of a step: all but waiting for other ranks."""
    phases: Mapping[str, float]
    """Seconds of a step by phase."""
    samples: float | None
    tokens: float | None
    samples_per_second: float | None
    tokens_per_second: float | None

    @property
    def data_share(self) -> float | None:
        """Share of a step spent waiting for data."""
        data = self.phases.get("data")
        return data / self.step_seconds if data is not None and self.step_seconds else None


@dataclass(frozen=True)
class Straggler:
    """A rank that is slower than the others beyond noise."""

    excess: stragglers.Excess
    goes_with: tuple[stragglers.Reason, ...]


@dataclass(frozen=True)
class Ranks:
    """All ranks of a run of several, in order."""

    figures: tuple[RankFigures, ...]
    world_size: int | None
    step_seconds: float | None
    """Mean time of a step."""
    slowest: int | None
    """The rank with the longest own time."""
    imbalance: float | None
    """The longest own time over the median of all (of an even number the lower of the two in the
    middle), less 1."""
    excesses: tuple[stragglers.Excess, ...]
    stragglers: tuple[Straggler, ...]
    """The slowest first."""
    reason: str | None
    """Why nothing can be said of stragglers."""
    heat: Heat | None
    """``None``: the own times are unknown, or the ranks share no time."""

    @property
    def counted(self) -> str:
        """``8 ranks``; ``8 of 16 ranks`` where the run has more on other machines."""
        here, world = len(self.figures), self.world_size or 0
        return f"{here} of {world} ranks" if world > here else f"{here} ranks"


@dataclass(frozen=True)
class Telemetry:
    """What was sampled of the ranks' GPUs and processes in some stretch of time."""

    metrics: Mapping[str, Mapping[str, float]]
    """Means by UUID of the GPU and metric."""
    neighbours: Mapping[str, tuple[str, ...]]
    """Processes of others by UUID of the GPU."""
    cores: Mapping[int, float]
    """Mean cores by process."""


NOTHING = Telemetry({}, {}, {})


def figures_of(rows: Sequence[RankRow], steps: Sequence[RankStepRow]) -> tuple[RankFigures, ...]:
    """The figures of each rank, in order; also of a run of one rank."""
    timed = grouped((step.rank, step) for step in steps if not step.warmup)
    described = {row.rank: row for row in rows}
    return tuple(
        _figures(described.get(rank, RankRow(rank)), timed.get(rank, []))
        for rank in sorted(described.keys() | timed.keys())
    )


def ranks_of(
    rows: Sequence[RankRow],
    steps: Sequence[RankStepRow],
    sampled: Callable[[int | None], Telemetry] = lambda _: NOTHING,
) -> Ranks | None:
    """Compare the ranks of a run; ``None`` for a run of fewer than two.

    ``sampled``: gives what was sampled from a moment on, in session nanoseconds (``None``: over all
    timed steps). It is called only if there is a straggler.
    """
    figures = figures_of(rows, steps)
    if len(figures) < 2:
        return None
    times = [each.step_seconds for each in figures if each.step_seconds is not None]
    own = {each.rank: each.own_seconds for each in figures if each.own_seconds is not None}
    step_seconds = average_of(times)
    slowest, imbalance = None, None
    if len(own) == len(figures):
        slowest = max(own, key=lambda rank: own[rank])
        middle = median_low(own.values())
        imbalance = own[slowest] / middle - 1 if middle > 0 else None
    sharded = any(row.sharded for row in rows)
    cells = None if sharded else cells_of(steps)
    judged, reason = _judged(figures, cells, step_seconds)
    if sharded:
        reason = SHARDED
    return Ranks(
        figures,
        next((row.world_size for row in rows if row.world_size is not None), None),
        step_seconds,
        slowest,
        imbalance,
        judged.excesses,
        tuple(
            Straggler(excess, _goes_with(excess, rows, steps, sampled))
            for excess in judged.stragglers
        ),
        reason,
        None if cells is None else heat_of(cells),
    )


def tokens_per_second(figures: Sequence[RankFigures]) -> float | None:
    """Tokens per second of all ranks together; ``None`` if one is unknown."""
    return total_of([each.tokens_per_second for each in figures if each.steps])


def _judged(
    figures: Sequence[RankFigures], cells: Cells | None, step_seconds: float | None
) -> tuple[stragglers.Judged, str | None]:
    nothing = stragglers.Judged((), (), 0)
    if not all(each.steps for each in figures) or step_seconds is None:
        return nothing, NO_STEPS
    if any(each.own_seconds is None for each in figures):
        return nothing, NO_PHASES
    judged = nothing if cells is None else stragglers.judge(cells, step_seconds)
    if judged.blocks < stragglers.FEWEST_BLOCKS:
        return judged, (
            f"too few timed steps that all ranks share: {judged.blocks} stretches of about two "
            f"seconds or one step, and {stragglers.FEWEST_BLOCKS} are needed"
        )
    return judged, None


def _goes_with(
    excess: stragglers.Excess,
    rows: Sequence[RankRow],
    steps: Sequence[RankStepRow],
    sampled: Callable[[int | None], Telemetry],
) -> tuple[stragglers.Reason, ...]:
    since = excess.since
    if since is not None:
        steps = [row for row in steps if row.t > since]
    telemetry = sampled(since)
    nodes = {row.rank: (row.cpu_nodes, row.gpu_node) for row in rows}
    measured = {}
    for each in figures_of(rows, steps):
        device = None if each.device == "cpu" else each.device
        measured[each.rank] = stragglers.Measured(
            each.phases,
            device,
            telemetry.metrics.get(device) if device else None,
            telemetry.cores.get(each.pid) if each.pid is not None else None,
            telemetry.neighbours.get(device, ()) if device else (),
            *nodes.get(each.rank, ((), None)),
        )
    return stragglers.reasons(excess.rank, measured)


def _figures(row: RankRow, steps: Sequence[RankStepRow]) -> RankFigures:
    count = sum(step.count for step in steps)
    taken = total_of([seconds_of(step) for step in steps])
    samples = total_of([step.samples for step in steps])
    tokens = total_of([step.tokens for step in steps])
    known = [step for step in steps if step.sampled != 0]
    own = None if row.sharded else total_of([own_seconds(step) for step in known])
    return RankFigures(
        rank=row.rank,
        local_rank=row.local_rank,
        pid=row.pid,
        device=row.device,
        steps=count,
        step_seconds=None if taken is None else taken / count,
        own_seconds=None if own is None else own / sum(step.count for step in known),
        phases=mean_phases(steps),
        samples=samples,
        tokens=tokens,
        samples_per_second=samples / taken if samples is not None and taken else None,
        tokens_per_second=tokens / taken if tokens is not None and taken else None,
    )


_MOMENTS = 20
"""Moments at which the cores of each process are read."""


def recorded_ranks(
    reader: SessionReader, source: Source, rows: Sequence[RankRow], steps: Sequence[RankStepRow]
) -> Ranks | None:
    """Compare the ranks of a session; ``None`` for a run of fewer than two."""
    timed = [row.t for row in steps if not row.warmup]

    def sampled(since: int | None) -> Telemetry:
        start = min(timed) if since is None else since
        return _telemetry(reader, source, Window("timed steps", start, max(timed)))

    return ranks_of(rows, steps, sampled)


def _telemetry(reader: SessionReader, source: Source, window: Window) -> Telemetry:
    uuids = {row.id: row.uuid for row in reader.devices() if row.kind == "gpu" and row.uuid}
    channels = select_channels(reader, stragglers.METRICS, uuids)
    columns = source.columns(channels, window)
    metrics: dict[str, dict[str, float]] = {}
    for channel in channels:
        column = columns[channel.id]
        mean, known = column.mean, column.values[~np.isnan(column.values)]
        if mean is None and known.size:
            mean = float(known.mean())
        if mean is not None:
            metrics.setdefault(str(uuids[channel.device]), {})[channel.metric] = mean
    neighbours: dict[str, tuple[str, ...]] = {}
    for process in reader.gpu_processes():
        uuid = uuids.get(process.device)
        there = process.running or process.t > window.start
        if uuid and process.owned is False and there and MPS_SERVER not in (process.name or ""):
            name = f"{process.name or 'a process'} (PID {process.pid})"
            neighbours[uuid] = (*neighbours.get(uuid, ()), name)
    cores = grouped(
        (process.pid, process.cores)
        for moment in np.linspace(window.start, window.end, _MOMENTS + 1)[1:]
        for process in reader.processes(int(moment)).all
        if process.cores is not None and process.running
    )
    means = {pid: sum(of_process) / len(of_process) for pid, of_process in cores.items()}
    return Telemetry(metrics, neighbours, means)
