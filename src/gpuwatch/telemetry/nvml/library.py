"""Which ``libnvidia-ml.so.1`` the binding loads, where CUDA's stub is found first.

The CUDA toolkit has a library of that name to link against, in folders named ``stubs``. It answers
nothing, and prints a warning to standard output. The loader finds it before the driver's if such a
folder stands on ``LD_LIBRARY_PATH``.
"""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from gpuwatch.telemetry.nvml.errors import Unavailable

NAME = "libnvidia-ml.so.1"
_FOLDER = "stubs"
_LDCONFIG = "/sbin/ldconfig"


def pass_over_stub(variables: Mapping[str, str] = os.environ) -> str | Unavailable | None:
    """Load the driver's library if CUDA's stub would be found first.

    A library that is loaded already is what the binding gets by its name. Returns what to tell of
    it; ``Unavailable`` if there is only the stub; ``None`` if no stub is in the way.
    """
    folders = filter(None, variables.get("LD_LIBRARY_PATH", "").split(":"))
    found = [path for folder in folders if (path := Path(folder, NAME)).exists()]
    if not found or not _is_stub(found[0]):
        return None
    for path in (*found[1:], *_known_to_the_system()):
        if not _is_stub(path):
            with suppress(OSError):  # of another architecture
                ctypes.CDLL(str(path))
                return f"{found[0]} on LD_LIBRARY_PATH is CUDA's stub; {path} is used instead"
    return Unavailable(
        f"{found[0]}, which is found first, is CUDA's stub and not the driver's library, and no "
        f"other {NAME} was found",
        f"take {found[0].parent} out of LD_LIBRARY_PATH, and install the NVIDIA driver",
    )


def _is_stub(path: Path) -> bool:
    return _FOLDER in path.parent.parts or _FOLDER in path.resolve().parent.parts


def _known_to_the_system() -> list[Path]:
    """The places at which the loader's cache has the library."""
    try:
        listed = subprocess.run([_LDCONFIG, "-p"], capture_output=True, text=True, check=False)
    except OSError:
        return []
    return [Path(place) for place in re.findall(rf"{re.escape(NAME)} .*=> (\S+)", listed.stdout)]
