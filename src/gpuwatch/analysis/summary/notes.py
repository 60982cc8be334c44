"""Notes on events in a recording that affect its figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gpuwatch.analysis.samples.rates import StepLine, duration, taken
from gpuwatch.analysis.samples.step_lines import ends_told, hooked, several_writers
from gpuwatch.analysis.samples.window import Window, span_of
from gpuwatch.analysis.summary import gpu_sharing
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.models import JSON, mapping, number, sequence
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import EventRow, with_phases

_MATTER = """
    output-lost output-missing log-shortened interval-missed sampling-late suspended
    clock-stepped gpu-lost gpu-back xid ecc nvml-lost nvml-back gpm-lost gpm-back
    dcgm-lost dcgm-back processes-lost processes-back memory-contradiction resumed storage
    malformed-step several-writers progress-lines left-behind run-lost run-back run-paused
    run-unpaused hook loss
"""
"""Kinds of events that matter."""
_SENTENCES = {
    "output-lost": "output was lost, perhaps with steps in it: the workload wrote too fast",
    "resumed": "nothing was sampled between two recorders",
}
"""A sentence for kinds whose events' own text is not enough."""

_TIMED_BY = {
    "host": "by the host's clock, scaled so that it adds up to that of the GPU's events",
    "mean": "the mean of those between two events of the GPU: a median or percentile is of means",
}
"""What gave the time of a step, beside events at its ends."""
HOOK, COSTLY = "hook {} of the time{}, by its own measure", 0.01
"""The hook's cost, and the share from which on it casts doubt on the figures."""
_FEW = 3
_LINES = "progress-lines"
"""The kind of event that tells from which lines steps are, of a hooked program its losses alone."""
_AS_ASKED = "the program prints step lines itself: they count"
"""How an event of the hook begins that disturbs nothing."""
_MOST_EVENTS = 100_000
_HINTED = ("install ", "NVreg_RestrictProfilingToAdminUsers")
"""Words of reasons that already include a hint."""
_ENDED = ("was stopped", "run ended")
"""Words of reasons for which ncu lacks nothing."""
COVERED = 0.9
"""Share of the window below which the steps' own times get a note."""
_IMPOSSIBLE = 1.5
"""Times the age of the run beyond which the steps' own times get one: well above any clock's error,
well below a thousand, for milliseconds."""


def out_of_order(facts: Mapping[str, Mapping[str, JSON]]) -> list[str]:
    """Why no GPU was seen, and how to fix it, where the machine should have one."""
    host = mapping(facts.get("host"))
    hint = host.get("gpu.hint")
    return [f"{host.get('gpu.unavailable')}; {hint}"] if hint else []


def notes(
    reader: SessionReader, window: Window, steps: Sequence[StepLine], run: Mapping[str, JSON]
) -> tuple[str, ...]:
    """Notes on gaps, losses, lost devices, and what the figures cover; ``run``: as of
    :func:`run_of`."""
    texts = out_of_order(reader.facts()) + _outside_of_job(reader)
    # Bindings of another job, which a submitting shell may have without knowing.
    if (bound := mapping(reader.facts().get("host")).get("job.left.out")) is not None:
        texts.append(f"{bound} of the submitting shell was kept from the job")
    gpus = [each.id for each in reader.devices() if each.kind == "gpu" and each.used is not False]
    texts += gpu_sharing.told_of_pods(reader.facts(), gpus)
    texts += gpu_sharing.told_of_parts(reader.facts(), gpus)
    devices = [each for each in reader.devices() if each.kind == "gpu"]
    asked_cpu = mapping(mapping(reader.meta().get("workload")).get("parameters")).get("device")
    if devices and all(each.used is False for each in devices) and asked_cpu != "cpu":
        texts.append(f"the run used no GPU, {units.counted(len(devices), 'was', 'were')} there")
    if window.kind == "whole run" and steps:
        texts.append(
            "fewer than two samples fell into the timed steps: sampled figures are of the whole "
            "run, start-up included"
        )
    texts += _denominators(reader.meta(), steps)
    if several_writers(reader.meta()) is None:
        texts += _impossible(steps)
    texts += _as_seen(reader.meta(), run, steps)
    texts += _no_counters(reader.meta())
    others = {device.id for device in reader.devices() if device.used is False}
    matter = _MATTER.split()
    events = reader.events(limit=_MOST_EVENTS)
    if len(events) == _MOST_EVENTS:
        reader.leave_out(f"only the first {_MOST_EVENTS:,} events are read")
    by_kind = grouped(
        (row.kind, row)
        for row in events
        if row.kind in matter
        and row.device not in others
        and not row.text.startswith(_AS_ASKED)
        and not (row.kind == _LINES and "timing" in reader.meta())
    )
    for kind, rows in by_kind.items():
        if kind == "interval-missed":
            rows = rows[-1:]  # each event counts all missed so far
        sentence = _SENTENCES.get(kind)
        told = [row.text for row in rows] if kind == "hook" else [*map(_sentence, rows)]
        texts += [sentence] if sentence else told[:_FEW]
        if not sentence and len(rows) > _FEW:
            texts.append(f"and {len(rows) - _FEW} more such events")
    return tuple(texts)


def _as_seen(
    meta: Mapping[str, JSON], run: Mapping[str, JSON], steps: Sequence[StepLine]
) -> list[str]:
    """What the hook could not see of the steps, and how much their work varies."""
    unseen = list(mapping(run.get("unseen_phases")).items())[:_FEW]
    alike = grouped((str(reason), name) for name, reason in unseen)
    texts = [f"phase {' and '.join(of)}: unavailable: {why}" for why, of in alike.items()]
    timed = [row for row in steps if not row.warmup]
    every = sum(row.count for row in timed)
    count = mapping(meta.get("count"))
    counted = map(number, sequence(count.get("counted_flop")))
    flop = [each for each in counted if each is not None]
    mixed = any(row.flop is not None for row in timed)
    if len(set(flop)) > 1:
        from gpuwatch.analysis.statistics.intervals import difference  # loads numpy

        mean = difference(flop)  # of three or more
        low, high = (min(flop), max(flop)) if mean is None else (mean.low, mean.high)
        texts.append(
            f"the work of a step varies: {'FLOP of the most usual kind' if mixed else 'its FLOP'} "
            f"are the mean of {len(flop)} counted steps, "
            f"{'from' if mean is None else '95 % interval'} {units.span(low, high, 'FLOP')}"
        )
    elif "timing" in meta and "flop_per_step" in count and not (flop or mixed) and every > 1:
        texts.append("FLOP were counted in one step, and are taken to be the same in every step")
    if count.get("at_least") is True:
        texts.append("FLOP and FLOP/s are at least those told: not every kind of step was counted")
    silent = sum(row.count for row in timed if row.samples is None)
    if 0 < silent < every:
        texts.append(
            f"throughput: unavailable: {silent:,} of {every:,} steps do not tell their samples"
        )
    if evaluation := sum(row.evaluation for row in steps if not row.warmup):
        took = units.quantity(evaluation, "s")
        texts.append(
            f"evaluations until training goes on took {took}, with what follows them (scores, a "
            "checkpoint): in no step and no rate of steps, but in what was sampled"
        )
    return texts


def how_timed(
    reader: SessionReader, steps: Sequence[StepLine], undrawn: float | None
) -> tuple[str, ...]:
    """How the hook timed the steps, what it took itself, and from which lines losses are;
    ``undrawn``: mean seconds that long steps took of which no phase is known."""
    timing = mapping(reader.meta().get("timing"))
    timed = [row for row in steps if not row.warmup]
    every, sampled = sum(row.count for row in timed), round(with_phases(timed))
    texts = []
    if sampled < every:
        drawn = f"{sampled:,} of {every:,} steps, drawn at random"
        text = f"phases are of {drawn}, as shares of the mean step"
        if undrawn:
            took = units.milliseconds(undrawn)
            text += f"; other has {took} of long steps not drawn, whose phases are not known"
        texts.append(text)
    if passed := number(timing.get("steps_passed")):
        texts.append(
            f"{units.counted(int(passed), 'step was', 'steps were')} only timed: samples and FLOP "
            "are taken to be as in the other steps"
        )
    by = {name: number(each) for name, each in mapping(timing.get("steps_by")).items()}
    total = sum(each for each in by.values() if each is not None)
    for name, text in _TIMED_BY.items():
        if (count := by.get(name)) and by.get("events"):
            texts.append(f"the time of {count:,.0f} of {total:,.0f} steps is {text}")
    if (cost := number(timing.get("cost"))) is not None and cost < COSTLY:
        texts.append(HOOK.format(f"{100 * cost:.1f} %", ""))
    if timing:  # else they tell the steps, too
        told = reader.events_of([_LINES], reader.last_event())
        texts += [row.text for row in told[:_FEW]]
    return tuple(texts)


def _outside_of_job(reader: SessionReader) -> list[str]:
    """A note on a container of a daemon's, which a job's limits do not hold for."""
    job = mapping(reader.facts().get("host")).get("job.id")
    if job is None or mapping(reader.meta().get("environment")).get("kind") != "docker":
        return []
    return [
        f"the container ran outside of Slurm's job {job}: the job's memory limit and accounting "
        "did not hold for it"
    ]


def _denominators(meta: Mapping[str, JSON], steps: Sequence[StepLine]) -> list[str]:
    """A note where figures are over clearly different times."""
    span, timed = span_of(steps), [row for row in steps if not row.warmup]
    if span is None or None in map(taken, timed):
        return []
    own = sum(taken(row) or 0.0 for row in timed)
    over = duration(timed, None, told=ends_told(meta)) or 0.0
    evaluation = sum(row.evaluation for row in timed[1:])
    window = (span[1] - span[0]) / 1e9 - evaluation
    if own >= COVERED * window:
        return []
    text = (
        "the step time is over the former, throughput, FLOP/s and bytes/s are over the latter"
        if own < COVERED * over
        else "step time, throughput, FLOP/s, bytes/s are over the former, sampled figures over the "
        "latter"
    )
    # Steps of a program that the hook profiled lie between the timed ones.
    profiled = hooked(meta) and number(mapping(meta.get("profile")).get("steps"))
    without = f", without the {units.counted(int(profiled), 'profiled step')}," if profiled else ""
    return [
        f"the steps' own times{without} are {units.milliseconds(own)} of the "
        f"{units.milliseconds(window)} from the start of the first timed step to the end of the "
        f"last{', without evaluations' if evaluation else ''}: {text}"
    ]


def _impossible(steps: Sequence[StepLine]) -> list[str]:
    """A note where the steps took longer than the run."""
    own = sum(taken(row) or 0.0 for row in steps if not row.warmup)
    age = steps[-1].t / 1e9 if steps else 0.0
    if own <= _IMPOSSIBLE * age:
        return []
    return [
        f"the step lines tell {units.milliseconds(own)} of steps, though the last one ended "
        f"{units.milliseconds(age)} after the start of the run: what they print as `seconds` is "
        "not seconds, so no time of a step, "
        "throughput or FLOP/s is right (`gpuwatch run --help`)"
    ]


def _no_counters(meta: Mapping[str, JSON]) -> list[str]:
    """Why a run with --counters has none, and how to fix it."""
    reason = mapping(meta.get("counters")).get("reason")
    requested = mapping(mapping(meta.get("workload")).get("parameters")).get("counters")
    if not reason and requested and "counters" not in meta and "result" in meta:
        reason = "the run ended before they were read"
    if not reason:
        return []
    hint = "record it again with --counters"
    if mapping(meta.get("run")).get("device") == "cpu":
        hint = "run it on an NVIDIA GPU (--device cuda), or without --counters"
    elif not any(word in str(reason) for word in _ENDED):
        hint = f"`gpuwatch doctor` says what ncu lacks; {hint}"
    known = any(word in str(reason) for word in _HINTED)
    return [f"--counters gave nothing: {reason}" + ("" if known else f"; {hint}")]


def _sentence(row: EventRow) -> str:
    if row.kind == _LINES:  # of all of the run; without a time alike for all runs
        return row.text
    device = f"{row.device}: " if row.device else ""
    return f"{device}{row.text} (at {row.t / 1e9:.1f} s)"
