"""What a list tells of sessions and studies, read cheaply from small tables and files.

A field of :class:`ListedSession` or :class:`ListedStudy` is a key of ``gpuwatch sessions --format
json``; the cache and the screens read them from there.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from gpuwatch.analysis.hardware.ceilings import devices_of_run
from gpuwatch.analysis.hardware.mfu import mfu_peaks
from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.analysis.samples.rates import StepLine, flop_of, mean_rate, samples_of
from gpuwatch.analysis.samples.step_lines import ends_told, median_step, no_rates, several_writers
from gpuwatch.analysis.samples.window import behind, spent, window_in
from gpuwatch.analysis.summary.failure import command_of, failure_of, reason_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.text import clean
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, status
from gpuwatch.session.rows import DeviceRow
from gpuwatch.session.study.plan import PlannedRun, read
from gpuwatch.session.study.summary import NO_LOSS

FIRST_STEP_LINES = 2000
"""Step lines that the speed of a run that goes on is computed from; later ones do not change it."""


@dataclass(frozen=True, kw_only=True)
class Labelled:
    """What a session and a study have in common; ``docs/json.md`` says what each field means."""

    path: Path
    study: str
    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    labels_problem: str | None = None
    place: str = ""
    """Where it runs or ran, if not here."""

    def document(self) -> dict[str, JSON]:
        """As JSON."""
        return {**vars(self), "path": str(self.path)}


@dataclass(frozen=True, kw_only=True)
class ListedSession(Labelled):
    """A session."""

    id: str = ""
    status: str
    status_text: str = ""
    reason: str = ""
    failure: str = ""
    workload: str = ""
    command: str = ""
    command_label: str = ""
    environment: str = ""
    job: str = ""
    device: str = ""
    started: str = ""
    seconds: float | None = None
    elapsed_seconds: float | None = None
    steps: int | None = None
    step_median_seconds: float | None = None
    samples_per_second: float | None = None
    mfu: float | None = None
    mfu_at_maximum_clock: float | None = None
    peak_gpu_memory_bytes: float | None = None
    peak_gpu_memory_method: str = Method.UNAVAILABLE.value
    run: int | None = None
    block: int | None = None

    @property
    def ran(self) -> str:
        """What ran, with its label if it has one, and its arguments where they are known."""
        ran = self.command or self.workload
        return f"{self.command_label}: {ran}" if self.command_label else ran

    @property
    def peak_bound(self) -> str | None:
        """What stands before the peak of GPU memory where that is only a bound."""
        return "at most" if self.peak_gpu_memory_method == Method.BOUND.value else None


@dataclass(frozen=True, kw_only=True)
class ListedStudy(Labelled):
    """A study of several runs."""

    title: str | None = None
    question: str | None = None
    commands: tuple[str, ...] = ()
    environments: tuple[str, ...] = ()
    runs: int | None = None
    sessions: int = 0
    going_on: bool = False
    placement: Mapping[str, JSON] | None = None
    says: tuple[Mapping[str, str], ...] = ()

    @property
    def said(self) -> tuple[str, ...]:
        """What is said of it in short; words on home find it."""
        placed = () if self.placement is None else (self.placement["text"],)
        return *placed, *(each["short"] for each in self.says)

    @property
    def waits(self) -> str:
        """Of a study at a place without any run yet the state of its job, such as ``queued``."""
        return "" if self.sessions or self.placement is None else self.placement["state"]


@dataclass(frozen=True)
class Listed:
    """The sessions, newest first, and the studies that several of them are of."""

    sessions: tuple[ListedSession, ...] = ()
    studies: tuple[ListedStudy, ...] = ()


def values_of(document: Mapping[str, JSON]) -> dict[str, Any]:
    """The values of fields in what :meth:`Labelled.document` made."""
    values = {
        key: tuple(each) if isinstance(each, list) else each for key, each in document.items()
    }
    return {**values, "path": Path(document["path"])}


def what_ran(runs: Sequence[ListedSession], order: Sequence[str] = ()) -> str:
    """What ran; of several commands their labels, in the ``order`` of the plan, or workloads."""
    told = dict.fromkeys(run.ran for run in runs if run.ran)
    if len(told) > 1:
        told = dict.fromkeys(run.command_label or run.workload for run in runs if run.ran)
    return ", ".join(sorted(told, key=lambda each: order.index(each) if each in order else -1))


def at_place(place: str, environment: str) -> str:
    """``bare``; elsewhere ``slurm n1``, ``ssh=gpu1 docker=image``."""
    return " ".join(filter(None, (place, "" if place and environment == "bare" else environment)))


def listing(reader: SessionReader, *, speed: bool = True) -> ListedSession:
    """Identity, status, peak of GPU memory, speed and MFU; of a run that goes on over at most the
    first 2,000 step lines, and only with ``speed``."""
    meta = reader.meta()
    session, clock = mapping(meta.get("session")), mapping(meta.get("clock"))
    state = status(meta, reader.path)
    ended = number(mapping(meta.get("result")).get("t")) or reader.last_sample()
    seconds = None if ended is None else ended / 1e9
    took = None if state.live else spent(meta, "real_seconds")
    if took is None and seconds is not None:
        took = max(0.0, seconds - behind(meta, "real_seconds"))
    rows: Sequence[StepLine] = ()
    if not state.live:
        rows = reader.steps_together()
    elif speed:
        rows = reader.steps(limit=FIRST_STEP_LINES)
    writers = several_writers(meta)
    timed = [row for row in rows if not row.warmup and not writers]
    rates = [] if no_rates(meta, timed) else timed
    devices, workload = reader.devices(), mapping(meta.get("workload"))
    peak = peak_gpu_memory(reader, workload, devices)
    flop = _flop_rate(meta, rates)
    mfu, mfu_at_maximum_clock = (each.mfu(flop) for each in mfu_peaks(meta, devices))
    reason = reason_of(reader, meta, state)
    _, loss = ({} if writers else reader.last_reported(("loss",))).get("loss", (None, 0.0))
    imported = moment(str(mapping(meta.get("imported")).get("when")))
    started = iso(clock.get("unix_ns")) or (imported.isoformat() if imported else "")
    return ListedSession(
        id=str(session.get("id", "")),
        path=reader.path,
        status=state.state.value,
        status_text=state.text,
        reason=reason,
        failure=failure_of(meta, state, reason)
        or (state.text if state.state is State.LOST else state.warning)
        or ("" if math.isfinite(loss) else NO_LOSS),
        workload=str(workload.get("name", "")),
        command=command_of(workload),
        command_label=str(workload.get("label") or ""),
        environment=str(mapping(meta.get("environment")).get("label", "")),
        device=device_words(devices_of_run(devices)),
        started=started,
        seconds=number(seconds),
        elapsed_seconds=number(took),
        steps=None if writers else reader.step_count(),
        step_median_seconds=number(median_step(timed)),
        samples_per_second=mean_rate(rates, samples_of, told=ends_told(meta)),
        mfu=number(mfu.value),
        mfu_at_maximum_clock=number(mfu_at_maximum_clock.value),
        peak_gpu_memory_bytes=number(peak.value),
        peak_gpu_memory_method=peak.method.value,
        study=reader.path.parent.name,
    )


def _flop_rate(meta: Mapping[str, JSON], steps: Sequence[StepLine]) -> MeasuredValue:
    rate = mean_rate(steps, flop_of(mapping(meta.get("count"))), told=ends_told(meta))
    if rate is None:
        return unknown("FLOP/s", "no FLOP of steps are known")
    return MeasuredValue(rate, "FLOP/s", Method.COUNTED, "step lines")


def peak_gpu_memory(
    reader: SessionReader, workload: Mapping[str, JSON], devices: Sequence[DeviceRow]
) -> MeasuredValue:
    """Bytes that the run's processes held at most in the timed steps (without any, in the whole
    run), on all its GPUs together; where the driver does not tell, at most what was in use there by
    anyone."""
    gpus = [device.id for device in devices if device.kind == "gpu" and device.used]
    if not gpus or workload.get("kind") == "machine":
        return unknown("By", "no run used a GPU")
    window = window_in(reader)
    within = window.start, window.end
    own = reader.highest("process.gpu.memory.usage", ["workload"], *within).get("workload")
    if own:
        return MeasuredValue(own, "By", Method.MEASURED, "NVML's process lists")
    used = reader.highest("hw.gpu.memory.usage", gpus, *within)
    if len(used) < len(gpus):
        return unknown("By", "the memory of a GPU of the run was not sampled")
    return MeasuredValue(sum(used.values()), "By", Method.BOUND, "memory in use on its GPUs")


def device_words(devices: Sequence[DeviceRow]) -> str:
    """``8 x H200``, ``CPU``."""
    many = Counter(
        "CPU" if device.kind == "cpu" else device.name.removeprefix("NVIDIA ") for device in devices
    )
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in many.items())


def elapsed(runs: Iterable[tuple[str, float | None]]) -> float | None:
    """Seconds from the start of the first of these runs to the last end; ``None``: not known.

    ``runs``: when each started (ISO 8601), and its seconds.
    """
    starts = [(moment(started), seconds) for started, seconds in runs]
    known = [(at.timestamp(), seconds) for at, seconds in starts if at is not None]
    ends = [at + seconds for at, seconds in known if seconds is not None]
    return max(ends) - min(at for at, _ in known) if ends else None


def iso(unix_ns: JSON) -> str:
    """A time in ISO 8601, UTC; empty where it is none."""
    if not isinstance(unix_ns, int) or not 0 <= unix_ns < 2**62:
        return ""
    return datetime.fromtimestamp(unix_ns / 1e9, tz=timezone.utc).isoformat(timespec="seconds")


def moment(started: str) -> datetime | None:
    """Of a text such as ``2026-01-02T03:04:05+00:00``, in UTC; ``None``: it is none."""
    try:
        return datetime.fromisoformat(started.replace("Z", "+00:00")).astimezone(timezone.utc)
    except (ValueError, OverflowError):
        return None


def started_here(text: str) -> str:
    """Month, day and local time of a :func:`moment`; of another year the day."""
    known = moment(text)
    if known is None:
        return ""
    started = known.astimezone()
    this_year = started.year == datetime.now().astimezone().year
    return started.strftime("%m-%d %H:%M" if this_year else "%Y-%m-%d")


NO_PLAN: dict[str, JSON] = {
    "title": None,
    "question": None,
    "commands": [],
    "environments": [],
    "runs": None,
    "places": {},
}
"""What :func:`planned` tells without a plan."""


def planned(folder: Path) -> dict[str, JSON]:
    """The plan of a study: ``title``, ``question``, its ``commands``, labels of its
    ``environments``, baseline first, number of ``runs`` (``None`` without a plan) and, for several,
    their ``places``: ``[run, block]`` by file name."""
    plan = read(folder)
    if plan is None:
        return dict(NO_PLAN)
    environments = (
        clean(environment.label) for part in plan.parts for environment in part.environments
    )
    several = len(plan.runs) > 1
    return {
        "title": None if plan.title is None else clean(plan.title),
        "question": None if plan.question is None else clean(plan.question),
        "commands": list(dict.fromkeys(map(_command, plan.runs))),
        "environments": list(dict.fromkeys(environments)),
        "runs": len(plan.runs),
        "places": {run.file: [run.index, run.block] for run in plan.runs} if several else {},
    }


def _command(run: PlannedRun) -> str:
    case = run.workload
    words = {"kind": case.kind, "name": case.name, "arguments": list(case.arguments)}
    return clean(case.label) if case.label else command_of(words)
