"""Refuse to build from a copy that lost its links; everything else is in pyproject.toml."""

from pathlib import Path

from setuptools import setup

for room in ("tui", "runners", "workloads", "recipes"):
    link = Path(__file__).parent / "src" / "gpuwatch" / room
    if not link.is_dir():
        raise SystemExit(
            f"error: {link} is not a link to the folder {room}/: this copy of gpuwatch lost its "
            "symbolic links (a ZIP does that; so does git with core.symlinks=false); "
            "clone it with git instead, or: "
            f"rm -f src/gpuwatch/{room} && ln -s ../../{room} src/gpuwatch/{room}"
        )

setup()
