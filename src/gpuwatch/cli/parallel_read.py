"""Half of what long sessions hold is read by a process beside this one, on another core."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pickle
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from gpuwatch.core.errors import GpuwatchError

if TYPE_CHECKING:
    from gpuwatch.analysis.study.read import Read, Reading

_LONG = 50 << 20
"""Bytes of a session from which on a process more pays."""
_PR_SET_PDEATHSIG = 1

Found = TypeVar("Found")


def pays(path: Path) -> bool:
    """Whether reading ``path`` takes long enough for a process more, and there is a core for it."""
    return (os.cpu_count() or 1) > 1 and _size(path) >= _LONG


@contextmanager
def beside(work: Callable[[], Found]) -> Iterator[Callable[[], Found | None]]:
    """Do ``work`` in a process beside this one, which ends with the block and with this process.

    What is given waits for what it found, which can be pickled; ``None`` where it died or failed.
    """
    source, sink = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _do(work, source, sink, parent)
    os.close(sink)
    try:
        yield partial(_received, source)
    finally:
        with contextlib.suppress(OSError):
            os.close(source)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def read_beside(paths: Sequence[Path], reading: Reading) -> Iterator[Reading]:
    """``reading``, which gives for every other long one of ``paths`` what the other process read.

    What that one could not read is read here, where its error belongs.
    """
    theirs = [path for path in paths if pays(path)][1::2]
    if not theirs:
        yield reading
        return
    with beside(partial(_read_all, theirs, reading)) as found:
        known: dict[Path, Read] | None = None

        def read(path: Path) -> Read:
            nonlocal known
            if path not in theirs:
                return reading(path)
            if known is None:
                known = found() or {}
            return known[path] if path in known else reading(path)

        yield read


def _read_all(paths: Sequence[Path], reading: Reading) -> dict[Path, Read]:
    found = {}
    for path in paths:
        with contextlib.suppress(GpuwatchError):
            found[path] = reading(path)
    return found


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _do(work: Callable[[], object], source: int, sink: int, parent: int) -> None:
    """In the other process: it does nothing else, and never returns."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.close(source)
        found = work()
        with os.fdopen(sink, "wb") as out:
            pickle.dump(found, out, pickle.HIGHEST_PROTOCOL)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _received(source: int) -> Found | None:
    """What the other process found."""
    with os.fdopen(os.dup(source), "rb") as file:
        data = file.read()
    try:
        found: Found = pickle.loads(data)  # noqa: S301 (of our own process, by a pipe of ours)
    except (EOFError, pickle.UnpicklingError):
        return None
    return found
