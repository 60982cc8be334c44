"""A recorder whose writes fail, stop half-way, or whose clocks jump, as the test says."""

from __future__ import annotations

import hashlib
import mmap
import os
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

from tests.conftest import Cli

_SOURCE = Path(__file__).parent / "shim" / "faults.c"
_REALTIME, _BOOTTIME, _ERROR, _STOP_AFTER, _MONOTONIC = range(5)


class Preload:
    """What programs that ``cli`` starts from now on get from the C library."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        switches = folder / "switches"
        switches.write_bytes(struct.pack("=5q", 0, 0, 0, -1, 0))
        with switches.open("r+b") as file:
            self._memory = mmap.mmap(file.fileno(), 0)
        cli.variables |= {"LD_PRELOAD": str(_built()), "GPUWATCH_FAULTS": str(switches)}

    def _set(self, which: int, value: int) -> None:
        struct.pack_into("=q", self._memory, 8 * which, value)

    def fail(self, number: int = 0) -> None:
        """Every write to a file of a session fails with this error; 0: none does."""
        self._set(_ERROR, number)

    def stop_after(self, writes: int) -> None:
        """The writer stops (SIGSTOP) before it changes a file of a session for the next time
        after ``writes`` more; negative: never."""
        self._set(_STOP_AFTER, writes)

    def step(self, seconds: float) -> None:
        """The wall clock is set so far forwards."""
        self._set(_REALTIME, int(seconds * 1e9))

    def suspend(self, seconds: float) -> None:
        """The machine slept so long: all clocks but ``CLOCK_MONOTONIC`` went on."""
        self._set(_REALTIME, int(seconds * 1e9))
        self._set(_BOOTTIME, int(seconds * 1e9))


def _built() -> Path:
    """The library, compiled once per version of its source and machine."""
    version = hashlib.sha256(_SOURCE.read_bytes()).hexdigest()[:16]
    built = Path(tempfile.gettempdir()) / f"gpuwatch-test-{os.geteuid()}-{version}" / "faults.so"
    if not built.exists():
        compiler = shutil.which("cc") or shutil.which("gcc")
        assert compiler is not None, "a C compiler is needed"
        built.parent.mkdir(mode=0o700, exist_ok=True)
        partial = built.with_name(f"partial-{os.getpid()}.so")
        flags = ["-shared", "-fPIC", "-O2", "-Wall", "-Wextra"]
        subprocess.run([compiler, *flags, "-o", partial, _SOURCE, "-ldl"], check=True)
        partial.replace(built)
    return built
