"""``gpuwatch stop`` where a session's file is damaged, gone, or another one by now."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from gpuwatch.core.paths import session_of
from gpuwatch.core.processes import start_time
from gpuwatch.recorder.run_folder import recorder_of
from gpuwatch.session.reading.status import process_id
from tests.conftest import Cli
from tests.reading import meta
from tests.waiting import until


def _started(cli: Cli, out: Path) -> tuple[Path, int]:
    """A run that goes on: its session, and the process of its workload."""
    path = Path(cli("--record", "--detach", "--out", out, "--", "sleep", "300").stdout.strip())
    return path, int(json.loads((_folder(cli, path) / "started.json").read_text())["workload"])


def _folder(cli: Cli, path: Path) -> Path:
    folders = (cli.home / ".local/state/gpuwatch/runs").iterdir()
    return next(each for each in folders if (each / "session").read_text() == str(path.resolve()))


def _damage(path: Path) -> None:
    path.write_bytes(b"x" * 4096)


def test_a_stop_by_the_command_is_told_from_a_signal(cli: Cli, tmp_path: Path) -> None:
    path, _ = _started(cli, tmp_path / "a")
    cli("stop", path)
    assert "stopped on request" in cli.read("show", path).stdout
    other, _ = _started(cli, tmp_path / "b")
    recorder = recorder_of(_folder(cli, other))
    assert recorder is not None
    os.kill(recorder.pid, signal.SIGTERM)
    until(lambda: recorder.alive() is False)
    assert "stopped by SIGTERM" in cli.read("show", other).stdout


def test_stopping_a_run_says_how_many_of_its_study_are_not_started(
    cli: Cli, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    cli("--record", "--detach", "--blocks", "3", "--out", out, "--", "sleep", "300")
    until(lambda: bool(list(out.rglob("*.gpuwatch"))))
    told = cli("stop", "last").stderr
    (path,) = out.rglob("*.gpuwatch")
    assert f"stopped {path}" in told
    assert f"3 runs of its study are not started: gpuwatch resume {path.parent} goes on" in told


def test_a_damaged_session_holds_up_the_stop_of_no_other(cli: Cli, tmp_path: Path) -> None:
    damaged, first = _started(cli, tmp_path / "a")
    whole, second = _started(cli, tmp_path / "b")
    _damage(damaged)
    told = cli("stop", "--all").stderr
    assert f"stopped the run of {damaged}: " in told and f"stopped {whole}" in told
    assert start_time(first) is None and start_time(second) is None
    assert not list((cli.home / ".local/state/gpuwatch/runs").iterdir())
    assert "nothing was running" in cli("stop", "--all").stderr


@pytest.mark.parametrize("by", ["id", "path", "folder"])
def test_a_run_whose_file_was_deleted_is_stopped(cli: Cli, tmp_path: Path, by: str) -> None:
    path, workload = _started(cli, tmp_path / "out")
    folder = _folder(cli, path)
    path.unlink()
    named = {"id": folder.name[:6], "path": path, "folder": path.parent}[by]
    told = cli("stop", named).stderr
    assert "stopped the run of" in told and "no such file" in told
    assert start_time(workload) is None and not folder.exists()


def test_a_run_whose_file_was_replaced_is_stopped(cli: Cli, tmp_path: Path) -> None:
    path, workload = _started(cli, tmp_path / "a")
    other, _ = _started(cli, tmp_path / "b")
    cli("stop", other)
    other.replace(path)
    assert "was replaced" in cli("stop", path).stderr
    assert start_time(workload) is None


def test_a_run_in_a_folder_whose_name_is_no_text_is_stopped(cli: Cli, tmp_path: Path) -> None:
    out = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff"))
    cli("--record", "--detach", "--out", out, "--", "sleep", "300")
    (path,) = out.glob("*/*.gpuwatch")
    (folder,) = (cli.home / ".local/state/gpuwatch/runs").iterdir()
    workload = int(json.loads((folder / "started.json").read_text())["workload"])
    assert session_of(folder) == path
    cli("stop", "--all")
    assert start_time(workload) is None and not folder.exists()
    assert {"summary.md", "plan.json"} <= {each.name for each in path.parent.iterdir()}


def test_a_recorder_whose_file_is_gone_says_so(cli: Cli, tmp_path: Path) -> None:
    path, _ = _started(cli, tmp_path / "out")
    path.unlink()
    log = path.parent / "recorder.log"
    until(lambda: f"{path} was deleted or replaced: nothing is recorded" in log.read_text())
    cli("stop", path)
    assert "could not be saved" in log.read_text() and "attach" not in log.read_text()


def test_a_recording_of_the_machine_whose_file_was_deleted_is_stopped_by_its_folder(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli("--record", "--detach", "--duration", "600s", "--out", tmp_path / "out")
    path = Path(done.stdout.strip())
    recorder = process_id(meta(path)["recorder"])
    assert recorder is not None and recorder.alive()
    path.unlink()
    told = cli("stop", path.parent).stderr
    assert f"stopped {path.parent}" in told and recorder.alive() is False
    assert "no session in" in cli("stop", path.parent, code=2).stderr


@pytest.mark.skipif(shutil.which("flock") is None, reason="flock is not on the PATH")
@pytest.mark.parametrize("what", ["a folder", "a study"])
def test_what_else_has_locked_a_folder_is_not_stopped(cli: Cli, tmp_path: Path, what: str) -> None:
    if what == "a study":
        (tmp_path / "plan.json").write_text("{}")
    ready = tmp_path / "ready"
    command = ["flock", tmp_path, "sh", "-c", 'touch "$0"; exec sleep 300', ready]
    with subprocess.Popen(command, start_new_session=True) as other:
        try:
            until(ready.exists)
            assert "no session in" in cli("stop", tmp_path, code=2).stderr
            assert other.poll() is None
        finally:
            os.killpg(other.pid, signal.SIGKILL)
