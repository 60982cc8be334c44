"""The result of a study: cells, verdicts, explanations, sweeps. Plain data for reports and screens.

A *case* is a workload with its parameters, an *environment* what it runs in. A *cell* holds the
runs of one case in one environment; a *question* compares the cells of one case with the first, or
of commands in one environment.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

from gpuwatch.analysis.hardware.ceilings import Ceiling
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
    """The equivalence interval lies inside the margin."""
    SLOWER = "slower"
    """The interval lies wholly above the margin."""
    FASTER = "faster"
    """The interval lies wholly below the margin."""
    SMALL = "small"
    """Zero is excluded, and the equivalence interval lies inside the margin."""
    CANT_TELL = "can't tell"
    INVALID = "invalid"
    """The two are not comparable: ``reasons`` name why, with both values."""
    DESCRIBED = "described"
    """Too few runs for a verdict."""

    @property
    def word(self) -> str:
        """As people read it: ``SLOWER``, ``NO VERDICT``."""
        return "NO VERDICT" if self is Kind.DESCRIBED else self.value.upper()


@dataclass(frozen=True)
class Difference:
    """A fact about host, software or environment that differs between sessions."""

    scope: str
    key: str
    values: tuple[JSON, ...]


@dataclass(frozen=True)
class Verdict:
    """One cell against another; changes, ``margin`` and ``noise`` are relative (0.01: 1 %)."""

    kind: Kind
    change: Interval | None
    """Change of the primary metric against the baseline, at the level that Holm's procedure gives
    this comparison (0.95 for a single one)."""
    equivalence: Interval | None
    """The interval that must lie inside the margin; it has twice the error level of ``change``."""
    margin: float
    pairs: int
    """Pairs of runs (paired), or the smaller number of runs (unpaired)."""
    paired: bool
    noise: float | None
    """Relative standard deviation of one run, without what the runs of a block share."""
    p_zero: float | None = None
    """p value of no difference; not adjusted."""
    p_beyond: float | None = None
    """p value of a change within the margin, which SLOWER and FASTER reject; adjusted by Holm's
    procedure."""
    comparisons: int = 1
    """Number of comparisons that share Holm's procedure."""
    more_blocks: int | None = None
    """About how many blocks in total give a verdict in 80 % of studies if the estimate is true;
    ``None``: decided, or no number would."""
    reasons: tuple[str, ...] = ()
    """Why there is no answer, or the comparison is invalid: clauses without a full stop."""
    estimate: float | None = None
    """The relative change itself, from one pair on, even without an interval."""
    lacking: bool = False
    """Too many runs gave no value: the comparison was not tested."""
    typical: Kind | None = None
    """The verdict on the typical step alone, whose figures are those above; ``None`` where only one
    value is judged."""
    total: Verdict | None = None
    """The verdict on the time per step over all steps of the steady part alone, with its figures:
    what users pay, slow steps included."""

    by_total: bool = False
    """Whether the time of all steps decides it, and the typical step does not say the same."""

    @property
    def leading(self) -> Verdict:
        """The verdict whose figures say what it says: its own, or those of all steps."""
        return self.total if self.total is not None and self.by_total else self

    @property
    def tests(self) -> int:
        """Number of tests that share Holm's procedure: one of each value of each comparison."""
        return self.comparisons * (1 if self.total is None else 2)


@dataclass(frozen=True)
class Run:
    """One run of a cell."""

    session: Summary
    block: int | None
    steady: Steady
    value: float | None
    """The primary metric in seconds; ``None``: unknown, for ``reason``."""
    reason: str | None = None
    total: float | None = None
    """Of a step time: seconds per step of the whole steady part; see
    :attr:`gpuwatch.analysis.samples.steady_state.Steady.total`."""
    outlier: bool = False
    """More than ten scaled median absolute deviations from the cell's median; still used."""

    @property
    def warm_up(self) -> bool:
        """Whether the run is of the discarded block 0."""
        return self.block == 0


@dataclass(frozen=True)
class MissingValues:
    """Judged runs of a cell that gave no value."""

    text: str
    """``2 of 7 runs of docker reached no steady state``."""
    share: float
    """Their share of the runs that should have given a value, 0 to 1."""


@dataclass(frozen=True)
class Cost:
    """What samples cost, in EUR."""

    per_hour: float
    """The machine's price, as given."""
    per_million: float | None
    """Of a million samples: the trimmed geometric mean over the runs; ``None``: unknown."""
    low: float | None
    """The ends of its 95 % interval; ``None`` for fewer than three runs."""
    high: float | None
    runs: int
    kwh_per_million: float | None = None
    """Of all GPUs, likewise, where every run's energy was measured."""
    kwh_low: float | None = None
    kwh_high: float | None = None
    kwh_by: str = ""
    """How it was measured."""


@dataclass(frozen=True)
class Cell:
    """The runs of one case in one environment."""

    label: str
    """Short name for tables, unique within the question."""
    environment: str
    runs: tuple[Run, ...]
    """All runs in order, warm-up included."""
    mean: float | None
    """Geometric mean of the primary metric over the judged runs, in seconds, trimmed as the
    estimate is."""
    spread: float | None
    """Relative standard deviation of the judged runs' values, including drift."""
    not_run: tuple[NotRun, ...] = ()
    lack: MissingValues | None = None
    """``None``: every finished judged run gave a value."""
    cost: Cost | None = None
    """If the price of an hour was given."""
    setting: int | None = None
    """Equal for cells of a plan that differ only in their label; ``None``: not known."""

    @property
    def judged(self) -> tuple[Run, ...]:
        """The runs without the warm-up."""
        return tuple(run for run in self.runs if not run.warm_up)


@dataclass(frozen=True)
class Evidence:
    """One step of the explanation ladder."""

    rung: str
    """``versions``, ``kernels``, ``clocks``, ``load``, ``kernel time``, ``copies``, ``host``,
    ``phases``, ``limits`` or ``start-up``."""
    text: str
    """A sentence with both values, which never claims a cause."""
    points: Interval | None = None
    """The part of the step-time change that it accounts for, as a share of the baseline's step time
    (0.029: 2.9 points), with its interval where there are enough blocks."""
    method: Method | None = None
    source: str = ""
    part: str = ""
    """The part of the step that ``points`` belong to: ``GPU kernel time``, ``copies to the GPU``,
    ``host wait``, ``the phase forward``, ...; empty where there is none."""


@dataclass(frozen=True)
class StartUp:
    """The cost of starting, apart from the steady state."""

    seconds: float | None
    """Launch, import, model and first step together: mean over the cell's runs."""
    extra_seconds: float | None
    """Difference from the baseline."""
    steps_to_amortise: int | None
    """Steps after which the extra start-up is a smaller share of the whole time than the margin;
    ``None``: no extra, or unknown."""
    steps_to_break_even: int | None = None
    """Steps after which the faster steps have made up for the extra start-up; ``None``: no extra,
    or the cell is not faster by more than the margin."""


@dataclass(frozen=True)
class Explanation:
    evidence: tuple[Evidence, ...]
    """In the order of importance to a reader."""
    differences: tuple[Difference, ...]
    """Differing facts; values in the order baseline, other."""
    kernels: tuple[KernelRow, ...]
    """Kernels that ran in only one of the two."""
    start_up: StartUp | None
    families: tuple[KernelRow, ...] = ()
    """Families of kernels that differ."""


@dataclass(frozen=True)
class Contrast:
    """One cell against the baseline of its question."""

    baseline: int
    """Index in ``Question.cells``."""
    other: int
    """Index in ``Question.cells``."""
    verdict: Verdict
    ratios: tuple[float | None, ...]
    """Other over baseline for each block in order; empty where unpaired."""
    explanation: Explanation
    sentence: str
    """The verdict as a sentence to quote."""
    total_ratios: tuple[float | None, ...] = ()
    """As ``ratios``, of the time per step over all steps; empty where it is not judged."""
    places: tuple[int | None, ...] = ()
    """By how many places the other ran after the baseline in each of these blocks."""
    by_design: tuple[str, ...] = ()
    """What was chosen to differ, with both values: ``command: python a.py against python b.py``."""

    @property
    def design(self) -> str | None:
        """The same as one clause, if anything was."""
        return f"differs by design: {'; '.join(self.by_design)}" if self.by_design else None


_CPU_TIMES = ("CPU time", "CPU time, user", "CPU time, system")
EVALUATIONS = "evaluations until training goes on"
OF_THE_RUN = ("elapsed", *_CPU_TIMES, EVALUATIONS)
"""Times that have no ratio where the runs have other numbers of steps, as all totals."""
AT_MOST, AT_LEAST = "at most", "at least"
_TRAFFIC = frozenset({"work per step", "profile, all of it", "efficiency", "over the window"})
"""Groups of rows whose bytes are traffic, not memory use."""


@dataclass(frozen=True)
class ComparisonRow:
    """One quantity of every session, in the sessions' order, or of every cell of a question.

    Of a cell it is the geometric mean (trimmed as the estimate is; the median where a run's value
    is not above zero) and the range over the judged runs.
    """

    group: str
    name: str
    unit: str
    values: tuple[float | None, ...]
    methods: tuple[Method, ...]
    """Of a cell the least certain of its runs."""
    ratios: tuple[float | None, ...] = ()
    """Each value over the baseline's; ``None`` where either is unknown or an upper bound, the
    baseline's is 0 (infinite of a share, whose change has points), a run failed, the windows differ
    in kind, the shares are of different ceilings, totals of different numbers of steps, or the
    difference is within the errors."""
    ceilings: tuple[Ceiling | None, ...] = ()
    """For a row of shares, the ceiling of each."""
    at_most: bool = False
    """Whether its bounds are upper ones."""
    errors: tuple[float | None, ...] = ()
    """Largest relative errors of the values, where any is known."""
    lows: tuple[float | None, ...] = ()
    """Of cells: the lowest value of a run, and in ``highs`` the highest."""
    highs: tuple[float | None, ...] = ()
    known: tuple[int, ...] = ()
    """Of cells: number of runs behind each value."""
    runs: tuple[int, ...] = ()
    """Of cells: number of runs that could have the quantity."""
    changes: tuple[Interval | None, ...] = ()
    """Mean change against the baseline within the blocks; ``None`` without three pairs, where the
    pairs all have the same ratio, or where the ratio is ``None``."""
    measured: tuple[float | None, ...] = ()
    """The ratio of the values, where a change without the effect of the order is another one by
    more than the margin."""

    @property
    def of_cells(self) -> bool:
        return bool(self.lows)

    @property
    def is_traffic(self) -> bool:
        """Whether the values are bytes read or written, shown in powers of ten like their rates."""
        return self.unit == "By" and self.group in _TRAFFIC

    @property
    def is_total(self) -> bool:
        """Whether the values are of all steps together."""
        return self.name in OF_THE_RUN or self.group == "over the window"

    def bound(self, at: int) -> str | None:
        """``at most`` or ``at least`` if a value is a bound."""
        if self.methods[at] is not Method.BOUND:
            return None
        return AT_MOST if self.at_most else AT_LEAST

    def error(self, one: int, other: int) -> float:
        """By how much two values may differ by their errors alone, relative."""
        return sum(self.errors[each] or 0.0 for each in (one, other)) if self.errors else 0.0

    def change(self, at: int) -> Interval | None:
        """The mean change within the blocks, which single runs have not."""
        return self.changes[at] if self.changes else None


@dataclass(frozen=True)
class Question:
    """One case in several environments, or several commands in one environment."""

    label: str
    """``mnist-cnn``, or ``mnist-cnn, batch size 64`` where the parameters differ in the study."""
    part: int
    workload: Mapping[str, JSON]
    """``name``, ``kind``, ``arguments``, ``parameters``."""
    metric: str
    """``step time`` or, where the program reports no steps, ``whole run``."""
    cells: tuple[Cell, ...]
    contrasts: tuple[Contrast, ...]
    """Every other cell against the baseline."""
    table: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()

    @property
    def baseline(self) -> int:
        """Index of the cell that the others are compared with."""
        return self.contrasts[0].baseline if self.contrasts else 0


@dataclass(frozen=True)
class Overall:
    """One environment against the baseline: the geometric mean over all cases."""

    environment: str
    baseline: str
    change: Interval
    """Of ``metric``."""
    cases: int
    sentence: str
    kind: Kind = Kind.DESCRIBED
    metric: str = "step time"
    """``time per step``: of all steps, where every case has it; else ``step time`` or
    ``whole run``."""


@dataclass(frozen=True)
class SweepPoint:
    """One value of the parameter."""

    value: JSON
    cell: Cell | None
    """``None``: it never ran, for ``why``."""
    samples_per_second: float | None
    step_seconds: float | None
    throughput: Interval | None
    """Relative change of the throughput against the best, with its interval, where the runs are
    enough for a verdict."""
    tied: bool
    """The same as the best, within the margin; the best itself is tied too."""
    why: str | None = None
    """Why there is no figure (out of memory, failed, not run), or why it cannot be the best."""
    lacking: bool = False
    """Too many of its runs gave no value to compare it; its figures are of the others."""
    pairs: int | None = None
    """Blocks shared with the best, or the smaller number of runs without shared blocks; ``None``:
    it is the best, or not compared."""
    loss: float | None = None
    """The last one, the mean over the runs; likewise the accuracies (0 to 1). Not tested: runs of
    one seed share them."""
    acc1: float | None = None
    acc5: float | None = None
    efficiency: Interval | None = None
    """Of ranks: throughput of each, as a share of that with the fewest ranks."""


@dataclass(frozen=True)
class Sweep:
    """A sweep over one parameter of one workload in one environment."""

    label: str
    """``mnist-cnn in docker: batch size``."""
    parameter: str
    environment: str
    points: tuple[SweepPoint, ...]
    """In the order requested."""
    best: int | None
    """Index of the point with the highest throughput."""
    sentence: str


@dataclass(frozen=True)
class NoiseFloor:
    """The noise of this machine: one environment compared with itself."""

    label: str
    noise: float
    """Relative standard deviation of one run, without drift where the runs are paired."""
    change: Interval
    """Of one run set against the other, whose true difference is zero."""
    resolves: tuple[DetectableChange, ...]
    sentence: str
    noise_low: float | None = None
    """Ends of the 95 % interval of ``noise``, which is wide for few blocks."""
    noise_high: float | None = None


@dataclass(frozen=True)
class StudyResult:
    """Everything that a study summary shows."""

    title: str
    plan: Plan | None
    """``None`` for sessions selected by hand."""
    questions: tuple[Question, ...]
    overall: tuple[Overall, ...]
    sweeps: tuple[Sweep, ...]
    noise: tuple[NoiseFloor, ...]
    not_run: tuple[NotRun, ...]
    """Runs of the plan that did not take place."""
    to_come: int
    """Number of planned runs still to be started."""
    notes: tuple[str, ...]
    sessions: tuple[Summary, ...]
    """All sessions, in the plan's order."""
