"""The home screen's recorder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuwatch.session.study import study_folder
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from tests.conftest import Cli
from tests.faults.aftermath import running
from tests.terminal import Pty
from tests.waiting import until


def test_a_recorder_that_cannot_be_started_leaves_no_folder(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(OSError, match="nowhere"):
        MachineRecorder(1.0, ("/nowhere/gpuwatch",))
    assert list(tmp_path.iterdir()) == []


def test_a_command_line_that_is_refused_leaves_nothing(cli: Cli, tmp_path: Path) -> None:
    runtime = tmp_path / "runtime"
    runtime.mkdir()
    terminal = Pty(cli.argv("--bogus"), (80, 24), {**cli.env, "XDG_RUNTIME_DIR": str(runtime)})
    try:
        assert terminal.end() == 2
        assert "gpuwatch: error: " in terminal.text()
    finally:
        terminal.close()
    until(lambda: not running(cli))
    assert list(runtime.iterdir()) == []


def test_what_was_killed_with_its_screen_is_removed_by_the_next_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder(name: str) -> Path:
        made = tmp_path / f"gpuwatch-now-{name}" / "machine"
        made.mkdir(parents=True)
        os.utime(made.parent, (0, 0))
        return made

    folder("killed")
    (tmp_path / "gpuwatch-now-new").mkdir()
    link = tmp_path / "gpuwatch-now-link"
    link.symlink_to(cli.home)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    with study_folder.held(folder("records")):
        recorder = MachineRecorder(1.0)
        try:
            own = until(recorder.session).parents[1]
            kept = {own.name, "gpuwatch-now-new", "gpuwatch-now-link", "gpuwatch-now-records"}
            assert {each.name for each in tmp_path.glob("gpuwatch-now-*")} == kept
        finally:
            recorder.close()
