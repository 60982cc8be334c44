"""The hook as one file, ``hook.pyz``; the same source and the same adapters give the same bytes."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.hook import adapters
from gpuwatch.workloads import archive

_HERE = Path(__file__).resolve().parent
_WORKLOADS = Path(archive.__file__).resolve().parent
_PROFILER = ("__init__.py", "torch_profiler.py", "traces.py")


def build(target: Path) -> str:
    """Write the archive to ``target``, read-only (0444), and return its SHA-256 in hex.

    Raises:
        OSError: the source cannot be read or the target cannot be written.
    """
    files = {"sitecustomize.py": (_HERE / "sitecustomize.py").read_bytes()}
    files |= archive.modules(_HERE / "gpuwatch_hook", "gpuwatch_hook")
    files |= archive.modules(_WORKLOADS / "flop", "gpuwatch_hook/counter")
    profiler = _WORKLOADS / "profiling"
    files |= {
        f"gpuwatch_hook/profiler/{name}": (profiler / name).read_bytes() for name in _PROFILER
    }
    files |= adapters.files()
    return archive.write(target, files)
