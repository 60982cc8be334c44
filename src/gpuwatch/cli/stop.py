"""End a run: SIGTERM to its whole process tree, SIGKILL after ten seconds.

With a run its study ends. --all ends every run of yours on this machine, and every study that is
between two runs.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from gpuwatch.cli import find
from gpuwatch.cli.say import say
from gpuwatch.errors import GpuwatchError, UsageError
from gpuwatch.models import JSON, mapping
from gpuwatch.text import to_paste

_GRACE, _PATIENCE = 12.0, 20.0
"""Seconds: a workload without recorder or shim is killed after the first; all is given up after
the second."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument("--all", action="store_true", help="every run that is going on")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if arguments.all == (arguments.session is not None):
        raise UsageError("name one session, or --all", "see `gpuwatch sessions`")
    alone = None if arguments.all else _without_session(arguments.session)
    targets = _all() if arguments.all else [] if alone else _named(arguments.session)
    ended, troubles = _each(stop, targets)
    between = [alone] if alone else []
    over = not (ended or troubles or arguments.all)
    if over and targets and os.path.isdir(arguments.session):
        between = _folders(targets)
    if arguments.all:
        between = [folder for folder in find.studies_going_on() if _of_several_runs(folder)]
    also, more = _each(_stop_between_runs, between)
    ended += also
    troubles += more
    if arguments.all:
        ended += _swept()
    for line in ended:
        say(line)
    for trouble in troubles[:-1]:
        say(f"error: {trouble}")
    if troubles and len(targets) == 1:
        raise troubles[-1]
    if troubles:
        raise GpuwatchError(troubles[-1].message, troubles[-1].mend)
    if not ended:
        say("nothing was running" if arguments.all else _not_running(targets, alone))
    return 0


def _each(
    do: Callable[[Path], str | None], targets: Sequence[Path]
) -> tuple[list[str], list[GpuwatchError]]:
    """What was done of each, and what could not be: one does not hold up the rest."""
    done, troubles = [], []
    for target in targets:
        try:
            line = do(target)
        except GpuwatchError as error:
            troubles.append(error)
        else:
            done += [line] if line else []
    return done, troubles


def _all() -> list[Path]:
    """The session files of every run that may go on, also of those that are gone."""
    from gpuwatch import paths

    found = [paths.session_of(folder) for folder in paths.run_folders()]
    return list(dict.fromkeys(path for path in found if path is not None))


def _named(text: str) -> list[Path]:
    """The sessions that ``text`` names; of runs whose file is gone too, by its path or their id."""
    from gpuwatch import paths
    from gpuwatch.recorder.run_folder import folders_of

    try:
        return find.sessions(text)
    except GpuwatchError:
        by_id = [folder for folder in paths.run_folders() if text and folder.name.startswith(text)]
        of_study = folders_of(Path(text)) or folders_of(paths.data_home() / text)
        found = [paths.session_of(folder) for folder in by_id or of_study]
        gone = list(dict.fromkeys(path for path in found if path is not None))
        if not gone:
            raise
        return gone


def _without_session(text: str) -> Path | None:
    """The folder of a study that goes on and has no session: of the machine, and deleted."""
    from gpuwatch import paths
    from gpuwatch.recorder.run_folder import folders_of
    from gpuwatch.session.study import holder, sessions_in

    for folder in (Path(text), paths.data_home() / text) if text.strip() else ():
        if os.path.isdir(folder) and not sessions_in(folder) and not folders_of(folder):
            return folder if holder(folder) else None
    return None


def _folders(paths: list[Path]) -> list[Path]:
    return list(dict.fromkeys(path.parent for path in paths))


def _of_several_runs(folder: Path) -> bool:
    from gpuwatch.session.plan import read

    plan = read(folder)
    return plan is not None and len(plan.runs) > 1


def _stop_between_runs(folder: Path) -> str | None:
    """End a study whose last run is over and whose next one has not begun."""
    from gpuwatch.session.progress import recorder_of
    from gpuwatch.session.study import holder

    recorder = recorder_of(folder) or holder(folder)
    if recorder is None:
        return None
    with contextlib.suppress(ProcessLookupError):
        os.kill(recorder.pid, signal.SIGTERM)
    _wait(lambda: recorder.alive() is not True, folder)
    return f"stopped {folder}"


def _not_running(paths: list[Path], alone: Path | None) -> str:
    """That it is over, and what else of its study goes on."""
    from gpuwatch.session.progress import recorder_alive

    folder = alone or paths[0].parent
    if len(paths) == 1 and recorder_alive(folder):
        return f"{paths[0]} is over; its study goes on: {to_paste('stop', folder)}"
    return f"{paths[0] if len(paths) == 1 else folder} is not running"


def _swept() -> list[str]:
    """End what engines still hold of runs that no session knows; a line for each."""
    from gpuwatch.recorder import run_folder
    from gpuwatch.runners import kinds, load
    from gpuwatch.runners.base import Sweeper

    run_folder.sweep()
    lines = []
    for kind in kinds():
        with contextlib.suppress(GpuwatchError):
            runner = load(kind)
            if isinstance(runner, Sweeper):
                lines += runner.sweep()
    return lines


def stop(path: Path) -> str | None:
    """End the run of a session, and with it its study; what was done, ``None``: it was over.

    Through its recorder, or as its recorder where that died; through the run's own folder where the
    file is gone, damaged, or another one by now.
    """
    from gpuwatch.recorder.run_folder import folders_of, handle_of
    from gpuwatch.session.reader import SessionReader

    folders = folders_of(path)
    try:
        with SessionReader(path) as reader:
            meta = reader.meta()
    except GpuwatchError as error:
        if not folders:
            raise
        begun = any(handle_of(folder) for folder in folders)
        done = [_stop_unread(folder, path) for folder in folders]
        if any(done) and not begun:
            return f"stopped the run of {path} before it began"
        return f"{'stopped' if any(done) else 'closed'} the run of {path}: {error.message}"
    own = str(mapping(meta.get("session")).get("id"))
    strangers = [_stop_unread(folder, path) for folder in folders if folder.name != own]
    if any(strangers):
        return f"stopped the run that was recorded to {path} before that file was replaced"
    return _stop_read(path, meta)


def _stop_unread(folder: Path, path: Path) -> bool:
    """End the run of a folder without its session, and forget it; whether anything still ran."""
    from gpuwatch.recorder.run_folder import handle_of, recorder_of

    recorder = recorder_of(folder)
    recorded = recorder is not None and recorder.alive() is True
    if recorder is not None and recorded:
        with contextlib.suppress(ProcessLookupError):
            os.kill(recorder.pid, signal.SIGTERM)
        _wait(lambda: recorder.alive() is not True, path)
    handle = handle_of(folder)
    if folder.is_dir() and handle:
        return _end(handle, path) or recorded
    return recorded


def _stop_read(path: Path, meta: Mapping[str, JSON]) -> str | None:
    """End the run of a session by what stands in it."""
    from gpuwatch.recorder.run_folder import STOP_COMMAND, folders_of, note_stop
    from gpuwatch.recorder.takeup import take_up
    from gpuwatch.session.reader import SessionReader
    from gpuwatch.session.status import process_id, status

    recorder = process_id(meta.get("recorder"))
    if status(meta, path).live and recorder is not None and recorder.alive():
        for folder in folders_of(path):
            note_stop(folder)
        with contextlib.suppress(ProcessLookupError):
            os.kill(recorder.pid, signal.SIGTERM)
        _wait(lambda: recorder.alive() is not True, path)
        return f"stopped {path}"
    handle = mapping(meta.get("handle"))
    if not handle or not Path(str(handle.get("folder"))).is_dir():
        return None
    if "result" in meta:
        return f"stopped {path}" if _end(dict(handle), path) else None
    take_up(path, say=say, stopping=STOP_COMMAND)
    with SessionReader(path) as reader:
        stopped = mapping(reader.meta().get("result")).get("stopped")
    return f"stopped {path}" if stopped else f"closed {path}: its run had ended"


def _end(handle: dict[str, JSON], path: Path) -> bool:
    """End what still runs of a run that was given up, and forget it; whether anything did."""
    from gpuwatch.runners import load

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


def _wait(over: Callable[[], bool], path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not over():
        if time.monotonic() > deadline:
            raise GpuwatchError(f"{path} does not end", "look at its processes: ps -ejH")
        time.sleep(0.05)
