"""A disk that fills up under a study: it ends, nothing of it is lost, and resume completes it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.session.plan import read
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.room import room
from tests.conftest import Cli

from .aftermath import STEPS, sessions, until


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", str(folder)]
    if subprocess.run(command, check=False).returncode:
        pytest.skip("mounting a tmpfs is not permitted here")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def remount(folder: Path, how: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{how}", folder], check=True)


def steps(path: Path) -> list[int]:
    with SessionReader(path) as reader:
        return [row.step for row in reader.steps(limit=10**6)]


def test_a_study_whose_disk_is_full_ends_and_is_completed_once_there_is_room(
    cli: Cli, disk: Path
) -> None:
    work = ("--", sys.executable, STEPS, 60, 0.02)
    study = cli.start("--record", "--env", "bare", "--env", "bare", "--out", disk, *work)
    until(lambda: sessions(disk) and steps(sessions(disk)[0]))
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    _, told = study.communicate(timeout=60)
    (path,) = sessions(disk)
    folder = path.parent
    resume = f"gpuwatch resume {folder.name}"
    assert study.returncode == 1, told
    assert f"the study ends here; free some space, then {resume}" in told

    again = cli("resume", folder, code=2).stderr
    assert f"{path.name} is over and still not saved; free some space, then {resume}" in again
    remount(disk, "ro")
    again = cli("resume", folder, code=2).stderr
    assert f"make {path} writable, then {resume}" in again and "free some" not in again
    assert sessions(disk) == [path], "it is neither set aside nor run again"

    remount(disk, "rw")
    filler.unlink()
    assert f"took up {path}" in cli("resume", "--quiet", folder).stderr
    assert [steps(each) for each in sessions(disk)] == [list(range(1, 61))] * 2
    plan = read(folder)
    assert plan is not None and plan.problems == {}
    assert not list(folder.glob("*.lost-*"))


def test_a_study_that_cannot_begin_a_session_notes_the_rest_as_not_run(
    cli: Cli, disk: Path, tmp_path: Path
) -> None:
    cli.variables["XDG_STATE_HOME"] = str(disk)
    (disk / "filler").write_bytes(b"x" * 500 * 1024)
    with (disk / "filler").open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    out = tmp_path / "out"
    cli("--record", "--env", "bare", "--env", "bare", "--out", out, "--", "true", code=1)
    (folder,) = out.iterdir()
    plan = read(folder)
    assert plan is not None and sorted(plan.problems) == [1, 2]
    for (problem,) in plan.problems.values():
        assert "No space left on device" in problem.text
        assert problem.fix is not None and problem.fix.endswith(f"gpuwatch resume {folder.name}")
    assert "No space left on device" in (folder / "summary.md").read_text()


def test_a_folder_that_is_read_only_is_not_told_to_have_no_space(cli: Cli, disk: Path) -> None:
    assert room(disk / "a" / "b") == "free some space"
    remount(disk, "ro")
    assert room(disk / "a" / "b") == f"make {disk} writable"
    told = cli("--record", "--out", disk / "out", "--", "true", code=2).stderr
    assert f"Read-only file system; choose another folder with --out, or make {disk}" in told
