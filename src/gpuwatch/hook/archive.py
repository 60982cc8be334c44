"""The hook as one file, ``hook.pyz``; the same source and the same adapters give the same bytes."""

from __future__ import annotations

from pathlib import Path

from gpuwatch import __version__
from gpuwatch.hook import adapters
from gpuwatch.workloads import archive

_HERE = Path(__file__).resolve().parent
_ENTRY_POINTS = """[opentelemetry_pre_instrument]
gpuwatch = gpuwatch_hook.startup:wait_for_torch
"""
"""What ``opentelemetry-instrument`` calls, whose ``sitecustomize`` hides the hook's."""
_COUNTER = Path(archive.__file__).resolve().parent / "flop"


def build(target: Path) -> str:
    """Write the archive to ``target``, read-only (0444), and return its SHA-256 in hex.

    Raises:
        OSError: the source cannot be read or the target cannot be written.
    """
    files = {"sitecustomize.py": (_HERE / "sitecustomize.py").read_bytes()}
    files |= archive.modules(_HERE / "gpuwatch_hook", "gpuwatch_hook")
    files |= archive.modules(_COUNTER, "gpuwatch_hook/counter")
    files |= adapters.files()
    about = f"Metadata-Version: 2.1\nName: gpuwatch_hook\nVersion: {__version__}\n"
    info = f"gpuwatch_hook-{__version__}.dist-info"
    files[f"{info}/METADATA"] = about.encode()
    files[f"{info}/entry_points.txt"] = _ENTRY_POINTS.encode()
    return archive.write(target, files)
