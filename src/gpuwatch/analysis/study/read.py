"""From session files and study folders to a result; each file is read once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.comparison.cells import Read as Read
from gpuwatch.analysis.comparison.cells import is_time
from gpuwatch.analysis.comparison.wording import per_cent
from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.samples.rates import time_per_step
from gpuwatch.analysis.samples.source import Source
from gpuwatch.analysis.samples.steady_state import Steady, series_of, steady_series
from gpuwatch.analysis.samples.step_lines import ends_told
from gpuwatch.analysis.study.notes import UNPAIRED
from gpuwatch.analysis.study.study import study_result
from gpuwatch.analysis.summary.summary import summarise_from
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.text import clean, to_paste
from gpuwatch.core.units import counted
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study import plan as plans
from gpuwatch.session.study import progress, study_folder
from gpuwatch.session.study.plan import WARM_UP, Plan, PlannedRun
from gpuwatch.session.study.short_name import short_name

_NO_PLAN = (
    "plan.json cannot be read, so it is not known which runs are of the warm-up and which belong "
    "to one block"
)


def read(path: Path) -> Read:
    """Read one session.

    Raises:
        NotASession, NewerSchema, StorageError: it cannot be read.
    """
    with SessionReader(path) as reader:
        return read_from(reader)


def read_from(reader: SessionReader) -> Read:
    """What ``reader``'s session tells."""
    source = Source(reader)
    timed = [row for row in source.steps() if not row.warmup]
    times, reason = series_of(timed)
    summary = summarise_from(reader, source, (times, reason))
    reason = summary.several_writers or reason
    if reason is None and times.size and not (is_time(times.min()) and is_time(times.max())):
        reason = "a reported step time is impossible"
    if reason is not None:
        return Read(summary, Steady(None, 0, 0, None, reason=reason))
    steady = steady_series(times)
    if steady.seconds is not None:
        told = ends_told(reader.meta())
        steady = replace(steady, total=time_per_step(timed, steady.first, told=told))
    return Read(summary, steady)


Reading = Callable[[Path], Read]
"""Reads a session, such as :func:`read`."""


def read_study(
    folder: Path,
    *,
    across_devices: bool = False,
    across_commands: bool = False,
    margin: float | None = None,
    reading: Reading = read,
) -> StudyResult:
    """The result of the study in ``folder``, with a plan or without one.

    A session that cannot be read becomes a note with its file name. ``reading`` reads one session.
    ``across_commands``: a study with several commands that it does not compare itself counts as
    sessions selected by hand.
    """
    plan = plans.read(folder)
    if across_commands and plan is not None and _keeps_commands_apart(plan):
        return read_sessions(
            study_folder.sessions_in(folder),
            across_devices=across_devices,
            across_commands=True,
            margin=margin,
            reading=reading,
        )
    doubt = _NO_PLAN if plan is None and (folder / plans.PLAN).exists() else None
    planned = {run.file: run for run in plan.runs} if plan is not None else {}
    reads, notes = [], [doubt] if doubt else []
    for path in study_folder.sessions_in(folder):
        try:
            read = reading(path)
        except GpuwatchError as error:
            notes.append(f"{clean(path.name)} is left out: {clean(error.message)}")
            continue
        run = planned.get(path.name)
        if run is not None and (other := _unlike(read, run)):
            notes.append(f"{clean(path.name)} is left out: {other}")
        else:
            reads.append(read)
    not_run = study_folder.not_run(folder)
    to_come = missing = 0
    if plan is not None:
        listed = {each.index for each in not_run}
        rest = [run for run in plan.runs if run.index not in listed]
        missing = sum(not (folder / run.file).exists() for run in rest)
        to_come = missing if missing and progress.recorder_alive(folder) else 0
    if missing and not to_come:
        runs = counted(len(plan.runs if plan else ()), "run")
        notes.append(
            f"ended early: {missing} of {runs} never started; "
            f"`{to_paste('resume', folder)}` starts them"
        )
    return study_result(
        reads,
        plan,
        not_run,
        title=_title(plan, folder),
        to_come=to_come,
        may_follow=missing > 0,
        across_devices=across_devices,
        across_commands=across_commands,
        margin=margin,
        notes=notes,
        doubt=doubt,
    )


def _unlike(read: Read, run: PlannedRun) -> str | None:
    """How a session differs from the planned run of its file name; ``None``: it does not."""
    session = read.summary
    for what, is_, planned in (
        ("workload", session.workload.get("name"), run.workload.name),
        ("command", session.workload.get("label"), run.workload.label),
        ("environment", session.environment.get("label"), run.environment.label),
    ):
        if is_ != planned:
            return f"its {what} is {clean(is_, 60)}, and the plan's {clean(planned, 60)}"
    return None


def read_sessions(
    paths: Sequence[Path],
    *,
    across_devices: bool = False,
    across_commands: bool = False,
    margin: float | None = None,
    reading: Reading = read,
) -> StudyResult:
    """The result of sessions selected by hand.

    Sessions of one study whose plan has blocks are compared by block; others, unpaired, in groups
    of the same workload, parameters, environment, device and study. ``across_commands`` compares
    different commands, too, also those that a plan does not compare. A study's warm-up is
    judged only if nothing else is selected. ``margin`` defaults to that of the plans: the smallest,
    with a note, if they differ. ``reading`` reads one session.

    Raises:
        NotASession, NewerSchema, StorageError: a file cannot be read.
    """
    files = {path.resolve(): path for path in paths}
    named = grouped((path.parent, path.name) for path in files)
    selected = {folder: set(names) for folder, names in named.items()}
    folders = list(selected)
    known = {folder: of for folder in folders if (of := plans.read(folder)) is not None}
    runs = [(folder, of, run) for folder, of in known.items() for run in of.runs]
    plan = known.get(folders[0]) if len(folders) == 1 else None
    if plan is not None and (
        all(part.blocks is None for part in plan.parts)
        or not selected[folders[0]] <= {run.file for run in plan.runs}
        or not _pairs(plan, selected[folders[0]])
        or (across_commands and _keeps_commands_apart(plan))
    ):
        plan = None
    if plan is not None and files.keys() >= set(study_folder.sessions_in(folders[0])):
        folder = next(iter(files.values())).parent
        return read_study(folder, across_devices=across_devices, margin=margin, reading=reading)
    planned = [of.parts[run.part].margin for at, of, run in runs if run.file in selected[at]]
    margins = sorted(set(planned))
    notes = []
    if margin is None and len(margins) > 1:
        listed = ", ".join(map(per_cent, margins))
        notes = [f"the margins of the studies differ ({listed}): the smallest is used"]
    if len(folders) > 1:
        judged = {
            folder: replace(of, runs=tuple(run for run in of.runs if run.block))
            for folder, of in known.items()
        }
        apart = [folder for folder, of in judged.items() if _pairs(of, selected[folder])]
        notes += [UNPAIRED.format(to_paste("compare", short_name(each))) for each in apart[:1]]
    title = _title(plan, folders[0]) if len(folders) == 1 else f"{len(files)} sessions"
    discarded = {folder / run.file for folder, _, run in runs if run.block == WARM_UP}
    if files.keys() <= discarded:
        discarded, plan = set(), None
        notes.append("runs of a warm-up, which their study does not judge")
    result = study_result(
        [replace(reading(path), warm_up=found in discarded) for found, path in files.items()],
        plan,
        (),
        title=title,
        across_devices=across_devices,
        across_commands=across_commands,
        margin=margins[0] if margin is None and margins else margin,
        notes=notes,
    )
    if result.plan is None:
        return result
    names = selected[folders[0]]
    kept = tuple(e for e in result.plan.runs if e.file in names or e.block == WARM_UP)
    return replace(result, plan=replace(result.plan, runs=kept))


def _pairs(plan: Plan, files: Collection[str]) -> bool:
    """Whether two of ``files`` belong to the same block, and case where these are kept apart."""
    places = []
    for run in plan.runs:
        if run.file in files:
            apart = not plan.parts[run.part].compares_commands
            case = f"{run.workload.name} {run.workload.parameters}" if apart else ""
            places.append((run.part, run.block, case))
    return len(set(places)) < len(places)


def _keeps_commands_apart(plan: Plan) -> bool:
    """Whether ``plan`` has several commands without comparing them, as in parts of their own."""
    cases = [case for part in plan.parts for case in part.workloads if case.kind == "command"]
    compared = any(part.compares_commands for part in plan.parts)
    return len({case.arguments for case in cases}) > 1 and not compared


def _title(plan: Plan | None, folder: Path) -> str:
    return (plan.title if plan is not None else None) or folder.resolve().name
