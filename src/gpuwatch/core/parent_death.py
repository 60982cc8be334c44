"""Starts programs that end with their parent, however it ends."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

_BECOME = """
import ctypes, os, signal, sys
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
ctypes.CDLL(None).prctl(1, int(sys.argv[2]))
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[3], sys.argv[3:])
"""
"""1 is PR_SET_PDEATHSIG. A ``preexec_fn`` does the same, but is not safe with threads."""


def ends_with_this(
    program: Sequence[str], number: signal.Signals = signal.SIGKILL
) -> tuple[str, ...]:
    """A command that replaces itself with ``program`` and gets the signal when its parent ends.

    ``program`` begins with an absolute path. The parent is the thread that starts the command.
    """
    return (sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), str(int(number)), *program)
