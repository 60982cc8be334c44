"""What a study says: cells, verdicts, explanations, sweeps. Plain data, for reports and screens.

A *case* is a workload with its parameters, an *environment* what it ran in. A *cell* is the runs of
one case in one environment, a *question* the cells of one case, each against the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum

from gpuwatch.analysis.hardware.kernels import KernelRow
from gpuwatch.analysis.samples.steady_state import Steady
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.analysis.statistics.power import DetectableChange
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON
from gpuwatch.session.study.plan import Plan
from gpuwatch.session.study.study_folder import NotRun


class Kind(str, Enum):
    """A verdict in one word."""

    SAME = "same"
    """The equivalence interval is inside the margin."""
    SLOWER = "slower"
    """The interval is wholly above the margin."""
    FASTER = "faster"
    SMALL = "small"
    """Zero is excluded, and the equivalence interval is inside the margin."""
    CANT_TELL = "can't tell"
    INVALID = "invalid"
    """The two are not comparable: ``reasons`` name why, with both values."""
    DESCRIBED = "described"
    """Too few runs for a verdict, and none was asked for."""


@dataclass(frozen=True)
class Difference:
    """Something of the surroundings that is not the same everywhere."""

    scope: str
    key: str
    values: tuple[JSON, ...]


@dataclass(frozen=True)
class Verdict:
    """What can be said of one cell against another."""

    kind: Kind
    change: Interval | None
    """Of the primary metric, against the baseline, at the level that Holm's procedure gives this
    comparison (0.95 where it is the only one)."""
    equivalence: Interval | None
    """The interval that must be inside the margin: twice ``change``'s share of error outside."""
    margin: float
    pairs: int
    """Pairs of runs (paired), or the smaller number of runs (unpaired)."""
    paired: bool
    noise: float | None
    """Standard deviation of one run, relative, with what a block shares taken out."""
    p_zero: float | None = None
    """Of no difference, by the t test; not adjusted."""
    p_rank: float | None = None
    """The same by Wilcoxon's signed-rank (paired) or the Mann-Whitney test (unpaired); ``None``
    where so few runs cannot reach the level at all."""
    comparisons: int = 1
    """How many comparisons share Holm's procedure."""
    more_blocks: int | None = None
    """About how many blocks in all would decide it; ``None`` where it is decided, or no number
    would."""
    reasons: tuple[str, ...] = ()
    """Why it cannot be told, or is invalid: each a clause without a full stop."""
    estimate: float | None = None
    """The relative change itself, from one pair on: also where no interval can be drawn."""
    lacking: bool = False
    """So many runs gave no value that nothing can be told: it was in no test."""


@dataclass(frozen=True)
class Run:
    """One run of a cell."""

    session: Summary
    block: int | None
    steady: Steady
    value: float | None
    """The primary metric in seconds; ``None``: the run has none, and ``reason`` says why."""
    reason: str | None = None
    outlier: bool = False
    """More than ten scaled median absolute deviations from its cell's median; kept."""

    @property
    def warm_up(self) -> bool:
        """Of the discarded block."""
        return self.block == 0


@dataclass(frozen=True)
class MissingValues:
    """Judged runs of a cell that gave no value."""

    text: str
    """``2 of 7 runs of docker reached no steady state``."""
    share: float
    """Of the runs that should have given one."""


@dataclass(frozen=True)
class Cell:
    """The runs of one case in one environment."""

    label: str
    """What it is called in a table: short, unlike those of the other cells of its question."""
    environment: str
    runs: tuple[Run, ...]
    """In order, warm-up included."""
    median: float | None
    """Of the primary metric over the judged runs, seconds."""
    spread: float | None
    """Relative standard deviation of the judged runs' values, drift included."""
    not_run: tuple[NotRun, ...] = ()
    lack: MissingValues | None = None
    """``None``: every judged run that is over gave a value."""
    setting: int | None = None
    """The same for environments of a plan that differ in their label alone; ``None``: there is no
    plan."""

    @property
    def judged(self) -> tuple[Run, ...]:
        return tuple(run for run in self.runs if not run.warm_up)


@dataclass(frozen=True)
class Evidence:
    """One step of the explanation ladder."""

    rung: str
    """``versions``, ``kernels``, ``clocks``, ``load``, ``kernel time``, ``copies``, ``host``,
    ``limits`` or ``start-up``."""
    text: str
    """A sentence for people, with both values. ``associated with``, never ``caused by``."""
    points: Interval | None = None
    """Share of the change of the step time that goes with it, in points of the baseline's step time
    (0.029: 2.9 points), with its interval where there are enough blocks."""
    method: Method | None = None
    source: str = ""
    part: str = ""
    """Of the step, that ``points`` are of: ``GPU kernel time``, ``copies to the GPU``, ``host
    wait``, ``the phase forward``, ...; empty where they are of none, or there are no points."""


@dataclass(frozen=True)
class StartUp:
    """What starting cost, apart from the steady state."""

    seconds: float | None
    """Launch, import, model and first step of the cell, median over its runs."""
    extra_seconds: float | None
    """Against the baseline."""
    steps_to_amortise: int | None
    """Steps after which the extra start-up is below the margin of the whole time; ``None``: there
    is no extra, or it is not known."""
    steps_to_break_even: int | None = None
    """Steps after which faster ones have made up for the extra start-up; ``None``: there is no
    extra, or the cell is not faster by more than the margin."""


@dataclass(frozen=True)
class Explanation:
    evidence: tuple[Evidence, ...]
    """Down the ladder, the first what a reader should look at first."""
    differences: tuple[Difference, ...]
    """Of the fingerprints, values in the order baseline, other."""
    kernels: tuple[KernelRow, ...]
    """That ran in one and not in the other, with their shares of the time."""
    start_up: StartUp | None


@dataclass(frozen=True)
class Contrast:
    """One cell against the baseline of its question."""

    baseline: int
    """Places in ``Question.cells``."""
    other: int
    verdict: Verdict
    ratios: tuple[float | None, ...]
    """Of each block in turn, other over baseline; empty where unpaired."""
    explanation: Explanation
    sentence: str
    """The verdict in words that a person can quote."""


@dataclass(frozen=True)
class TableRow:
    """A quantity of every cell of a question: median over the judged runs, and their range."""

    group: str
    name: str
    unit: str
    values: tuple[float | None, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]
    methods: tuple[Method, ...]
    ratios: tuple[float | None, ...]
    """Geometric mean of the paired ratios against the baseline, else the ratio of the medians;
    ``None`` from and to what is bounded."""
    is_traffic: bool = False
    at_most: bool = False
    """Every value that is known is the most that it can be."""
    bounds: tuple[str | None, ...] = ()
    """``at most`` or ``at least`` of each value that is a bound: that of some runs is."""
    known: tuple[int, ...] = ()
    """Of how many of its runs each value is."""
    runs: tuple[int, ...] = ()
    """How many runs that could have the quantity each cell has."""


@dataclass(frozen=True)
class Question:
    """One case in several environments."""

    label: str
    """``mnist-cnn``, or ``mnist-cnn, batch size 64`` where the parameters differ in the study."""
    part: int
    workload: Mapping[str, JSON]
    """``name``, ``kind``, ``arguments``, ``parameters``."""
    metric: str
    """``step time`` or, where the program reports no steps, ``whole run``."""
    cells: tuple[Cell, ...]
    contrasts: tuple[Contrast, ...]
    """Every other cell against the first."""
    table: tuple[TableRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Overall:
    """One environment against the baseline over all cases: the geometric mean."""

    environment: str
    baseline: str
    change: Interval
    cases: int
    sentence: str


@dataclass(frozen=True)
class SweepPoint:
    value: JSON
    """Of the parameter."""
    cell: Cell | None
    """``None``: it never ran (``why``)."""
    samples_per_second: float | None
    step_seconds: float | None
    throughput: Interval | None
    """Change of the throughput against the best, with its interval."""
    tied: bool
    """It cannot be told from the best."""
    why: str | None = None
    """Why there is no figure: out of memory, failed, not run; or why it is never the best."""
    lacking: bool = False
    """So many of its runs gave no value that it is not compared: its figures are of those left."""
    pairs: int | None = None
    """Blocks that it shares with the best, or the smaller number of runs where it shares none;
    ``None``: it is the best, or not compared."""
    loss: float | None = None
    """As the last step told it, median over the runs; likewise the accuracies. They are in no test:
    runs of one seed share them."""
    acc1: float | None = None
    acc5: float | None = None


@dataclass(frozen=True)
class Sweep:
    """One parameter of one workload in one environment."""

    label: str
    """``mnist-cnn in docker: batch size``."""
    parameter: str
    environment: str
    points: tuple[SweepPoint, ...]
    """In the order asked for."""
    best: int | None
    """Place of the one with the highest throughput."""
    sentence: str


@dataclass(frozen=True)
class NoiseFloor:
    """What one environment against itself says of this machine."""

    label: str
    noise: float
    """Standard deviation of one run, relative, drift taken out."""
    change: Interval
    """Of the one against the other: no true difference."""
    resolves: tuple[DetectableChange, ...]
    sentence: str
    noise_low: float | None = None
    """Of ``noise``, its interval at 95 %: few blocks tell it roughly."""
    noise_high: float | None = None


@dataclass(frozen=True)
class StudyResult:
    """Everything that a summary shows."""

    title: str
    plan: Plan | None
    """``None`` for sessions that were put together by hand."""
    questions: tuple[Question, ...]
    overall: tuple[Overall, ...]
    sweeps: tuple[Sweep, ...]
    noise: tuple[NoiseFloor, ...]
    not_run: tuple[NotRun, ...]
    """Runs of the plan that did not take place."""
    to_come: int
    """Runs of the plan that are still to be started."""
    notes: tuple[str, ...]
    sessions: tuple[Summary, ...]
    """All of them, in the plan's order."""
    notices: tuple[str, ...] = field(default=())
    """What had to be done to open files."""
