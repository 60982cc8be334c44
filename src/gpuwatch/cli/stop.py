"""End a run: SIGTERM to its whole process tree, SIGKILL after ten seconds.

SESSION as for `gpuwatch show`; --all ends every run of yours on this machine.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from gpuwatch.cli import find
from gpuwatch.cli.record import say
from gpuwatch.errors import GpuwatchError, UsageError

_GRACE, _PATIENCE = 12.0, 20.0
"""Seconds: a workload without recorder or shim is killed after the first; all is given up after
the second."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="?", metavar="SESSION")
    parser.add_argument("--all", action="store_true", help="every run that is going on")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if arguments.all == (arguments.session is not None):
        raise UsageError("name one session, or --all", "see `gpuwatch sessions`")
    targets = find.live_sessions() if arguments.all else [find.session(arguments.session)]
    ended = [f"stopped {path}" for path in targets if stop(path)]
    if arguments.all:
        ended += _swept()
    for line in ended:
        say(line)
    if not ended:
        say("nothing was running" if arguments.all else f"{targets[0]} is not running")
    return 0


def _swept() -> list[str]:
    """End what engines still hold of runs that no session knows; a line for each."""
    from gpuwatch.runners import kinds, load
    from gpuwatch.runners.base import Sweeper

    lines = []
    for kind in kinds():
        with contextlib.suppress(GpuwatchError):
            runner = load(kind)
            if isinstance(runner, Sweeper):
                lines += runner.sweep()
    return lines


def stop(path: Path) -> bool:
    """End the run of a session through its recorder, or without one; whether it was running."""
    from gpuwatch.runners import load
    from gpuwatch.session.reader import SessionReader
    from gpuwatch.session.status import process_id, status

    with SessionReader(path) as reader:
        meta = reader.meta()
    recorder = process_id(meta.get("recorder"))
    if status(meta, path).live and recorder is not None and recorder.alive():
        with contextlib.suppress(ProcessLookupError):
            os.kill(recorder.pid, signal.SIGTERM)
        _wait(lambda: recorder.alive() is not True, path)
        return True
    handle = meta.get("handle")
    if not handle:
        return False
    run_ = load(str(handle["kind"])).attach(handle, None)
    if not run_.pids():
        if "result" in meta:
            run_.forget()
        return False
    run_.stop()
    deadline = time.monotonic() + _GRACE
    while run_.pids():
        if time.monotonic() > deadline:
            run_.stop()
            _wait(lambda: not run_.pids(), path)
        time.sleep(0.05)
    if "result" in meta:
        run_.forget()
    return True


def _wait(over: Callable[[], bool], path: Path) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not over():
        if time.monotonic() > deadline:
            raise GpuwatchError(f"{path} does not end", "look at its processes: ps -ejH")
        time.sleep(0.05)
