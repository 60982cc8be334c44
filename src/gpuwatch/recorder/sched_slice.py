"""Short scheduler slices for sampling threads, so that they run on time beside a busy workload.

Linux 6.12 and later schedules a thread with short slices sooner, without giving it more CPU time
(sched(7), ``sched_setattr``: ``sched_runtime`` under ``SCHED_OTHER``). It needs no privilege. Older
kernels ignore it.
"""

from __future__ import annotations

import contextlib
import ctypes
import platform
import sys
from collections.abc import Iterator

_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275)}
"""Numbers of ``sched_setattr`` and ``sched_getattr``, which the C library does not wrap."""
_SHORT_NS = 100_000
_OTHER = 0
_SWITCH_S = 0.0005
"""Seconds for which a thread that holds the GIL keeps another waiting; a tenth of the default."""


class _Attributes(ctypes.Structure):
    """``struct sched_attr``, version 0."""

    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


@contextlib.contextmanager
def short_slices() -> Iterator[None]:
    """In the block, this thread and those that it starts ask for short slices.

    The GIL also changes hands sooner.
    """
    usual = sys.getswitchinterval()
    sys.setswitchinterval(_SWITCH_S)
    _ask_for(_SHORT_NS)
    try:
        yield
    finally:
        _ask_for(0)
        sys.setswitchinterval(usual)


def _ask_for(slice_ns: int) -> None:
    calls = _CALLS.get(platform.machine())
    if calls is None:
        return
    put, get = calls
    now = _Attributes()
    syscall = ctypes.CDLL(None).syscall
    if syscall(get, 0, ctypes.byref(now), ctypes.sizeof(now), 0) or now.policy != _OTHER:
        return
    now.runtime = slice_ns
    syscall(put, 0, ctypes.byref(now), 0)
