"""Runs of one case in one environment: their values, what lacks one and why."""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace

from gpuwatch.analysis.comparison.verdict import outliers
from gpuwatch.analysis.results import Cell, MissingValues, Run
from gpuwatch.analysis.samples.steady_state import Steady
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import Workload
from gpuwatch.core.text import clean
from gpuwatch.session.reading.status import State
from gpuwatch.session.study.study_folder import NotRun

STEP_TIME, WHOLE_RUN = "step time", "whole run"
"""The two primary metrics: the median steady step, and the process from start to end."""

STOPPED_AS_ASKED = "stopped: --duration"
"""How the status of a run begins that was to run for a time and not to an end of its own."""
MOST_LACKING = 0.2
"""Share of what should have given a value and did not, above which nothing can be told: what is
left may be what went well."""
_SAID_BEFORE = re.compile(r"^(stopped:? |no steady state: )")
"""What a reason begins with, and the clause around it says already."""
_LONGEST_REASON = 200
_SHORTEST, _LONGEST = 1e-12, 1e9
"""Seconds that a step or a run may take; what a file from elsewhere says beyond is no time."""


@dataclass(frozen=True)
class Read:
    """One session, read once: its figures, and the steady part of its steps."""

    summary: Summary
    steady: Steady
    warm_up: bool = False
    """Of the discarded block of its own study."""


@dataclass(frozen=True)
class Placed:
    """A session and its block."""

    read: Read
    block: int | None


@dataclass(frozen=True)
class Group:
    """What is to become one cell."""

    label: str
    environment: str
    placed: tuple[Placed, ...]
    not_run: tuple[NotRun, ...] = ()
    absent: tuple[int | None, ...] = ()
    """Blocks of the judged runs that did not take place and will not."""
    to_come: tuple[int | None, ...] = ()
    """Blocks of the judged runs that are still to be started."""
    setting: int | None = None
    """As of a :class:`Cell`."""


@dataclass(frozen=True)
class Case:
    """What is to become one question."""

    label: str
    part: int
    groups: tuple[Group, ...]
    """The first is what the others are compared with."""
    margin: float
    blocks: tuple[int, ...] | None = None
    """Numbers of the judged blocks; ``None``: nothing pairs the runs of two groups."""
    workload: Workload | None = None
    """As it was planned."""
    environments: tuple[str, ...] = ()
    """Labels of all that were planned, in order."""
    why: Mapping[str, str] = field(default_factory=dict)
    """Why an environment, by its label, has no run at all."""
    goes_on: bool = False
    """Whether runs of it may still come."""
    doubt: str | None = None
    """Why nothing can be told of it, whatever its runs say."""


def metric_of(groups: Iterable[Group]) -> str:
    """``step time`` where any run reports steps, else ``whole run``."""
    reads = [placed.read for group in groups for placed in group.placed]
    steps = any(read.summary.steps.count is not None for read in reads)
    return STEP_TIME if steps else WHOLE_RUN


def cell_of(group: Group, metric: str) -> Cell:
    """The cell of ``group``, its runs' values in ``metric``."""
    runs = [_run(placed, metric) for placed in group.placed]
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
        median=statistics.median(values) if values else None,
        spread=statistics.stdev(values) / statistics.fmean(values) if len(values) > 1 else None,
        not_run=group.not_run,
        setting=group.setting,
    )
    return replace(cell, lack=_lack(cell, len(group.absent), len(group.to_come)))


def lacks_too_much(cell: Cell) -> bool:
    """Whether so many of its runs gave no value that the others may be those that went well."""
    return cell.lack is not None and cell.lack.share > MOST_LACKING


def valued(cell: Cell) -> list[Run]:
    """The judged runs that have a value."""
    return [run for run in cell.judged if run.value is not None]


def _lack(cell: Cell, absent: int, to_come: int) -> MissingValues | None:
    """What of the judged runs gave no value, ``absent`` ones included; of all that there will be,
    ``to_come`` included. A run that goes on may still give one."""
    over = [run for run in cell.judged if not run.session.status.live]
    lacking = [run for run in over if run.value is None]
    total = len(cell.judged) + absent + to_come
    if not lacking and not absent:
        return None
    ways: dict[tuple[str, str], list[str | None]] = {}
    for run in lacking:
        ways.setdefault(_way(run), []).append(run.reason)
    if absent:
        ways[_ABSENT] = [None] * absent
    first, *rest = [_clause(way, reasons) for way, reasons in ways.items()]
    count, _, what = first.partition(" ")
    of = f"of {total} {'run' if total == 1 else 'runs'} of {cell.label}"
    return MissingValues(
        ", ".join([f"{count} {of} {what}", *rest]), (len(lacking) + absent) / total
    )


def _clause(way: tuple[str, str], reasons: Sequence[str | None]) -> str:
    """``2 reached no steady state``, with the reason where it is one."""
    one, many = way
    known = {None if each is None else _SAID_BEFORE.sub("", each) for each in reasons}
    why = known.pop() if len(known) == 1 else None
    text = f"{len(reasons)} {one if len(reasons) == 1 else many}"
    return f"{text} ({why})" if why else text


_ABSENT = ("did not take place", "did not take place")
_WAYS = {
    State.FAILED: ("failed", "failed"),
    State.KILLED: ("was killed", "were killed"),
    State.LOST: ("was lost", "were lost"),
    State.STOPPED: ("was stopped", "were stopped"),
}


def _way(run: Run) -> tuple[str, str]:
    """How a run came to have no value, of one and of several."""
    status = run.session.status
    if status.state in _WAYS and not ended_as_asked(run.session):
        return _WAYS[status.state]
    if run.steady.count or run.session.steps.median_seconds is not None:
        return "reached no steady state", "reached no steady state"
    return "has no time", "have no time"


def ended_as_asked(session: Summary) -> bool:
    """Whether a run came to its end, by itself or by the time that it was to have."""
    status = session.status
    return status.state is State.FINISHED or status.text.startswith(STOPPED_AS_ASKED)


def is_time(seconds: float) -> bool:
    """Whether a step or a run can take so long."""
    return _SHORTEST < seconds < _LONGEST


def _run(placed: Placed, metric: str) -> Run:
    read = placed.read
    value, reason = _value(read, metric)
    return Run(read.summary, placed.block, read.steady, value, reason)


def _value(read: Read, metric: str) -> tuple[float | None, str | None]:
    status = read.summary.status
    if status.live:
        return None, "still running"
    stopped = status.state is not State.FINISHED
    if not ended_as_asked(read.summary) or (stopped and metric == WHOLE_RUN):
        return None, clean(status.text, _LONGEST_REASON)
    if metric == STEP_TIME:
        return read.steady.seconds, read.steady.reason
    seconds = read.summary.timing.real_seconds
    if seconds is None or not is_time(seconds):
        return None, "how long it took is not known"
    return seconds, None


def labels(candidates: Sequence[Sequence[str]]) -> list[str]:
    """A name for each of ``candidates``, which are what may name it, the preferred first.

    As few of them as tell all apart, without those that are the same everywhere; where even all
    together do not, a number.
    """
    most = min((len(names) for names in candidates), default=1)
    taken = next(
        (n for n in range(1, most) if len({tuple(e[:n]) for e in candidates}) == len(candidates)),
        most,
    )
    useful = [at for at in range(taken) if at == 0 or len({e[at] for e in candidates}) > 1]
    return numbered([", ".join(e[at] for at in useful if e[at]) for e in candidates])


def numbered(names: Sequence[str]) -> list[str]:
    """``names``, those that occur more than once with ``#1``, ``#2`` behind them."""
    seen: dict[str, int] = {}
    found = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        found.append(f"{name} #{seen[name]}" if names.count(name) > 1 else name)
    return found
