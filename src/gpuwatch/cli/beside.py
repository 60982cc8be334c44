"""Half of several long sessions are read by a process beside this one, on another core."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpuwatch.analysis.read import Read, Reading
from gpuwatch.errors import GpuwatchError

_LONG = 50 << 20
"""Bytes of a session from which on a process more pays."""
_PR_SET_PDEATHSIG = 1


@contextmanager
def read_beside(paths: Sequence[Path], reading: Reading) -> Iterator[Reading]:
    """``reading``, which gives for every other long one of ``paths`` what the other process read.

    What that one could not read is read here, where its error belongs. It ends with the block, and
    with this process.
    """
    theirs = [path for path in paths if _size(path) >= _LONG][1::2]
    if not theirs or (os.cpu_count() or 1) < 2:
        yield reading
        return
    source, sink = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _read_all(theirs, reading, source, sink, parent)
    os.close(sink)
    known: dict[Path, Read] | None = None

    def read(path: Path) -> Read:
        nonlocal known
        if path not in theirs:
            return reading(path)
        if known is None:
            known = _received(source)
        return known[path] if path in known else reading(path)

    try:
        yield read
    finally:
        with contextlib.suppress(OSError):
            os.close(source)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _read_all(paths: Sequence[Path], reading: Reading, source: int, sink: int, parent: int) -> None:
    """In the other process: it does nothing else, and never returns."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.close(source)
        found = {}
        for path in paths:
            with contextlib.suppress(GpuwatchError):
                found[path] = reading(path)
        with os.fdopen(sink, "wb") as out:
            pickle.dump(found, out, pickle.HIGHEST_PROTOCOL)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _received(source: int) -> dict[Path, Read]:
    """What the other process found; nothing where it died."""
    with os.fdopen(os.dup(source), "rb") as file:
        data = file.read()
    try:
        found = pickle.loads(data)  # noqa: S301 (of our own process, by a pipe that none else has)
    except (EOFError, pickle.UnpicklingError):
        return {}
    return dict(found)
