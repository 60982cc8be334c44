"""Packages of somebody else's, as importlib finds them once they are installed."""

from __future__ import annotations

from pathlib import Path


def installed(folder: Path, kind: str, value: str, module: str | None = None) -> Path:
    """Put a package into ``folder`` whose entry point names ``value`` as the runner of ``kind``.

    ``module`` is the text of the module that ``value`` names; ``None``: there is none.
    """
    name = value.partition(":")[0]
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[gpuwatch.runners]\n{kind} = {value}\n")
    if module is not None:
        (folder / f"{name}.py").write_text(module)
    return folder
