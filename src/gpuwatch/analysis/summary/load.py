"""Notes on several runs at once: the load of other programs, what the hook took, and samples that
do not cover all of a window."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from gpuwatch.analysis.samples.channels import FULL
from gpuwatch.analysis.samples.cpu_time import core_wait, threads_of
from gpuwatch.analysis.samples.window import WHOLE_RUN
from gpuwatch.analysis.summary.notes import COSTLY, HOOK
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.metrics import Method, label
from gpuwatch.core.models import mapping, number
from gpuwatch.core.text import listed

BUSY = 0.2
"""Share of the cores' time from which on other programs are reported."""
_LEAST_COVERED = 0.05
"""Share of a window from which on its samples stand for it."""
_LITTLE_CORES = 0.05
"""Upper bound of a program's own cores up to which the share of others is known by it."""
OTHERS = "other programs used"
_ONCE = 1e-4
"""Share that is told of a metric that was read once: more than 0 %, less than is shown."""
_MOST_NAMED = 4
_START_S = 1.0
"""What a metric may lack of a recorded machine, whose first samples of some tell nothing."""


def disturbances(sessions: Sequence[Summary]) -> tuple[str, ...]:
    """All of these notes."""
    return (*load_notes(sessions), *_hook_notes(sessions), *partly_sampled(sessions))


def _hook_notes(sessions: Sequence[Summary]) -> tuple[str, ...]:
    costs = sorted(cost for each in sessions if (cost := each.hook_cost or 0.0) >= COSTLY)
    of = _of_runs(len(costs), sessions)
    return (HOOK.format(units.span(costs[0], costs[-1], "1"), of),) if costs else ()


def load_notes(sessions: Sequence[Summary]) -> tuple[str, ...]:
    """A note if other programs used a fifth of the CPU's time or more, with the number of runs, and
    with how long these waited for a core; empty if no run is known to be affected."""
    shares = [(share, each) for each in sessions if (share := others_share(each)) is not None]
    busy = [(share, _core_wait(each)) for share, each in shares if share >= BUSY]
    if not busy:
        return ()
    used, of = [share for share, _ in busy], _of_runs(len(busy), sessions)
    if len(shares) < len(sessions):
        of = f" in {len(busy)} of {len(sessions)} runs, unknown of {len(sessions) - len(shares)}"
    note = f"{OTHERS} {units.span(min(used), max(used), '1')} of the CPU's time{of}"
    waits = [wait for _, wait in busy if wait is not None]
    if len(waits) == len(busy):
        who = "it" if len(sessions) == 1 else "these"
        note += f"; {who} waited for a core {units.span(min(waits), max(waits), '1')} of the time"
    return (note,)


def _core_wait(session: Summary) -> float | None:
    waited = session.metrics.get("process.cpu.wait")
    waiting = None if waited is None else waited.per_second(session.window.seconds)
    ranks = len(session.ranks.figures) if session.ranks else 0
    return core_wait(waiting, _own_cores(session), threads_of(session.facts, ranks))


def partly_sampled(
    sessions: Sequence[Summary], shown: Collection[str] | None = None
) -> tuple[str, ...]:
    """A note on metrics whose samples do not cover all of the window, with the span of their
    shares; one for each number of runs. ``shown``: only on these.

    The ends of a whole run are covered by no sample of any metric, which needs no note, nor does a
    run that is shorter than a few times that between two samples.
    """
    lacking: dict[str, list[tuple[float, str]]] = {}
    for session in sessions:
        covered = {k: of.coverage for k, of in session.metrics.items() if of.coverage is not None}
        timed = session.window.kind != WHOLE_RUN
        seconds = session.seconds or 0.0
        if not timed and seconds < 3 * (session.interval_seconds or 0.0):
            continue
        whole = 1.0 if timed else max(covered.values(), default=1.0)
        if session.workload.get("kind") == "machine" and seconds:
            whole -= min(_START_S / seconds, 0.5)
        for name, share in covered.items():
            if share < FULL * whole and (shown is None or name in shown):
                lacking.setdefault(name, []).append((share or _ONCE, session.window.kind))
    notes = []
    for many, names in grouped((len(runs), name) for name, runs in lacking.items()).items():
        shares, kinds = zip(*(run for name in names for run in lacking[name]), strict=True)
        part, of = _part(units.span(min(shares), max(shares), "1")), _of_runs(many, sessions)
        kind = kinds[0] if len(set(kinds)) == 1 else "window"
        named = listed([label(name) for name in names], _MOST_NAMED)
        notes.append(f"{named}: samples cover {part} of the {kind}{of}")
    return tuple(notes)


def _part(span: str) -> str:
    """``only 33 to 40 %``; from a share too small to be told ``at most 40 %``, or that alone."""
    _, to, high = span.partition(" to ")
    if not span.startswith("<"):
        return f"only {span}"
    return f"at most {high}" if to else f"less than {span[1:]}"


def _of_runs(affected: int, sessions: Sequence[Summary]) -> str:
    return "" if len(sessions) == 1 else f" in {affected} of {len(sessions)} runs"


def others_share(session: Summary) -> float | None:
    """Share of all cores' time used neither by the workload nor idle, 0 to 1.

    It includes time taken by the hypervisor. ``None`` where the workload's own time is unknown.
    """
    if not (sampled(session, "hw.cpu.utilization") and sampled(session, "process.cpu.time")):
        return None
    busy, own = mean_of(session, "hw.cpu.utilization"), _own_cores(session)
    cores = number(mapping(session.facts.get("host")).get("cpu.core.logical.count"))
    if busy is None or own is None or not cores or cores < 1:
        return None
    return max(0.0, busy - own / cores)


def _own_cores(session: Summary) -> float | None:
    """Average number of cores used by the workload's processes.

    From samples; for a whole run too short for two of them, from its totals at the end; at most so
    many where that is little.
    """
    used = session.metrics.get("process.cpu.time")
    if used is not None and (used.method is Method.MEASURED or used.coverage is not None):
        return used.per_second(session.window.seconds)
    used_s, real = session.timing.cpu_seconds, session.timing.real_seconds
    if session.window.kind == WHOLE_RUN and not session.timing.cpu_is_bound and used_s is not None:
        return used_s / real if real and real > 0 else None
    most = None if used is None else used.per_second(session.window.seconds)
    return most if most is not None and most < _LITTLE_CORES else None


def sampled(session: Summary, name: str) -> bool:
    """Whether the samples of a metric cover enough of the window to stand for it."""
    statistic = session.metrics.get(name)
    covered = None if statistic is None else statistic.coverage
    return covered is None or covered >= _LEAST_COVERED


def mean_of(session: Summary, name: str) -> float | None:
    """Mean of a metric over the session's window; ``None`` is unknown."""
    statistic = session.metrics.get(name)
    return None if statistic is None else statistic.mean
