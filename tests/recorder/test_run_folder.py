"""Which folders of runs are removed that a dead recorder left, and which are still wanted."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest

from gpuwatch.core import paths
from gpuwatch.core.processes import ProcessId, identify
from gpuwatch.recorder import run_folder
from gpuwatch.session.writing.statements import meta
from gpuwatch.session.writing.store import SessionStore


@pytest.fixture
def study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # other tests' folders are in its own
    folder = tmp_path / "study"
    folder.mkdir()
    return folder


def dead() -> ProcessId:
    process = subprocess.Popen(["sleep", "60"])
    found = identify(process.pid)
    process.kill()
    process.wait()
    assert found is not None
    return found


def left(name: str, session: Path | None, recorder: ProcessId | None) -> Path:
    """A folder as a recorder leaves it when it is killed."""
    folder = paths.new_run_folder(name)
    if session is not None:
        (folder / "session").write_text(str(session))
    if recorder is not None:
        (folder / "recorder.lock").write_text(json.dumps(asdict(recorder)))
    return folder


def write(path: Path, run: str, **result: object) -> Path:
    rows = [meta("session", {"id": run}), *([meta("result", result)] if result else [])]
    SessionStore.create(path, [], rows).close()
    return path


def test_what_is_over_or_never_began_goes(study: Path) -> None:
    ended = write(study / "1.gpuwatch", "a1", code=0, signal=None)
    left("a1", ended, dead())
    left("a2", study / "2.gpuwatch", dead())
    left("a3", None, dead())
    old = left("a4", None, None)
    os.utime(old, (0, 0))
    run_folder.sweep()
    assert paths.run_folders() == []


def test_what_may_go_on_or_is_still_to_be_read_stays(study: Path) -> None:
    me = identify(os.getpid())
    ended = write(study / "1.gpuwatch", "b1", code=0, signal=None)
    left("b1", ended, me)  # its recorder is about to remove it
    left("b2", write(study / "2.gpuwatch", "b2"), dead())  # attach --record takes it up
    left("b3", write(study / "3.gpuwatch", "b3", code=None, signal=None), dead())  # stop finds it
    left("b4", ended, dead())  # of another run: the file was replaced
    left("b5", None, None)  # being made just now
    (left("b6", study / "6.gpuwatch", dead()) / "started.json").write_text("{}")
    left("b7", study.parent / "away" / "7.gpuwatch", dead())  # its disk is away
    run_folder.sweep()
    names = {each.name for each in paths.run_folders()}
    assert names == {"b1", "b2", "b3", "b4", "b5", "b6", "b7"}


def test_a_removal_that_was_cut_short_is_finished_by_the_next_recorder(study: Path) -> None:
    folder = left("d1", write(study / "1.gpuwatch", "d1", code=0, signal=None), dead())
    killed = """
import os, pathlib, shutil, signal, sys
from gpuwatch.core import paths
shutil.rmtree = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
paths.remove_run_folder(pathlib.Path(sys.argv[1]))
"""
    remover = subprocess.run([sys.executable, "-c", killed, str(folder)])
    assert remover.returncode == -signal.SIGKILL and len(list(folder.parent.iterdir())) == 1
    assert paths.run_folders() == [], "it is no run any more"
    run_folder.sweep()
    assert list(folder.parent.iterdir()) == []


def test_a_run_has_one_recorder_at_a_time_and_no_descriptor_stays(study: Path) -> None:
    folder = paths.new_run_folder("c1")
    gc.collect()  # what other tests left would close in between
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with run_folder.held(folder):
            assert run_folder.recorder_of(folder) == identify(os.getpid())
    assert len(os.listdir("/proc/self/fd")) <= before
