"""Runs of one case in one environment: their values, and which have none and why."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from gpuwatch.analysis.comparison.verdict import outliers
from gpuwatch.analysis.results import Cell, MissingValues, Run
from gpuwatch.analysis.samples.steady_state import Steady
from gpuwatch.analysis.statistics.intervals import middle
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import Workload
from gpuwatch.core.text import clean
from gpuwatch.core.units import counted
from gpuwatch.session.reading.status import State
from gpuwatch.session.study.study_folder import NotRun

STEP_TIME, WHOLE_RUN = "step time", "whole run"
"""The two primary metrics: the median steady step, and the process from start to end."""

STOPPED_AS_ASKED = "stopped: --duration"
"""Start of the status text of a run that was limited to a given time."""
MOST_LACKING = 0.2
"""Share of missing values above which there is no verdict: the remaining runs may be only those
that went well."""
_SAID_BEFORE = re.compile(r"^(stopped:? |no steady state: )")
"""Beginnings of reasons that the surrounding clause already states."""
_LONGEST_REASON = 200
_SHORTEST, _LONGEST = 1e-12, 1e9
"""Limits of a plausible step or run time in seconds: files may come from anywhere."""


@dataclass(frozen=True)
class Read:
    """One session, read once: its figures, and the steady part of its steps."""

    summary: Summary
    steady: Steady
    warm_up: bool = False
    """Whether it is of the discarded block of its own study."""


@dataclass(frozen=True)
class Placed:
    """A session with the number of its block."""

    read: Read
    block: int | None


@dataclass(frozen=True)
class Group:
    """The sessions of a future cell."""

    label: str
    environment: str
    placed: tuple[Placed, ...]
    not_run: tuple[NotRun, ...] = ()
    absent: tuple[int | None, ...] = ()
    """Blocks of the judged runs that did not and will not take place, or are not here."""
    in_part: int = 0
    """Of those, the runs of which a few figures are here."""
    to_come: tuple[int | None, ...] = ()
    """Blocks of the judged runs that are still to be started, or that `resume` would start."""
    setting: int | None = None
    """As in :class:`Cell`."""


@dataclass(frozen=True)
class Case:
    """The groups of a future question."""

    label: str
    part: int
    groups: tuple[Group, ...]
    """The first is the baseline of the others."""
    margin: float
    blocks: tuple[int, ...] | None = None
    """Numbers of the judged blocks; ``None``: the runs are not paired."""
    workload: Workload | None = None
    """The planned workload."""
    environments: tuple[str, ...] = ()
    """Labels of all planned groups, in order."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Reasons, by label, for groups without any run."""
    goes_on: bool = False
    """Whether somebody still records its study."""
    doubt: str | None = None
    """Why there is no verdict, whatever the runs show."""
    compares_commands: bool = False
    """Whether its groups run different commands, which are to be compared."""


def metric_of(groups: Iterable[Group]) -> str:
    """``step time`` where any run reports steps, else ``whole run``."""
    reads = [placed.read for group in groups for placed in group.placed]
    steps = any(
        read.summary.steps.count is not None or read.summary.several_writers for read in reads
    )
    return STEP_TIME if steps else WHOLE_RUN


def cell_of(group: Group, metric: str) -> Cell:
    """The cell of ``group``, with its runs' values of ``metric`` in seconds."""
    alone = len(group.placed) == 1 and group.placed[0].block is None
    runs = [_run(placed, metric, alone=alone) for placed in group.placed]
    values = [run.value for run in runs if not run.warm_up and run.value is not None]
    far = iter(outliers(values))
    marked = tuple(
        replace(run, outlier=next(far)) if not run.warm_up and run.value is not None else run
        for run in runs
    )
    cell = Cell(
        label=group.label,
        environment=group.environment,
        runs=marked,
        mean=middle(values),
        spread=statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else None,
        not_run=group.not_run,
        setting=group.setting,
    )
    return replace(cell, lack=_lack(cell, group))


def lacks_too_much(cell: Cell) -> bool:
    """Whether more than ``MOST_LACKING`` of its runs gave no value."""
    return cell.lack is not None and cell.lack.share > MOST_LACKING


def valued(cell: Cell) -> list[Run]:
    """The judged runs that have a value."""
    return [run for run in cell.judged if run.value is not None]


def _lack(cell: Cell, group: Group) -> MissingValues | None:
    """The judged runs without a value, including absent ones, as a share of all, with those to
    come. A run that is still going may yet give one; a recording of the machine never does."""
    absent, to_come = len(group.absent), len(group.to_come)
    finished = [
        run
        for run in cell.judged
        if not (run.session.status.live or run.session.workload.get("kind") == "machine")
    ]
    lacking = [run for run in finished if run.value is None]
    total = len(cell.judged) + absent + to_come
    if not lacking and not absent:
        return None
    ways = grouped((_way(run), run.reason) for run in lacking)
    if in_part := [None] * group.in_part:
        ways.setdefault(_WAYS[State.IN_PART], []).extend(in_part)
    if absent > group.in_part:
        ways[_ABSENT] = [None] * (absent - group.in_part)
    first, *rest = [_clause(way, reasons) for way, reasons in ways.items()]
    count, _, what = first.partition(" ")
    who = runs_of(int(count), total, cell.label)
    return MissingValues(", ".join([f"{who} {what}", *rest]), (len(lacking) + absent) / total)


def runs_of(count: int, total: int, label: str) -> str:
    """``2 of 7 runs of docker``; ``the run of docker`` where there is one alone."""
    return f"the run of {label}" if total == 1 else f"{count} of {total} runs of {label}"


def _clause(way: tuple[str, str], reasons: Sequence[str | None]) -> str:
    """``2 never became steady``, with the reason if it is the same for all."""
    one, many = way
    distinct = {None if each is None else _SAID_BEFORE.sub("", each) for each in reasons}
    reason = distinct.pop() if len(distinct) == 1 else None
    text = counted(len(reasons), one, many)
    return f"{text} ({reason})" if reason else text


_ABSENT = ("did not run", "did not run")
_WAYS = {
    State.FAILED: ("failed", "failed"),
    State.KILLED: ("was killed", "were killed"),
    State.TIMED_OUT: ("timed out", "timed out"),
    State.LOST: ("was lost", "were lost"),
    State.IN_PART: ("was fetched in part", "were fetched in part"),
    State.STOPPED: ("was stopped", "were stopped"),
}


def _way(run: Run) -> tuple[str, str]:
    """Why a run has no value, in the words for one run and for several."""
    status = run.session.status
    timed = run.steady.count or run.session.steps.median_seconds is not None
    if status.state in _WAYS and not (timed and ended_as_asked(run.session)):
        return _WAYS[status.state]
    if timed:
        return "never became steady", "never became steady"
    return "has no time", "have no time"


def ended_as_asked(session: Summary) -> bool:
    """Whether a run finished by itself or at its time limit."""
    status = session.status
    return status.state is State.FINISHED or status.text.startswith(STOPPED_AS_ASKED)


def is_time(seconds: float) -> bool:
    """Whether ``seconds`` is plausible for a step or a run."""
    return _SHORTEST < seconds < _LONGEST


def _run(placed: Placed, metric: str, *, alone: bool) -> Run:
    read = placed.read
    value, reason = _value(read, metric, alone=alone)
    total = read.steady.total if metric == STEP_TIME and value is not None else None
    return Run(read.summary, placed.block, read.steady, value, reason, total)


def _value(read: Read, metric: str, *, alone: bool) -> tuple[float | None, str | None]:
    """``alone``: the run is in no block and the only one of its side, so that its steps describe
    it, also up to where it was stopped."""
    status = read.summary.status
    if status.live:
        return None, "still running"
    stopped = status.state is not State.FINISHED
    described = alone and status.state is State.STOPPED
    if not (ended_as_asked(read.summary) or described) or (stopped and metric == WHOLE_RUN):
        end = read.summary.end  # in few words, or what the status says more of
        return None, clean(status.text if status.text.startswith(end) else end, _LONGEST_REASON)
    if metric == STEP_TIME:
        return read.steady.seconds, read.steady.reason
    seconds = read.summary.timing.real_seconds
    if seconds is None or not is_time(seconds):
        return None, "how long it took is not known"
    return seconds, None


def labels(candidates: Sequence[Sequence[str]], *, keep_first: bool = False) -> list[str]:
    """A short unique name for each item from its ``candidates``, the preferred first.

    It has as few candidates as tell all items apart, without those that are the same everywhere
    (``keep_first``: but for the first), and a number where all together do not.
    """
    most = min((len(names) for names in candidates), default=1)
    taken = next(
        (n for n in range(1, most) if len({tuple(e[:n]) for e in candidates}) == len(candidates)),
        most,
    )
    useful = [at for at in range(taken) if len({e[at] for e in candidates}) > 1]
    if not useful or keep_first:
        useful = sorted({0, *useful})
    return numbered(
        [", ".join(dict.fromkeys(e[at] for at in useful if e[at])) or e[0] for e in candidates]
    )


def numbered(names: Sequence[str]) -> list[str]:
    """``names``, with ``#1``, ``#2`` appended to those that occur more than once."""
    seen: dict[str, int] = {}
    unique = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        unique.append(f"{name} #{seen[name]}" if names.count(name) > 1 else name)
    return unique
