"""Takes over a run whose recorder died."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path

from gpuwatch.core import paths
from gpuwatch.core.errors import ExitCode, NotAvailable, UsageError
from gpuwatch.core.models import GPUS_OFF, JSON, Problem, mapping
from gpuwatch.core.processes import boot_id
from gpuwatch.core.text import to_paste
from gpuwatch.recorder import run_folder
from gpuwatch.recorder.control import Stop, conclude, run_to_end, stopping_signals, summarise
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.recording import resume
from gpuwatch.recorder.sources import Sources
from gpuwatch.runners import load
from gpuwatch.session.reading.reader import SessionReader, read_meta
from gpuwatch.session.reading.status import goes_on_alone, process_id, status
from gpuwatch.session.study import study_folder


def take_over(path: Path, observer: Observer, *, stopping: str | None = None) -> ExitCode:
    """Become the recorder of a run whose own recorder died, until the run ends.

    A hang-up of the terminal has no effect; SIGINT and SIGTERM stop the run. ``stopping``: the
    reason to stop the run at once, if it still goes on.

    Raises:
        UsageError: the session needs no recorder.
        StorageError: the file cannot be written, or the run has another recorder.
    """
    code, stop = record_rest(path, observer, stopping=stopping, ignore_hang_up=True)
    with stopping_signals(stop):
        reason = "the recorder of the study died before its turn"
        hint = to_paste("resume", path.parent.name)
        study_folder.note_rest(path.parent, Problem(study_folder.STUDY_ENDED, reason, hint))
        summarise(path.parent, observer.message)
    return ExitCode.INTERRUPTED if stop.number == signal.SIGINT else code


def record_rest(
    path: Path, observer: Observer, *, stopping: str | None = None, ignore_hang_up: bool = False
) -> tuple[ExitCode, Stop]:
    """As :func:`take_over`, but for this run alone; also returns the stop request.

    ``ignore_hang_up``: from the moment it is certain that there is a run to take over.
    """
    with SessionReader(path) as reader:
        known = reader.meta()
        state = status(known, path)
        uuids = [device.uuid for device in reader.devices() if device.kind == "gpu" and device.uuid]
    if "result" in known:
        raise UsageError(f"{path} needs no recorder: {state.text}", to_paste("show", path))
    folder = run_folder.folder_of(path, str(mapping(known.get("session")).get("id")))
    handle = {} if folder is None else run_folder.handle_of(folder)
    if folder is None or not handle:
        raise _nothing_left(path, known)
    run_folder.check_is_here(folder, path)
    if mapping(known.get("clock")).get("boot_id") != boot_id():
        raise UsageError(f"{path} is from before this machine's last restart", "its run is gone")
    if state.live:
        raise UsageError(f"{path} needs no recorder: {state.text}", to_paste("attach", path))
    # So the place of a study sees that it has a recorder again. Who stops a run starts no other.
    alone = ignore_hang_up and stopping is None
    with study_folder.held(path.parent) if alone else nullcontext(), run_folder.held(folder):
        # Meanwhile another recorder may have completed it.
        known = read_meta(path)
        if "result" in known:
            text = status(known, path).text
            raise UsageError(f"{path} needs no recorder: {text}", to_paste("show", path))
        settings = run_folder.settings_of(folder)
        runner = load(str(handle["kind"]))
        run = runner.attach(handle, mapping(known.get("cursor")).get("at"))
        if ignore_hang_up:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
        open_sources = partial(
            Sources.open, workload=True, contained=runner.contained, interval=settings.interval
        )
        try:
            watched = GPUS_OFF if settings.gpus_off else uuids or None
            sources = open_sources(watched, dcgm=settings.dcgm)
        except NotAvailable as error:  # record the devices that are still there
            observer.message(f"{error.message}; continuing without it")
            try:
                sources = open_sources(uuids or None)
            except NotAvailable:
                sources = open_sources(None)
        if sources.notice is not None:
            observer.message(sources.notice)
        stop = Stop()
        if stopping is not None and run.pids():
            stop.ask(stopping)
        try:
            recording = resume(
                path,
                known,
                sources,
                run=run,
                interval=settings.interval,
                on_trouble=observer.message,
            )
        except BaseException:
            sources.close()
            raise
        if stop.why is None:
            observer.message(f"took over {path}")
        observer.session_created(path)
        with stopping_signals(stop):
            return conclude(run_to_end(recording, stop), observer.message), stop


def _nothing_left(path: Path, known: Mapping[str, JSON]) -> UsageError:
    """Why a run cannot be taken over if this user has no folder of it."""
    recorder = process_id(known.get("recorder"))
    if recorder is not None and recorder.alive() is None:
        return run_folder.RecordedElsewhere(path, recorder)
    if status(known, path).live or goes_on_alone(known):
        return run_folder.NotYours(path)
    return UsageError(
        f"nothing is left of the run of {path}: it has no folder in {paths.runs_home()}",
        f"see what was recorded: {to_paste('show', path)}",
    )
