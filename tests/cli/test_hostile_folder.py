"""In a folder with modules named like Python's own, gpuwatch's processes run none of them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.own_command import OWN_COMMAND
from tests.conftest import Cli
from tests.terminal import Pty

OTHERS = ("docker", "gpuwatch", "numpy", "psutil", "pynvml", "rich", "scipy", "textual", "torch")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A folder with a module of each name; one that is run leaves its name in ``executed``."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    for name in (*sys.stdlib_module_names, *OTHERS):
        text = f"open({str(tmp_path / 'executed')!r}, 'a').write('{name} ')\nraise ImportError\n"
        (folder / f"{name}.py").write_text(text)
    return folder


def own(cli: Cli, hostile: Path, *arguments: str, code: int | None = 0) -> str:
    done = subprocess.run(
        [*OWN_COMMAND, *arguments],
        cwd=hostile,
        env=cli.env,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert code is None or done.returncode == code, done.stderr
    assert not (hostile.parent / "executed").exists()
    return done.stdout


def test_a_recording_its_summary_and_the_list_run_none(cli: Cli, hostile: Path) -> None:
    true = shutil.which("true")
    assert true is not None
    assert "true (bare): finished" in own(cli, hostile, "--record", "--", true)
    (row,) = json.loads(own(cli, hostile, "sessions", "--format", "json"))["sessions"]
    assert row["status"] == "finished"
    folder = Path(row["path"]).parent
    assert (folder / "summary.json").exists(), "the recorder's own child wrote it"
    own(cli, hostile, "report", str(folder))


def test_doctor_runs_none(cli: Cli, hostile: Path) -> None:
    json.loads(own(cli, hostile, "doctor", "--format", "json", code=None))


@pytest.mark.parametrize("name", ["argparse", "json", "queue", "sqlite3", "statistics"])
def test_python_dash_m_gpuwatch_runs_none_either(cli: Cli, hostile: Path, name: str) -> None:
    folder = hostile.with_name("one")
    folder.mkdir()
    (hostile / f"{name}.py").rename(folder / f"{name}.py")
    cli("sessions", "--format", "json", folder=folder)
    assert not (hostile.parent / "executed").exists()


def test_the_home_screen_lists_and_shows_the_devices(cli: Cli, hostile: Path) -> None:
    own(cli, hostile, "--record", "--quiet", "--", "/bin/true")
    screen = Pty([*OWN_COMMAND], (100, 30), cli.env, folder=hostile)
    try:
        screen.wait("finished")
        screen.wait("CPU")
        screen.type("q")
    finally:
        screen.hang_up()
    assert not (hostile.parent / "executed").exists()
