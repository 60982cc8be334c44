from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from gpuwatch.recorder.sched_slice import short_slices


def _slice() -> int:
    """Of this thread, in nanoseconds."""
    lines = Path("/proc/thread-self/sched").read_text().splitlines()
    return next(int(line.split()[-1]) for line in lines if line.startswith("se.slice"))


@pytest.mark.skipif(
    not Path("/proc/self/sched").exists() or "se.slice" not in Path("/proc/self/sched").read_text(),
    reason="this kernel does not tell a thread's slice",
)
def test_only_the_threads_that_sample_have_short_slices() -> None:
    usual, switch = _slice(), sys.getswitchinterval()
    inside: list[int] = []
    with short_slices():
        inside.append(_slice())
        thread = threading.Thread(target=lambda: inside.append(_slice()))
        thread.start()
        thread.join()
    if inside[0] == usual:
        pytest.skip("this kernel gives no slices of a thread's own")
    assert inside == [inside[0]] * 2 and inside[0] < usual
    assert _slice() == usual and sys.getswitchinterval() == switch
    told = "print([l for l in open('/proc/self/sched') if l.startswith('se.slice')][0].split()[-1])"
    child = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)
    assert int(child.stdout) == usual, "what is launched afterwards has the usual ones"
