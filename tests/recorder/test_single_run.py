"""What is told of a run that could not be started."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from gpuwatch.cli import main
from gpuwatch.cli.commands.record import _Terminal
from gpuwatch.core.errors import StorageError
from gpuwatch.recorder import single_run
from gpuwatch.recorder.single_run import refused


def error(number: int, filename: Path | None = None) -> OSError:
    return OSError(number, os.strerror(number), *([] if filename is None else [str(filename)]))


def test_a_full_disk_is_told_of_the_folder_that_is_on_it(tmp_path: Path) -> None:
    told = refused(error(errno.ENOSPC), tmp_path / "run")
    assert isinstance(told, StorageError) and f"cannot write to {tmp_path}: No space" in str(told)
    assert "free some space" in str(told) and "XDG_STATE_HOME" in str(told)


def test_what_else_the_system_refuses_is_not_told_as_a_full_disk(tmp_path: Path) -> None:
    told = refused(error(errno.EMFILE, Path("/proc/stat")), tmp_path / "run")
    assert str(told) == (
        "cannot start the run: Too many open files: /proc/stat; allow more: ulimit -n 4096"
    )
    told = refused(error(errno.EAGAIN), None)
    assert not isinstance(told, StorageError) and "temporarily unavailable" in str(told)


def test_every_minute_it_is_told_how_far_the_run_is(
    tmp_path: Path,
    programs: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    enough = tmp_path / "enough"
    tell = _Terminal.reached

    def reached(self: _Terminal, text: str) -> None:
        tell(self, text)
        if "step" in text:
            enough.touch()

    monkeypatch.setattr(_Terminal, "reached", reached)
    monkeypatch.setattr(single_run, "_TELL_SECONDS", 1.0)
    monkeypatch.setenv("HOME", str(tmp_path))
    line = ':::GPUWATCH {"event": "step", "step": 6, "seconds": 0.1, "total_steps": 1500}'
    script = f"echo '{line}'; for n in $(seq 600); do test -e {enough} && exit; sleep 0.1; done"
    command = ("--", "sh", "-c", script)
    assert main(["--record", "--out", str(tmp_path), *command]) == 0
    assert re.search(r"gpuwatch: 0:\d\d, step 6 of 1,500\n", capsys.readouterr().err)
