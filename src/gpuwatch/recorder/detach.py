"""A recorder in a session of its own, which no hang-up of the terminal reaches."""

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

    ``record`` is given a function to call with that session's path. Returns ``DONE`` and the path,
    or the exit code of a recorder that did not get so far and, where it could not say it itself,
    its error. Until there is a session it talks on this process's standard error. Must be called
    before any thread was started.
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
    told = False

    def on_session(path: Path) -> None:
        nonlocal told
        if told:
            return
        told = True
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
    if not told:
        os.write(tell, f"{int(code) or 1} ".encode())
    return int(code)
