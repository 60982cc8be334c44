"""The summary of one session: the figures of ``gpuwatch show``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from gpuwatch.analysis.hardware.ceilings import missing_of
from gpuwatch.analysis.hardware.efficiency import SAMPLED, Efficiency, Work, efficiency_of
from gpuwatch.analysis.hardware.energy import with_energy
from gpuwatch.analysis.hardware.profile import (
    Counters,
    Profile,
    counters_of,
    profile_of,
    was_asked_for,
    why_none,
)
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.measured_value import MeasuredValue
from gpuwatch.analysis.ranks.ranks import Ranks, figures_of, recorded_ranks, tokens_per_second
from gpuwatch.analysis.samples import rates, step_lines
from gpuwatch.analysis.samples.cpu_time import LEAST_SPLIT_SECONDS
from gpuwatch.analysis.samples.source import Source
from gpuwatch.analysis.samples.steady_state import StepTimes, series_of
from gpuwatch.analysis.samples.window import Window, behind, span_of, spent, timed_window
from gpuwatch.analysis.statistics.description import Statistic
from gpuwatch.analysis.summary.failure import failure_of, reason_of
from gpuwatch.analysis.summary.generation import Generation, generation_of
from gpuwatch.analysis.summary.listing import iso, peak_gpu_memory
from gpuwatch.analysis.summary.metrics import statistics_of
from gpuwatch.analysis.summary.notes import how_timed, notes
from gpuwatch.analysis.summary.training import Training, training_of
from gpuwatch.analysis.summary.training import notes as training_notes
from gpuwatch.core.aggregate import total_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import Status, status
from gpuwatch.session.rows import DeviceRow, StepBucket, StepRow, mean_phases, with_phases
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import NONE, Label

_MUCH = 1.05
"""Times the median from which on the mean is clearly above it."""
_LONG = 3.0
"""Times the median from which on a step is a long one."""
_MANY = 4.5
"""How many long steps that were drawn tell what the others did; none makes more of the time."""


@dataclass(frozen=True)
class Timing:
    """Times in seconds; ``None`` is unknown."""

    launch_seconds: float | None
    """From the start of the launch to the first line of Python in the workload."""
    import_seconds: float | None
    model_seconds: float | None
    first_step_seconds: float | None
    ending_seconds: float | None
    """From the last step to the end of the process, without the profile and the counters."""
    real_seconds: float | None
    user_seconds: float | None
    """As the system's: also ``None`` where both together are too few ticks to tell them apart."""
    sys_seconds: float | None
    cpu_seconds: float | None = None
    cpu_is_bound: bool = False
    """CPU seconds are lower bounds: they were read shortly before the end."""
    profile_seconds: float | None = None
    """Of the profile and the counters after the run, which are in no other time."""


@dataclass(frozen=True)
class SlowStep:
    """The step that makes most of what the mean is over the median, where that is much."""

    step: int
    seconds: float
    phases: Mapping[str, float]
    """Seconds of each, if they are known of this step alone."""
    shares_without: Mapping[str, float] = field(default_factory=dict)
    """Of each phase in a step, on the mean of all others, where this one is one line."""


@dataclass(frozen=True)
class Steps:
    """The timed steps. Partial batches count as steps, but not in the step-time statistics."""

    count: int | None = None
    """``None`` where no step was reported at all, or by several processes."""
    warmup_count: int | None = None
    partial_count: int | None = None
    median_seconds: float | None = None
    mean_seconds: float | None = None
    arrival_seconds: float | None = None
    """Mean by the arrival of the lines, where these tell no step's time."""
    p95_seconds: float | None = None
    min_seconds: float | None = None
    max_seconds: float | None = None
    samples_per_second: float | None = None
    """In training: without evaluations."""
    samples_per_step: float | None = None
    """Of a full step."""
    reason: str | None = None
    """Why there is no median."""
    phases: Mapping[str, float] = field(default_factory=dict)
    """Mean seconds of each phase per timed step, of those that were sampled."""
    first_loss: float | None = None
    last_loss: float | None = None
    evaluation_seconds: float | None = None
    """Between the timed steps; ``None``: the program told of none."""
    samples_per_second_overall: float | None = None
    """Training samples per second of training and evaluations together."""
    sampled_count: int | None = None
    """Timed steps with phases, drawn at random; ``None``: all."""
    undrawn_seconds: float | None = None
    """Of ``other``: what long steps took that were not drawn, in phases that are not known;
    ``None``: less than a hundredth of the step."""
    slowest: SlowStep | None = None
    known_until_seconds: float | None = None
    """Since the session's start: later output is unknown, and its steps are not counted; ``None``:
    the whole run is known."""


@dataclass(frozen=True)
class DeviceSummary(DeviceRow):
    """One device of a session and its statistics; its attributes are facts of docs/telemetry.md."""

    metrics: Mapping[str, Statistic]


@dataclass(frozen=True)
class Summary:
    """The figures of one session."""

    id: str
    path: str
    label: str
    started: str
    """ISO 8601, UTC."""
    started_unix: float | None
    """Seconds since 1970."""
    status: Status
    failure: str
    """Why it failed, in few words; empty of one that did not."""
    notice: str | None
    seconds: float | None
    workload: Mapping[str, JSON]
    environment: Mapping[str, JSON]
    interval_seconds: float | None
    timing: Timing
    steps: Steps
    training: Training
    count: Mapping[str, JSON]
    """The ``count`` report: FLOP and bytes of one step, of the mean one where steps differ."""
    run: Mapping[str, JSON]
    """The ``run`` report: model, data, data type, device."""
    window: Window
    metrics: Mapping[str, Statistic]
    devices: tuple[DeviceSummary, ...]
    facts: Mapping[str, Mapping[str, JSON]]
    error: Mapping[str, JSON]
    notes: tuple[str, ...]
    """Events in the recording that affect the figures."""
    how_timed: tuple[str, ...]
    """How the hook timed the steps, what it took itself, and from which lines losses are; also in
    ``notes``."""
    hook_cost: float | None
    """Share of the time that the hook took, as it measured itself; ``None``: it is not known."""
    left_out: tuple[str, ...]
    """Data left out because there was too much; also in ``notes``."""
    efficiency: Efficiency
    profile: Profile | None
    counters: Counters | None
    peak_gpu_memory: MeasuredValue
    """Bytes, as in lists."""
    generation: Generation | None = None
    """Of a language model that generates."""
    several_writers: str | None = None
    """Why the step lines are not those of one process: no figure of steps is known."""
    hooked: bool | None = None
    """Whether the hook reported from its processes; ``None``: unknown, or no command."""
    given: Label = NONE
    """Name, tags and note given by a person."""
    place: str = ""
    """Where it runs or ran, if not here."""
    ranks: Ranks | None = None
    """The ranks of a run of several processes."""
    tokens_per_second: float | None = None
    """Over the timed steps of all ranks."""

    @property
    def end(self) -> str:
        """How it ended; of one that failed with the reason."""
        return self.failure or self.status.text

    @property
    def held_seconds(self) -> float | None:
        """How long the run had the machine, profile and counters included: what is paid for."""
        own = self.seconds if self.workload.get("kind") == "machine" else self.timing.real_seconds
        return own if own is None else own + (self.timing.profile_seconds or 0.0)


def summarise(reader: SessionReader) -> Summary:
    """Summarise a session."""
    return summarise_from(reader, Source(reader))


def summarise_from(
    reader: SessionReader, source: Source, series: StepTimes | None = None
) -> Summary:
    """Summarise a session read by ``source``; ``series``: its timed steps, if already known."""
    meta = reader.meta()
    steps = source.steps()
    sample_times = source.sample_times(span_of(steps))
    window = timed_window(steps, sample_times)
    timed = rates.timed_of(steps)
    state = status(meta, reader.path)
    silent = step_lines.NO_STEPS_YET if state.live else step_lines.no_steps(meta)
    writers, doubt = step_lines.several_writers(meta), step_lines.no_rates(meta, timed)
    session, count = mapping(meta.get("session")), mapping(meta.get("count"))
    workload = mapping(meta.get("workload"))
    ended = number(mapping(meta.get("result")).get("t"))
    if ended is None and sample_times:
        ended = sample_times[-1]
    statistics, of_device = statistics_of(reader, source, window, steps, count, silent, doubt)
    label = str(session.get("label", reader.path.stem))
    rows, facts = reader.devices(), reader.facts()
    until = number(mapping(meta.get("result")).get("output_until"))
    told = step_lines.ends_told(meta)
    described = Steps(reason=writers) if writers else steps_of(steps, series, told=told)
    if not steps:
        described = replace(described, reason=silent)
    elif described.reason and described.count:
        described = replace(described, reason=step_lines.untimed(meta) or described.reason)
    run, last = step_lines.run_of(meta, described.phases), None if writers else reader.completed()
    described = replace(
        described,
        phases=step_lines.seen(run, described.phases),
        samples_per_second=None if doubt else described.samples_per_second,
        known_until_seconds=None if until is None else until / 1e9,
        last_loss=last.loss[-1] if last and last.loss else described.last_loss,
    )
    training = training_of(reader, None if steps else step_lines.NO_STEPS, writers)
    profile, counters = profile_of(meta), counters_of(meta)
    samples = source.samples(SAMPLED, {row.id for row in rows}, window)
    gpus = [row.id for row in rows if row.kind == "gpu" and row.used]
    statistics = with_energy(statistics, samples, gpus, window)
    of_device = {
        id_: with_energy(metrics_, samples, [id_], window) for id_, metrics_ in of_device.items()
    }
    rank_rows, rank_steps = reader.ranks(), reader.all_rank_steps()
    program = Program(
        label,
        str(workload.get("kind")),
        bool(steps),
        bool(timed),
        count,
        missing_of(meta, rows),
        doubt,
        silent,
    )
    efficiency = efficiency_of(
        program,
        meta,
        facts,
        len(rank_rows),
        rows,
        window,
        statistics,
        of_device,
        samples,
        _work(timed, steps, described, told=told),
        counters,
        reader.gpu_processes(),
    )
    unix = number(mapping(meta.get("clock")).get("unix_ns"))
    how = how_timed(reader, steps, described.undrawn_seconds)
    placement = read_placement(reader.path.parent)
    return Summary(
        id=str(session.get("id", "")),
        path=str(reader.path),
        label=label,
        started=iso(mapping(meta.get("clock")).get("unix_ns")),
        started_unix=None if unix is None else unix / 1e9,
        status=state,
        failure=failure_of(meta, state, reason_of(reader, meta, state)),
        notice=reader.notice,
        seconds=None if ended is None else ended / 1e9,
        workload=workload,
        environment=mapping(meta.get("environment")),
        interval_seconds=number(meta.get("interval_seconds")),
        timing=_timing(meta, steps),
        steps=described,
        training=training,
        hook_cost=number(mapping(meta.get("timing")).get("cost")),
        count=rates.count_of_mean(count, timed),
        run=run,
        window=window,
        metrics=statistics,
        devices=tuple(DeviceSummary(**vars(row), metrics=of_device[row.id]) for row in rows),
        facts=facts,
        error=mapping(meta.get("error")),
        notes=(
            *notes(reader, window, steps, run),
            *how,
            *source.notes(),
            *training_notes(training),
            *([why_none(meta)[0]] if profile is None and was_asked_for(meta) else []),
            *reader.left_out,
        ),
        how_timed=how,
        left_out=tuple(reader.left_out),
        efficiency=efficiency,
        profile=profile,
        counters=counters,
        peak_gpu_memory=peak_gpu_memory(reader, workload, rows),
        generation=generation_of(meta, described.phases, program, efficiency.roofline),
        several_writers=writers,
        hooked=step_lines.hooked(meta),
        place="" if placement is None else placement.short,
        given=labels.read(reader.path.parent).get(reader.path.name, NONE),
        ranks=recorded_ranks(reader, source, rank_rows, rank_steps),
        tokens_per_second=tokens_per_second(figures_of(rank_rows, rank_steps)),
    )


def _work(
    timed: Sequence[rates.StepLine], lines: Sequence[rates.StepLine], steps: Steps, *, told: bool
) -> Work:
    # The step whose work is counted may stand among the timed ones, and is told, too.
    since = [row for row in lines if timed and row.t >= timed[0].t]
    return Work(
        sum(row.count for row in timed),
        total_of([row.samples for row in timed]),
        rates.mean_rate(timed, lambda row: row.count, told=told),
        steps.mean_seconds,
        steps.phases,
        rates.pause_share(timed),
        step_lines.SOME if rates.leaps(since) else None,
    )


def _timing(meta: Mapping[str, JSON], steps: Sequence[rates.StepLine]) -> Timing:
    startup = mapping(meta.get("startup"))
    first = number(startup.get("first_step_seconds"))
    if first is None and steps and isinstance(steps[0], StepRow) and steps[0].count == 1:
        first = next(iter(steps[0].seconds or ()), None)
    user, system = spent(meta, "user_seconds"), spent(meta, "sys_seconds")
    used = None if user is None or system is None else user + system
    if used is not None and used < LEAST_SPLIT_SECONDS:
        user = system = None
    return Timing(
        launch_seconds=_launch(meta),
        import_seconds=number(startup.get("import_seconds")),
        model_seconds=number(startup.get("model_seconds")),
        first_step_seconds=first,
        ending_seconds=_ending(meta, steps),
        real_seconds=spent(meta, "real_seconds"),
        cpu_seconds=used,
        user_seconds=user,
        sys_seconds=system,
        cpu_is_bound=mapping(meta.get("result")).get("cpu_is_bound") is True,
        profile_seconds=behind(meta, "real_seconds") or None,
    )


def _ending(meta: Mapping[str, JSON], steps: Sequence[rates.StepLine]) -> float | None:
    """Seconds from the end of the last step to that of the process, if the workload told both."""
    known = number(mapping(meta.get("result")).get("t"))
    if known is None or not steps or known < steps[-1].t or meta.get("step_ends") == "arrived":
        return None
    return max(0.0, (known - steps[-1].t) / 1e9 - behind(meta, "real_seconds"))


def _launch(meta: Mapping[str, JSON]) -> float | None:
    started = number(mapping(meta.get("started")).get("monotonic_ns"))
    base = number(mapping(meta.get("clock")).get("monotonic_ns"))
    launched = number(mapping(meta.get("launch")).get("t"))
    if started is None or base is None or launched is None:
        return None
    seconds = (started - base - launched) / 1e9
    return seconds if seconds >= 0 else None


def steps_of(
    rows: Sequence[rates.StepLine], series: StepTimes | None = None, *, told: bool = False
) -> Steps:
    """Times, throughput and losses of step lines, also of the first lines of a run.

    ``series``: the timed steps, if already known. ``told``: whether the workload tells when its
    steps end.
    """
    timed = rates.timed_of(rows)
    count = sum(row.count for row in timed)
    buckets = [row for row in timed if isinstance(row, StepBucket)]
    partial = {number for row in timed if isinstance(row, StepRow) for number in row.partial}
    times, reason = series or series_of(timed)
    losses = [value for row in rows for value in row.loss or ()]
    known = reason is None and times.size > 0
    mean = float(times.mean()) if known else None
    phases, sampled, undrawn = mean_phases(timed), with_phases(timed), None
    if "other" in phases and sampled < count and mean:  # they add up, as in each step
        phases, undrawn = _of_drawn(timed, times)
    evaluation = sum(row.evaluation for row in timed)
    rate = rates.mean_rate(timed, rates.samples_of, told=told)
    samples = [row.samples for row in timed]
    overall = None
    if evaluation and rate:
        trained = sum(each for each in samples if each is not None) / rate
        overall = rate * trained / (trained + evaluation)
    shares = (0.5, 0.95, 0.0, 1.0)
    median, p95, shortest, longest = np.quantile(times, shares).tolist() if known else (None,) * 4
    return Steps(
        count=count if rows else None,
        warmup_count=sum(row.count for row in rows if row.warmup) if rows else None,
        partial_count=len(partial) + sum(row.partial for row in buckets) if rows else None,
        median_seconds=median,
        mean_seconds=mean,
        arrival_seconds=step_lines.mean_by_arrival(timed) if reason and not told else None,
        p95_seconds=p95,
        min_seconds=shortest,
        max_seconds=longest,
        samples_per_second=rate,
        samples_per_step=rates.per_step(timed, rates.samples_of) or None,
        reason=reason,
        phases=phases,
        first_loss=losses[0] if losses else None,
        last_loss=losses[-1] if losses else None,
        evaluation_seconds=evaluation or None,
        samples_per_second_overall=overall,
        sampled_count=round(sampled) if sampled < count else None,
        undrawn_seconds=undrawn,
        slowest=_slowest(timed, times) if mean else None,
    )


def _of_drawn(
    timed: Sequence[rates.StepLine], times: np.ndarray
) -> tuple[dict[str, float], float | None]:
    """Mean seconds of each phase where only some steps were drawn, and ``undrawn_seconds``.

    A few steps that take much longer are hardly drawn, and one that is would stand for many others.
    So lines with such steps are taken apart: what they took beyond the others is shared out as in
    the long ones that were drawn if these are many, else only theirs is.
    """
    limit, mean = _LONG * float(np.median(times)), float(times.mean())
    usual, long = (
        [row for row in timed if (max(rates.full_times(row), default=0.0) > limit) is apart]
        for apart in (False, True)
    )
    # A few lines without a long step would not tell what is usual.
    if with_phases(usual) < with_phases(long) or not any(map(rates.full_times, usual)):
        usual, long = list(timed), []
    full = [rates.full_times(row) for row in usual]
    of_usual = sum(map(sum, full)) / sum(map(len, full))
    names = list(dict.fromkeys(name for row in timed for name in row.phases))
    drawn = mean_phases(usual)
    each = np.array([drawn.get(name, 0.0) for name in names])
    each *= of_usual / (each.sum() or 1.0)
    more = np.array([sum((row.phases.get(name, 0.0) for row in long), 0.0) for name in names])
    more -= with_phases(long) * each
    lasting, every = times[times > limit] - of_usual, (mean - of_usual) * times.size
    if more.sum() * lasting.size > _MANY * lasting.sum() > _MANY**2 * lasting.max(initial=0.0):
        more *= every / more.sum()
    undrawn = max(0.0, float(every - more.sum())) / times.size
    each += more / times.size
    each[names.index("other")] += undrawn
    each *= mean / (each.sum() or 1.0)
    return dict(zip(names, each.tolist(), strict=True)), undrawn if undrawn > mean / 100 else None


def _slowest(timed: Sequence[rates.StepLine], times: np.ndarray) -> SlowStep | None:
    mean = float(times.mean())
    median, longest = np.quantile(times, (0.5, 1.0)).tolist()
    if mean < _MUCH * median or longest - median < times.size * (mean - median) / 2:
        return None
    for row in timed:
        if isinstance(row, StepRow) and row.seconds and longest in rates.full_times(row):
            number = row.step - len(row.seconds) + 1 + row.seconds.index(longest)
            if row.count > 1:
                return SlowStep(number, longest, {})
            others = [each for each in timed if each is not row]
            rest, whole = mean_phases(others), (mean * times.size - longest) / (times.size - 1)
            if with_phases(others) < sum(each.count for each in others):  # of some of them
                whole = sum(rest.values())
            told = mean_phases(timed) if rest and whole > longest / 1e9 else ()
            shares = {name: rest.get(name, 0.0) / whole for name in told}
            return SlowStep(number, longest, row.phases, shares)
    return None
