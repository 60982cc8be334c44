"""Runs a recorder in its own process session, where a terminal hang-up does not reach it."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import ExitCode, GpuwatchError

LOG = "recorder.log"


def detach(record: Callable[[Callable[[Path], None]], int]) -> tuple[ExitCode, str]:
    """Run ``record`` in the background and wait until it has its first session.

    ``record`` gets a function to call with the session's path. Returns ``DONE`` and the path; if
    the recorder ends before that, its exit code and the error that it could not print itself.
    Until the session exists it writes to this process's standard error. Call it before any thread
    starts.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    ready, tell = os.pipe()
    if os.fork() == 0:
        status = int(ExitCode.RUN_FAILED)
        try:
            os.close(ready)
            status = _child(record, tell)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    os.close(tell)
    with os.fdopen(ready, encoding="utf-8", errors="surrogateescape") as pipe:
        code, _, text = pipe.read().partition(" ")
    if not code:
        return ExitCode.RUN_FAILED, "the recorder ended before it could begin"
    return ExitCode(int(code)), text


def _child(record: Callable[[Callable[[Path], None]], int], tell: int) -> int:
    os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    reported = False

    def on_session(path: Path) -> None:
        nonlocal reported
        if reported:
            return
        reported = True
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        log = output.private_file(str(path.parent / LOG), flags)
        os.dup2(log, 2)
        os.close(log)
        os.write(tell, b"0 " + os.fsencode(path))
        os.close(tell)

    try:
        code = record(on_session)
    except GpuwatchError as error:
        code = error.exit_code
        print(f"gpuwatch: error: {error}", file=sys.stderr)
    sys.stderr.flush()
    if not reported:
        os.write(tell, f"{int(code) or 1} ".encode())
    return int(code)
