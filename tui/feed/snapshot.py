"""Snapshots of one session at one moment: frozen, made by the feed's thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.profile import Counters, Profile
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import number
from gpuwatch.core.text import clean
from gpuwatch.core.units import memory_usage
from gpuwatch.session.reading.status import Status
from gpuwatch.session.rows import DeviceRow, EventRow, LogRow
from gpuwatch.session.study.progress import Following, StudyPosition
from gpuwatch.session.study.summary import Contrast
from gpuwatch.tui.feed.log_lines import Count
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.feed.samples import Window

if TYPE_CHECKING:
    from gpuwatch.analysis.ranks.ranks import RankFigures
    from gpuwatch.tui.feed.parts import Part


TIMED = 0
"""In place of the length of a history."""


@dataclass(frozen=True)
class View:
    """What the feed's next snapshots contain."""

    device: str | None = None
    """Id of the device of the gauges; ``None``: the first one of the run."""
    seconds: int | None = 60
    """Length of the history; ``None``: the whole session; :data:`TIMED`: its timed steps."""
    columns: int = 50
    """Columns of the history."""
    roofline: bool = False
    """Whether to compute the roofline."""
    at: int | None = None
    """Session time in nanoseconds; ``None``: the newest."""
    playing: bool = False
    """Whether the screen advances ``at``."""
    speed: float | None = 1.0
    """Session seconds per second while playing; ``None``: as fast as possible."""
    metric: str | None = None
    """The picked metric, one of ``Snapshot.metrics``; ``None``: none."""
    grid: bool = False
    """Whether to make the panels of all GPUs."""
    gauges: bool = True
    """Whether to make the gauges."""
    earlier: bool = False
    """Whether to find the earlier run of the same command."""


class Search(Enum):
    """How the search for the earlier run stands, until it is found."""

    GOES_ON = "goes on"
    IN_VAIN = "in vain"


@dataclass(frozen=True)
class Replay:
    """The position of an earlier moment in its session."""

    position_ns: int
    length_ns: int
    """Session time of the newest record."""
    status: Status
    """That of the run now."""
    seconds: float
    """Of the whole session as of :class:`Snapshot`."""


class Reading(NamedTuple):
    """One value and how it was obtained."""

    value: float | None
    method: Method
    reason: str | None = None
    source: str = ""
    earlier_method: Method = Method.UNAVAILABLE
    """Method of an unavailable value while it was available."""
    peak: bool = False
    """Whether it is the highest value of a run that is over, not a mean."""


_MEMORY = {"cpu": "hw.memory.usage", "workload": "process.memory.usage"}
"""What tells the memory in use, by kind of device."""
MISSING = Reading(None, Method.UNAVAILABLE, "not recorded")


@dataclass(frozen=True)
class Gauge:
    """A large gauge, or the graph of a metric that was picked."""

    key: str
    """``utilization``, ``bandwidth``, ``flops`` or ``picked``; also the role of its colour."""
    title: str
    unit: str
    reading: Reading
    ceiling: float | None
    """Value of a full bar in ``unit``; ``None``: unknown."""
    history: tuple[float | None, ...]
    scale: float
    """End of the history's scale in ``unit``, not a ceiling; 0: nothing above 0 is known."""
    floor: float = field(default=0.0, kw_only=True)
    """Start of that scale; above 0 the scale is logarithmic."""
    ghost: tuple[float | None, ...] = field(default=(), kw_only=True)
    """By column the same of an earlier run, drawn over it."""
    mean: bool
    """Whether the reading is a mean, not a current value."""
    period: str = ""
    """What the mean covers: ``timed steps``, ``whole run``, ``last 10 s``,
    ``last 5 s of steps``."""
    note: str = ""
    """What the value covers, if that is not obvious."""
    covered: float | None = None
    """Share of the window with known values, if the value became unavailable."""
    named_ceiling: Ceiling | None = None
    """Name and source of the ceiling of a rate."""
    mfus: tuple[tuple[str, Reading], ...] = ()
    """Of FLOP/s: each MFU by its name."""

    @property
    def share(self) -> float | None:
        """The value as a share of its ceiling."""
        if self.ceiling is None or self.reading.value is None:
            return None
        return self.reading.value / self.ceiling


_HELD = 0.05
"""Share of a GPU's memory from which on it is not free."""


@dataclass(frozen=True)
class DeviceNow:
    """A device and its current readings."""

    row: DeviceRow
    readings: Mapping[str, Reading]
    """By metric; only those that the session has a channel for."""

    def get(self, metric: str) -> Reading:
        """The reading of ``metric``, or ``MISSING``."""
        return self.readings.get(metric, MISSING)

    def value(self, metric: str) -> float | None:
        """The value of ``metric`` in its base unit; ``None``: unknown."""
        return self.get(metric).value

    def attribute(self, name: str) -> float | None:
        """A constant positive number in its base unit; ``None``: not recorded."""
        value = number(self.row.attributes.get(name))
        return float(value) if value is not None and value > 0 else None

    @property
    def number(self) -> str:
        """``0`` of ``gpu0``."""
        return self.row.id.removeprefix("gpu")

    @property
    def title(self) -> str:
        """``GPU 0  NVIDIA H100``, ``CPU  AMD EPYC, 16 cores``."""
        name = clean(self.row.name)
        if self.row.kind != "cpu":
            return f"GPU {self.number}  {name}"
        cores = self.attribute("core.logical.count")
        return f"CPU  {name}" + (f", {cores:.0f} cores" if cores else "")

    @property
    def _in_use(self) -> Reading:
        return self.get(_MEMORY.get(self.row.kind, "hw.gpu.memory.usage"))

    @property
    def memory_used(self) -> float | None:
        """Bytes in use of a GPU's memory, the host's or by the workload; ``None``: unknown."""
        return self._in_use.value

    @property
    def peak(self) -> str:
        """What stands before the name of that: ``peak `` of a run that is over."""
        return "peak " * self._in_use.peak

    @property
    def memory_total(self) -> float | None:
        """Size of the device's memory in bytes; ``None``: unknown."""
        return self.attribute("memory.total")

    @property
    def memory_share(self) -> float | None:
        """Share of the memory in use; ``None``: unknown."""
        used, total = self.memory_used, self.memory_total
        return None if used is None or total is None else used / total

    @property
    def held(self) -> bool:
        """Whether so much of its memory is in use that it is not free, however idle it is."""
        return (self.memory_share or 0) >= _HELD

    @property
    def memory(self) -> str:
        """``30.3/80.0 GiB``."""
        return memory_usage(self.memory_used, self.memory_total)


@dataclass(frozen=True)
class Work:
    """Progress of the workload, from the steps that it reports."""

    reports: bool
    """Whether it reported a step."""
    no_steps: str = ""
    """Why it reported none, once it is over."""
    warmup: bool = False
    step: int | None = None
    total: int | None = None
    eta_seconds: float | None = None
    """Until the last step, at the pace of the newest; ``None``: unknown, or not live."""
    silence: str | None = None
    """Why no rate is known now, though steps are left."""
    throughput: Reading = MISSING
    step_seconds: float | None = None
    mean_seconds: float | None = None
    """Mean of the same steps."""
    arrival_seconds: float | None = None
    """Mean by the arrival of the lines, where they tell no step's time."""
    step_count: int = 0
    """Number of steps of the median."""
    newest: str = ""
    """``the last ``, where there were timed steps before those; else empty."""
    loss: float | None = None
    no_loss: str = ""
    """Why it is unknown."""
    model: str | None = None
    batch_size: int | None = None
    dtype: str | None = None


@dataclass(frozen=True)
class Trouble:
    """An error and how to fix it."""

    text: str
    hint: str | None = None
    passed_on: str = ""
    """What may leave the machine in place of ``text``, if that has words of the program."""


@dataclass(frozen=True)
class Alert:
    """A warning; ``kind`` and ``device`` identify it."""

    kind: str
    device: str
    """Id of the device; empty: the machine or the whole run."""
    text: str
    """One sentence; its numbers may change."""
    gpus: tuple[str, ...] = ()
    """Ids of the GPUs that it names."""
    short: str = ""
    """The sentence without their names."""


@dataclass(frozen=True)
class Rooflines:
    """The rooflines of the run's last minute and of all its timed steps."""

    minute: Roofline
    steady: Roofline
    period: str
    """What the second is of: ``timed steps``, or ``whole run`` where none are reported."""


@dataclass(frozen=True)
class StepShares:
    """Shares of the phases in the time of the newest timed steps."""

    parts: tuple[tuple[str, float], ...]
    """Name and share of each phase, in the order of a step; the sum is at most 1."""
    steps: int
    """Number of steps whose phases are known."""
    newest: str
    """As of :class:`Work`."""
    seconds: float
    """The mean step time."""
    hook: float | None = None
    """Share of the time that the hook took, by itself; ``None``: no hook, or not known yet."""

    @property
    def other(self) -> float:
        """Share of the time outside all phases."""
        return max(0.0, 1.0 - sum(share for _, share in self.parts))


@dataclass(frozen=True)
class StudyRun:
    """One run of the study, from its plan and its session."""

    label: str
    block: int | None
    """0: the warm-up block; ``None``: the study has no blocks."""
    state: str
    """A value of ``State``, ``to come``, ``did not run`` or ``unreadable``."""


@dataclass(frozen=True)
class StudyStrip:
    """The runs of the study around the session, and the comparison so far."""

    runs: tuple[StudyRun, ...]
    """In the order of the plan."""
    at: int
    """Index of the session's own run in ``runs``."""
    blocks: int | None
    """Number of blocks in the comparison, without the warm-up block."""
    contrasts: tuple[Contrast, ...] = ()
    """The comparison after the last finished run; empty: there is none yet."""


@dataclass(frozen=True)
class UpcomingRuns:
    """The runs of a study after a given one."""

    newest: Path | None
    """The live run, else the last finished one; ``None``: none has started."""
    pending: Following | None
    """The first run that has not started; ``None`` unless ``newest`` is ``None``."""
    waits: str = ""
    """What it waits for at another place: ``queued on slurm: Resources``."""


@dataclass(frozen=True)
class Panel:
    """One GPU in the grid of all GPUs."""

    device: DeviceNow
    history: tuple[float | None, ...]
    """Utilization over the window."""
    bandwidth: Reading = MISSING
    """The GPU's counter, else an upper bound."""
    problem: str = ""
    """Its most serious warning; empty: none."""


@dataclass(frozen=True)
class RankNow:
    """One rank over the last minutes; ``None`` is unknown."""

    figures: RankFigures
    device: str | None
    """Id of its GPU if it is watched, else its UUID, or ``cpu``."""
    slower: float | None
    """How much longer its own time is than the others', if beyond noise: 0.12 is 12 %."""
    columns: tuple[float | None, ...]
    """Its own time over that of the median rank of each column, less 1."""


@dataclass(frozen=True)
class RanksNow:
    """The ranks of a run of several processes."""

    line: str
    """``2 ranks · slowest 1, +12 %, data wait``."""
    sentences: tuple[str, ...]
    ranks: tuple[RankNow, ...]

    @property
    def straggler(self) -> bool:
        """Whether a rank is slower than the others beyond noise."""
        return any(each.slower is not None for each in self.ranks)


@dataclass(frozen=True)
class Snapshot:
    """All data of the live screen."""

    path: str
    name: str
    arguments: str
    """What follows it in the command; empty where the run has a label."""
    environment: str
    status: Status
    machine_only: bool
    """Whether the session is a recording of the machine without a workload."""
    imported: bool
    """Whether the session is an imported profile, without samples and steps."""
    t: int
    """Session time of the newest record in nanoseconds."""
    seconds: float
    """The same; of a run that is over how long it took, as lists and ``gpuwatch show`` have it."""
    devices: tuple[DeviceNow, ...]
    selected: str | None
    """Id of the device that the gauges show."""
    gauges: tuple[Gauge, ...]
    window: Window
    work: Work | None
    log: tuple[LogRow, ...]
    printed: Count | None
    """The count that the program prints, where the total of its steps is not known."""
    event: EventRow | None
    """The last event at ``t``."""
    elsewhere: str = ""
    """The host or place where it runs or ran, if that is not this machine."""
    off_gpus: bool = False
    """Whether the run is known to use no GPU; the gauges then show the CPU first."""
    no_gpu: str | None = None
    """Why the machine has no GPU; ``None``: it has one."""
    phase: str = ""
    """What a run does before its first step, and after the timed ones."""
    parts: tuple[Part, ...] = ()
    """The known parts of the run in time; a later one lies over earlier ones."""
    means: str = ""
    """What the readings of ``devices`` are means of; empty: they are the newest."""
    timed: bool = False
    """Whether there are timed steps to show alone."""
    trouble: Trouble | None = None
    notice: str | None = None
    silent_seconds: float | None = None
    """Seconds without a new record in a live session; ``None``: not unusually long."""
    place: StudyPosition | None = None
    """Position of the run in a study of several runs."""
    tally: str = ""
    """States of all runs of a finished study, as a text."""
    algorithmic: Reading = MISSING
    """Algorithmic bytes per second."""
    alerts: tuple[Alert, ...] = ()
    """Warnings, the most serious first."""
    processes: tuple[ProcessNow, ...] = ()
    """Processes on the recorded GPUs and of the run, the largest GPU memory first, then others that
    use much of the CPU while it is warned of them."""
    counters: Counters | None = None
    """Counters of ncu."""
    profile: Profile | None = None
    no_profile: tuple[str, str | None] = ("", None)
    """Why there is none, and how to get one."""
    bound: str = ""
    """What bounds a run, in a sentence; of one that is over also why that is unknown."""
    roofline: Rooflines | None = None
    """Only if ``view.roofline``."""
    picked: Gauge | None = None
    """The graph of ``view.metric``."""
    metrics: tuple[str, ...] = ()
    """Keys of the metrics that can be picked."""
    earlier: str | Search | None = None
    """How the steps compare with those of the earlier run; ``None`` unless ``view.earlier``."""
    shares: StepShares | None = None
    """``None``: the step lines name no phases."""
    ranks: RanksNow | None = None
    """``None``: the run has fewer than two."""
    study: StudyStrip | None = None
    """``None``: the run is not in a study of several runs."""
    panels: tuple[Panel, ...] = ()
    """One for each GPU; only if ``view.grid``."""
    upcoming: UpcomingRuns | None = None
    """The next runs of the study, while it is recorded."""
    events: tuple[EventRow, ...] = ()
    """The newest events of the whole session by time, also those after ``t``."""
    replay: Replay | None = None
    """Set for an earlier moment; all other fields hold the state at that moment."""
    view: View = field(default_factory=View)

    @property
    def untold(self) -> str:
        """Why the processes on the GPUs are not known; empty: they are."""
        return next((alert.text for alert in self.alerts if alert.kind == "processes"), "")

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the alerts."""
        return tuple(alert.text for alert in self.alerts)

    @property
    def goes_on(self) -> bool:
        """Whether the run is live now; ``status`` is the status at ``t``."""
        return self.status.live if self.replay is None else self.replay.status.live

    @property
    def gpus(self) -> tuple[DeviceNow, ...]:
        return tuple(device for device in self.devices if device.row.kind == "gpu")

    @property
    def choices(self) -> tuple[str, ...]:
        """Ids of the devices that the gauges can show."""
        cpus = [item.row.id for item in self.devices if item.row.kind == "cpu"][: self.off_gpus]
        return (*cpus, *(gpu.row.id for gpu in self.gpus))

    @property
    def cpu(self) -> DeviceNow | None:
        return next((device for device in self.devices if device.row.kind == "cpu"), None)

    @property
    def process(self) -> DeviceNow | None:
        """The workload with all its processes."""
        return next((device for device in self.devices if device.row.kind == "workload"), None)

    def device(self, id_: str | None) -> DeviceNow | None:
        return next((device for device in self.devices if device.row.id == id_), None)


@dataclass(frozen=True)
class Unreadable:
    """The session cannot be read."""

    trouble: Trouble
