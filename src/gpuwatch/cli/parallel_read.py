"""Read long sessions in a second process, on another core."""

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
"""Session size in bytes from which a second process pays off."""
_PR_SET_PDEATHSIG = 1

Result = TypeVar("Result")


def is_worthwhile(path: Path) -> bool:
    """Whether ``path`` is large enough for a second process, and there is a core for it."""
    return (os.cpu_count() or 1) > 1 and _size(path) >= _LONG


@contextmanager
def in_child_process(work: Callable[[], Result]) -> Iterator[Callable[[], Result | None]]:
    """Run ``work`` in a child process, which ends with the block and with this process.

    Yields a function that waits for the result, which must be picklable; ``None`` if the child died
    or failed.
    """
    source, sink = os.pipe()
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _child_main(work, source, sink, parent)
    os.close(sink)
    try:
        yield partial(_received, source)
    finally:
        with contextlib.suppress(OSError):
            os.close(source)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


@contextmanager
def read_in_parallel(paths: Sequence[Path], reading: Reading) -> Iterator[Reading]:
    """Wrap ``reading``: every second long session of ``paths`` is read by a child process.

    A session that the child could not read is read here, so that its error is raised here.
    """
    child_paths = [path for path in paths if is_worthwhile(path)][1::2]
    if not child_paths:
        yield reading
        return
    with in_child_process(partial(_read_all, child_paths, reading)) as result:
        results: dict[Path, Read] | None = None

        def read(path: Path) -> Read:
            nonlocal results
            if path not in child_paths:
                return reading(path)
            if results is None:
                results = result() or {}
            return results[path] if path in results else reading(path)

        yield read


def _read_all(paths: Sequence[Path], reading: Reading) -> dict[Path, Read]:
    read = {}
    for path in paths:
        with contextlib.suppress(GpuwatchError):
            read[path] = reading(path)
    return read


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _child_main(work: Callable[[], object], source: int, sink: int, parent: int) -> None:
    """Main function of the child process: runs ``work``, writes its result, never returns."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
        if os.getppid() != parent:
            os._exit(1)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.close(source)
        result = work()
        with os.fdopen(sink, "wb") as out:
            pickle.dump(result, out, pickle.HIGHEST_PROTOCOL)
    except BaseException:
        os._exit(1)
    os._exit(0)


def _received(source: int) -> Result | None:
    """The child's result; ``None`` if it sent none."""
    with os.fdopen(os.dup(source), "rb") as file:
        data = file.read()
    try:
        result: Result = pickle.loads(data)  # noqa: S301 (from our own child, over our own pipe)
    except (EOFError, pickle.UnpicklingError):
        return None
    return result
