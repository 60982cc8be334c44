"""Fetching an image that is broken off: by a program in the place of the engine that never ends."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from gpuwatch.core.processes import start_time
from gpuwatch.runners.apptainer import spython_client


@pytest.mark.parametrize("listed", [True, False], ids=["children listed", "children not listed"])
def test_a_fetch_that_is_broken_off_ends_its_engine_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, listed: bool
) -> None:
    program = tmp_path / "apptainer"
    program.write_text("#!/bin/sh\necho $$\nexec sleep 600\n")
    program.chmod(0o755)
    monkeypatch.setattr(spython_client, "program", lambda: str(program))
    if not listed:
        monkeypatch.setattr(spython_client, "_CHILDREN", tmp_path / "of a kernel without")
    engines: list[int] = []

    def broken_off(line: str) -> None:
        engines.append(int(line))
        raise KeyboardInterrupt

    with subprocess.Popen(["sleep", "600"]) as other:
        try:
            with pytest.raises(KeyboardInterrupt):
                spython_client.pull("docker://x", tmp_path / "x.sif", broken_off)
            assert start_time(other.pid) is not None
        finally:
            other.kill()
    (engine,) = engines
    assert start_time(engine) is None
