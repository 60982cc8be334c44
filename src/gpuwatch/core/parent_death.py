"""Programs that do not outlive the one that started them, however that ends."""

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
"""PR_SET_PDEATHSIG is 1. A ``preexec_fn`` would do the same but is not safe where threads run."""


def ends_with_this(
    program: Sequence[str], number: signal.Signals = signal.SIGKILL
) -> tuple[str, ...]:
    """The command that becomes ``program``, which the kernel sends the signal when this ends.

    ``program`` begins with an absolute path. "This" is the thread that starts the command.
    """
    return (sys.executable, "-I", "-S", "-c", _BECOME, str(os.getpid()), str(int(number)), *program)
