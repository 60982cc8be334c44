"""The home screen's recorder, which is started before the command line is understood."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from gpuwatch.cli.screen import machine_recorder
from gpuwatch.session.study import study_folder
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from tests.conftest import Cli
from tests.faults.aftermath import running
from tests.terminal import Pty
from tests.waiting import until


class Recorder:
    """In place of the real one: what was started, and what ended."""

    started: ClassVar[list[float]] = []
    ended: ClassVar[list[float]] = []

    def __init__(self, interval: float) -> None:
        self.interval = interval
        self.started.append(interval)

    def close(self) -> None:
        self.ended.append(self.interval)


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Recorder]]:
    monkeypatch.setattr(machine_recorder, "MachineRecorder", Recorder)
    monkeypatch.setattr(machine_recorder.terminal, "usable", lambda: True)
    Recorder.started, Recorder.ended = [], []
    yield Recorder
    assert machine_recorder._begun is None


@pytest.mark.parametrize(
    ("words", "interval"),
    [
        ([], 1.0),
        (["--interval", "2.5"], 2.5),
        (["--ascii", "--theme", "light"], 1.0),
        (["--interval", "0.01"], None),
        (["--interval", "often"], None),
        (["--interval"], None),
        (["--interval=2"], None),
        (["--inter", "2"], None),
        (["--interval", "2", "--ascii"], None),
        (["attach", "last"], None),
        (["--interval", "2", "replay", "last"], None),
    ],
)
def test_it_is_started_where_the_words_are_plain(
    recorder: type[Recorder], words: Sequence[str], interval: float | None
) -> None:
    with machine_recorder.Begun(words):
        assert recorder.started == ([] if interval is None else [interval])
    assert recorder.ended == recorder.started


@pytest.mark.parametrize("asked", [1.0, 2.0])
def test_it_is_taken_where_it_is_the_one_that_is_asked_for(
    recorder: type[Recorder], asked: float
) -> None:
    with machine_recorder.Begun([]):
        taken = machine_recorder.recorder(asked)
        assert taken.interval == asked
    assert recorder.started == ([1.0] if asked == 1.0 else [1.0, 2.0])
    assert recorder.ended == ([] if asked == 1.0 else [1.0]), "who took it ends it"


def test_without_one_that_was_started_there_is_one(recorder: type[Recorder]) -> None:
    assert machine_recorder.recorder(3.0).interval == 3.0


def test_what_is_wrong_with_the_folder_is_told_when_it_is_tried_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def full(interval: float) -> None:
        raise OSError("no room")

    monkeypatch.setattr(machine_recorder, "MachineRecorder", full)
    with machine_recorder.Begun([]), pytest.raises(OSError, match="no room"):
        machine_recorder.recorder(1.0)


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
