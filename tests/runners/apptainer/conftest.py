"""A small SIF, built once."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.runners.apptainer import spython_client


@pytest.fixture(scope="session")
def small_sif(tmp_path_factory: pytest.TempPathFactory, small_root: Path) -> Path:
    """``small_root`` as one file; not compressed, which would take ten seconds."""
    target = tmp_path_factory.mktemp("small_sif") / "small.sif"
    options = ["--mksquashfs-args", "-noI -noD -noF -noX"]
    spython_client.build(small_root, target, lambda line: None, options)
    return target
