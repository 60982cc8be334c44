"""The stand-in driver with what nvtop needs besides, so that all read the same library."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests import fake_nvml

_HERE = Path(__file__).parent


def build(folder: Path) -> Path:
    """Compile the library into ``folder``; returns ``folder``, for ``LD_LIBRARY_PATH``."""
    sources = Path(fake_nvml.__file__).parent
    units = [*sorted(sources.glob("*.c")), _HERE / "nvtop.c"]
    target = folder / "libnvidia-ml.so.1"
    flags = ["-shared", "-fPIC", "-O1", f"-I{sources}"]
    # A real driver wakes who waits for an event; one that looks for it would cost gpuwatch alone.
    flags.append("-DEVENT_LOOK_NS=3000000000LL")
    subprocess.run(["cc", *flags, "-o", target, *units, "-lpthread"], check=True)
    return folder
