"""What a screen shows of one session at one moment: frozen, made by the feed's thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import NamedTuple

from gpuwatch.analysis.hardware.ceilings import Ceiling
from gpuwatch.analysis.hardware.profile import Counters
from gpuwatch.analysis.hardware.roofline import Roofline
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.session.reading.status import Status
from gpuwatch.session.rows import DeviceRow, EventRow, LogRow
from gpuwatch.session.study.progress import StudyPosition
from gpuwatch.session.study.summary import Contrast
from gpuwatch.tui.feed.next_run import UpcomingRuns
from gpuwatch.tui.feed.processes import ProcessNow
from gpuwatch.tui.feed.view import Replay, View
from gpuwatch.tui.widgets.graph import Window


class Reading(NamedTuple):
    """One number as it stands now, with how it was obtained."""

    value: float | None
    method: Method
    reason: str | None = None
    source: str = ""
    before: Method = Method.UNAVAILABLE
    """Of what is unavailable by now: how it was obtained before."""


MISSING = Reading(None, Method.UNAVAILABLE, "not recorded")


@dataclass(frozen=True)
class Gauge:
    """A large gauge, or the graph of a metric that was picked."""

    key: str
    """``utilization``, ``bandwidth``, ``flops`` or ``picked``: also the role of its colour."""
    title: str
    unit: str
    reading: Reading
    ceiling: float | None
    """What the value is a share of, where that is known: 1 of a share of time."""
    history: tuple[float | None, ...]
    scale: float
    """The history's fixed top; not a ceiling."""
    mean: bool
    """The reading is a mean, not a moment."""
    over: str = ""
    """What the mean is of: ``timed steps``, ``whole run``, ``last 10 s``."""
    note: str = ""
    """What the number covers, where that is not plain."""
    covered: float | None = None
    """Share of the stretch that the mean is of, where the value went away for good."""
    against: Ceiling | None = None
    """Which ceiling that is: every share of a rate names it."""

    @property
    def share(self) -> float | None:
        """The value as a share of its ceiling."""
        if self.ceiling is None or self.reading.value is None:
            return None
        return self.reading.value / self.ceiling


@dataclass(frozen=True)
class DeviceNow:
    row: DeviceRow
    readings: Mapping[str, Reading]
    """By metric; absent means that the session has no such channel."""

    def get(self, metric: str) -> Reading:
        return self.readings.get(metric, MISSING)

    def value(self, metric: str) -> float | None:
        return self.get(metric).value


@dataclass(frozen=True)
class Work:
    """The workload's own account, as far as its step lines tell."""

    name: str
    environment: str
    reports: bool
    """It printed at least one step line."""
    warmup: bool = False
    step: int | None = None
    total: int | None = None
    eta_seconds: float | None = None
    throughput: Reading = MISSING
    step_seconds: float | None = None
    step_count: int = 0
    """Steps that the median is of."""
    loss: float | None = None
    model: str | None = None
    batch_size: int | None = None
    dtype: str | None = None


@dataclass(frozen=True)
class Trouble:
    """What went wrong, and how to fix it."""

    text: str
    hint: str | None = None


@dataclass(frozen=True)
class Alert:
    """What should be known before the numbers are believed."""

    kind: str
    device: str
    """Its id; empty: of the machine, or of the run as a whole."""
    text: str
    """One sentence; its numbers may change while it is the same alert."""


@dataclass(frozen=True)
class Rooflines:
    """The run under its ceilings: over its last minute, and over all its timed steps."""

    minute: Roofline
    steady: Roofline


@dataclass(frozen=True)
class StepShares:
    """Where the newest timed steps spent their time."""

    parts: tuple[tuple[str, float], ...]
    """Name and share of each phase, in the order of a step; they add up to at most 1."""
    steps: int
    """Timed steps that the shares are of."""
    seconds: float
    """Mean duration of one of them."""

    @property
    def other(self) -> float:
        """The share that no phase covers."""
        return max(0.0, 1.0 - sum(share for _, share in self.parts))


@dataclass(frozen=True)
class StudyRun:
    """One run of the study, as its plan and its session tell."""

    index: int
    """Counts from 1, in the order of the plan."""
    label: str
    block: int | None
    """0: the warm-up block; ``None``: the study has no blocks."""
    state: str
    """A state's word, ``to come``, ``did not run`` or ``unreadable``."""


@dataclass(frozen=True)
class StudyStrip:
    """The runs of the study around the session, and the comparison so far."""

    runs: tuple[StudyRun, ...]
    """In the order of the plan."""
    at: int
    """Place of the session's own run in ``runs``."""
    blocks: int | None
    """Judged blocks of the run's part."""
    found: tuple[Contrast, ...] = ()
    """As of the last run that is over; empty while there is none."""


@dataclass(frozen=True)
class Panel:
    """What the grid of all GPUs shows of one, beside its readings."""

    device: DeviceNow
    history: tuple[float | None, ...]
    """Utilization over the window."""
    bandwidth: Reading = MISSING
    """The GPU's own counter, else a bound."""
    wrong: str = ""
    """What is wrong with it, in a few words; empty: nothing that is known."""


@dataclass(frozen=True)
class Snapshot:
    """Everything the live screen draws."""

    path: str
    name: str
    environment: str
    status: Status
    machine_only: bool
    """The machine was recorded, without a workload."""
    imported: bool
    """A profile that was made elsewhere: no samples and no steps."""
    t: int
    """Session time of the newest record in nanoseconds."""
    devices: tuple[DeviceNow, ...]
    selected: str | None
    """Id of the device that the gauges show."""
    gauges: tuple[Gauge, ...]
    window: Window
    work: Work | None
    log: tuple[LogRow, ...]
    event: EventRow | None
    """The last one at ``t``."""
    off_gpus: bool = False
    """It is known that the run uses none of the GPUs: the gauges show the CPU first."""
    no_gpu: str | None = None
    """Why the machine shows no GPU, if it shows none."""
    phase: str = ""
    """What a run that has no step yet is doing."""
    trouble: Trouble | None = None
    notice: str | None = None
    silent_seconds: float | None = None
    """Seconds without a record in a session that should be growing."""
    place: StudyPosition | None = None
    """Where the run stands in a study of several."""
    tally: str = ""
    """What became of all runs of the study, once it is over."""
    algorithmic: Reading = MISSING
    """Algorithmic bytes per second, whatever the gauge of the bandwidth shows."""
    alerts: tuple[Alert, ...] = ()
    """What should be known before the numbers are believed, the gravest first."""
    processes: tuple[ProcessNow, ...] = ()
    """On the watched GPUs and of the run, the biggest GPU memory first."""
    counters: Counters | None = None
    """What ncu counted, of a run of gpuwatch's own or an imported profile."""
    roofline: Rooflines | None = None
    """Only while it is looked at."""
    picked: Gauge | None = None
    """The graph whose metric was picked."""
    metrics: tuple[str, ...] = ()
    """What can be picked for it: names of the catalogue, and ``loss`` and ``step time``."""
    shares: StepShares | None = None
    """``None`` where the step lines name no phases."""
    study: StudyStrip | None = None
    """``None`` outside a study of several runs."""
    panels: tuple[Panel, ...] = ()
    """Of every GPU, only while the grid is looked at."""
    ahead: UpcomingRuns | None = None
    """What the study has after this run, while a recorder goes through it."""
    events: tuple[EventRow, ...] = ()
    """Of the whole session in order of time, also those after ``t``; of very many the newest."""
    replay: Replay | None = None
    """Where an earlier moment is looked at: everything else here is as it was then."""
    view: View = field(default_factory=View)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The sentences of the alerts."""
        return tuple(alert.text for alert in self.alerts)

    @property
    def goes_on(self) -> bool:
        """The run goes on now, whatever moment is looked at; ``status`` is of that moment."""
        return self.status.live if self.replay is None else self.replay.live

    @property
    def gpus(self) -> tuple[DeviceNow, ...]:
        return tuple(device for device in self.devices if device.row.kind == "gpu")

    @property
    def choices(self) -> tuple[str, ...]:
        """Ids of the devices that the gauges can show."""
        cpus = [each.row.id for each in self.devices if each.row.kind == "cpu"][: self.off_gpus]
        return (*cpus, *(gpu.row.id for gpu in self.gpus))

    def device(self, id_: str | None) -> DeviceNow | None:
        return next((device for device in self.devices if device.row.id == id_), None)


@dataclass(frozen=True)
class Unreadable:
    """The session cannot be read (any more)."""

    trouble: Trouble
