"""Stop a run: SIGTERM to its whole process tree, SIGKILL after ten seconds.

This also ends its study. --all stops all your runs on this machine, every study that is between
two runs, and what is left of yours in Kubernetes that nothing here follows any more.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeVar

from gpuwatch.cli.place.lookup import sent
from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core import paths
from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.processes import ProcessId
from gpuwatch.core.text import to_paste
from gpuwatch.core.units import counted
from gpuwatch.places import placements
from gpuwatch.places.placements import Placed
from gpuwatch.recorder import run_folder
from gpuwatch.recorder.run_folder import folders_of, handle_of
from gpuwatch.runners import kinds, load
from gpuwatch.runners.base import Sweeper
from gpuwatch.session.reading.reader import read_meta
from gpuwatch.session.reading.status import goes_on_alone, process_id, status
from gpuwatch.session.study.plan import PlannedRun, read
from gpuwatch.session.study.progress import recorder_alive
from gpuwatch.session.study.study_folder import holder, sessions_in

Target = TypeVar("Target")
Result = TypeVar("Result")

_GRACE, _PATIENCE = 12.0, 60.0
"""Time limits in s: a workload without recorder or shim is killed after the first; stopping fails
after the second."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument("--all", action="store_true", help="stop every run that is going on")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if arguments.all == (arguments.session is not None):
        raise UsageError("name one session, or --all", "see `gpuwatch sessions`")
    return _stop_all() if arguments.all else _stop_named(arguments.session)


def _stop_named(text: str) -> int:
    placed = _at_a_place(text)
    # Where a job's recorder was killed, what it left is stopped on its node as any run there.
    if placed is not None and not (placed.done and folders_of(Path(placed.study))):
        from gpuwatch.cli.place.stopping import stop as stop_there

        say(stop_there(placed) or f"{placed.study} is not running")
        return 0
    alone = _without_session(text)
    targets = [] if alone else _named(text)
    ended, troubles = _apply(stop, targets)
    between = [alone] if alone else []
    if targets and not (ended or troubles) and os.path.isdir(text):
        between = list(dict.fromkeys(path.parent for path in targets))
    ended_studies, study_troubles = _apply(_stop_between_runs, between)
    _report(ended + ended_studies, troubles + study_troubles, alone=len(targets) == 1)
    if not (ended or ended_studies):
        say(_not_running(targets, alone))
        return 0
    for folder in dict.fromkeys(path.parent for path in targets):
        if left := sum(not (folder / run.file).exists() for run in _planned(folder)):
            runs = counted(left, "run of its study is", "runs of its study are")
            say(f"{runs} not started: {to_paste('resume', folder)} goes on")
    return 0


def _stop_all() -> int:
    ended, troubles = _apply(stop, _sessions_of(paths.run_folders()))
    elsewhere = [error for error in troubles if isinstance(error, run_folder.RecordedElsewhere)]
    between = [folder for folder in session_lookup.studies_going_on() if len(_planned(folder)) > 1]
    ended_studies, study_troubles = _apply(_stop_between_runs, between)
    ended += [*ended_studies, *_remove_leftovers()]
    in_clusters, cluster_troubles = _in_clusters()
    ended += in_clusters
    for error in elsewhere:
        say(error.message)
    local = [error for error in troubles if error not in elsewhere]
    _report(ended, local + study_troubles + cluster_troubles, alone=False)
    if not ended:
        say("nothing was running")
    return 0


def _in_clusters() -> tuple[list[str], list[GpuwatchError]]:
    """End what was sent to clusters and nobody follows, where anything was sent to one."""
    from gpuwatch.places.kubernetes import own_jobs

    if not own_jobs.namespaces():
        return [], []
    from gpuwatch.cli.place.stopping import end_job, jobs_left

    jobs, unreachable = _apply(jobs_left, own_jobs.namespaces())
    ended, troubles = _apply(end_job, list(chain.from_iterable(jobs)))
    return ended, unreachable + troubles


def _report(ended: Sequence[str], troubles: Sequence[GpuwatchError], *, alone: bool) -> None:
    """Print what was stopped, and raise the last error if there is one."""
    for line in ended:
        say(line)
    for trouble in troubles[:-1]:
        say(f"error: {trouble}")
    if troubles and alone:
        raise troubles[-1]
    if troubles:
        raise GpuwatchError(troubles[-1].message, troubles[-1].hint)


def _apply(
    function: Callable[[Target], Result | None], targets: Sequence[Target]
) -> tuple[list[Result], list[GpuwatchError]]:
    """Apply ``function`` to all targets despite errors; returns what it returned, and the
    errors."""
    done: list[Result] = []
    troubles: list[GpuwatchError] = []
    for target in targets:
        try:
            result = function(target)
        except GpuwatchError as error:
            troubles.append(error)
        else:
            done += [] if result is None else [result]
    return done, troubles


def _named(text: str) -> list[Path]:
    """The sessions that ``text`` names; runs whose file is gone are found by its path or their
    id."""
    try:
        return session_lookup.sessions(text)
    except GpuwatchError:
        by_id = [folder for folder in paths.run_folders() if text and folder.name.startswith(text)]
        of_study = folders_of(Path(text)) or folders_of(paths.data_home() / text)
        if not (gone := _sessions_of(by_id or of_study)):
            raise
        return gone


def _sessions_of(folders: Iterable[Path]) -> list[Path]:
    """The session files of runs, by their folders; deleted files included."""

    sessions = map(paths.session_of, folders)
    return list(dict.fromkeys(path for path in sessions if path is not None))


def _at_a_place(text: str) -> Placed | None:
    """What this user sent to a place, of which ``text`` names the study or one of its sessions.

    Raises:
        UsageError: it runs at a place, but was not sent there from here.
    """
    if (placed := placements.named(str(session_lookup.path_of(text)))) is not None:
        return placed
    sessions: list[Path] = []
    with contextlib.suppress(GpuwatchError):
        sessions = session_lookup.sessions(text)
    folders = dict.fromkeys(path.parent for path in sessions)
    return next((placed for folder in folders if (placed := sent(folder)) is not None), None)


def _without_session(text: str) -> Path | None:
    """The folder of a running study without a session: a machine recording whose file is gone."""
    for folder in (Path(text), paths.data_home() / text) if text.strip() else ():
        if os.path.isdir(folder) and not sessions_in(folder) and not folders_of(folder):
            return folder if holder(folder) else None
    return None


def _planned(folder: Path) -> Sequence[PlannedRun]:
    plan = read(folder)
    return () if plan is None else plan.runs


def _stop_between_runs(folder: Path) -> str | None:
    """End a study whose last run is over and whose next one has not begun."""
    recorder = holder(folder)
    return None if recorder is None else _terminate(recorder, folder)


def _not_running(paths: list[Path], alone: Path | None) -> str:
    """The message that the run is over, and how to stop its study if that goes on."""
    folder = alone or paths[0].parent
    if len(paths) == 1 and recorder_alive(folder):
        return f"{paths[0]} is over; its study is still running: {to_paste('stop', folder)}"
    return f"{paths[0] if len(paths) == 1 else folder} is not running"


def _remove_leftovers() -> list[str]:
    """Remove leftovers of dead runs from the container engines; returns a line for each."""
    run_folder.sweep()
    lines = []
    for kind in kinds():
        with contextlib.suppress(GpuwatchError):
            runner = load(kind)
            if isinstance(runner, Sweeper):
                lines += runner.sweep()
    return lines


def stop(path: Path) -> str | None:
    """Stop the run of a session and its study; returns what was done, ``None`` if it was over.

    Trusts only this user's own run folders, not the session. Stops the run through its recorder, or
    directly if the recorder died.
    """
    folders = folders_of(path)
    for folder in folders:
        run_folder.check_is_here(folder, path)
    try:
        meta = read_meta(path)
    except GpuwatchError as error:
        if not folders:
            raise
        begun = any(handle_of(folder) for folder in folders)
        done = [_stop_unread(folder, path) for folder in folders]
        if any(done) and not begun:
            return f"stopped the run of {path} before it began"
        return f"{'stopped' if any(done) else 'closed'} the run of {path}: {error.message}"
    own = str(mapping(meta.get("session")).get("id"))
    replaced = [_stop_unread(folder, path) for folder in folders if folder.name != own]
    if any(replaced):
        return f"stopped the run that was recorded to {path} before that file was replaced"
    of_run = next((folder for folder in folders if folder.name == own), None)
    return _stop_machine(path, meta) if of_run is None else _stop_run(of_run, path, meta)


def _stop_unread(folder: Path, path: Path) -> bool:
    """Stop the run of a folder whose session is unreadable; returns whether anything still ran."""
    recorded = _stop_recorder(folder, path)
    handle = handle_of(folder)
    if folder.is_dir() and handle:
        return _end(handle, path) or recorded
    return recorded


def _stop_run(folder: Path, path: Path, meta: Mapping[str, JSON]) -> str | None:
    """Stop the run of a folder whose session can be read."""
    from gpuwatch.recorder.observer import Observer
    from gpuwatch.recorder.recover import take_over

    recorded = _stop_recorder(folder, path)
    handle = handle_of(folder)
    if recorded:
        if folder.is_dir() and handle:  # kept, as its end was not seen
            _end(handle, path)
        return f"stopped {path}"
    if not handle:
        return None
    if "result" in meta:
        return f"stopped {path}" if _end(handle, path) else None
    take_over(path, Observer(say), stopping=run_folder.STOP_COMMAND)
    if folder.is_dir():  # kept, as its end was not seen
        _end(handle, path)
    stopped = mapping(read_meta(path).get("result")).get("stopped")
    return f"stopped {path}" if stopped else f"closed {path}: its run had ended"


def _stop_recorder(folder: Path, path: Path) -> bool:
    """Stop the run of a folder through its recorder; ``False`` if the recorder is not alive."""
    recorder = run_folder.recorder_of(folder)
    if recorder is None or not recorder.alive():
        return False
    run_folder.note_stop(folder)
    _terminate(recorder, path)
    return True


def _stop_machine(path: Path, meta: Mapping[str, JSON]) -> str | None:
    """Stop a recording of the machine; ``None`` if it is over.

    It has no run folder: the process comes from the lock on its study and the open session file.
    """
    if "result" in meta or "closed" in meta:
        return None
    recorder = holder(path.parent, path)
    if recorder is not None:
        return _terminate(recorder, path)
    named = process_id(meta.get("recorder"))
    if named is not None and named.alive() is None:
        raise run_folder.RecordedElsewhere(path, named)
    if status(meta, path).live or goes_on_alone(meta):
        raise run_folder.NotYours(path)
    return None


def _end(handle: dict[str, JSON], path: Path) -> bool:
    """Stop an abandoned run's processes and clean up; returns whether any were running."""
    run_ = load(str(handle["kind"])).attach(handle, None)
    running = bool(run_.pids())
    deadline = time.monotonic() + _GRACE
    if running:
        run_.stop()
    while run_.pids():
        if time.monotonic() > deadline:
            run_.stop()
            _wait(lambda: not run_.pids(), path)
        time.sleep(0.05)
    run_.forget()
    return running


def _terminate(recorder: ProcessId, what: Path) -> str:
    """End a recorder, and wait for it; returns what was done."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(recorder.pid, signal.SIGTERM)
    _wait(lambda: recorder.alive() is not True, what)
    return f"stopped {what}"


def _wait(over: Callable[[], bool], path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not over():
        if time.monotonic() > deadline:
            raise GpuwatchError(f"{path} did not stop", "look at its processes: ps -ejH")
        time.sleep(0.05)
