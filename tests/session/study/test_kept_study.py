"""A study, a killed recording, labels and a plan of 0.1.0, kept from before names were changed."""

from __future__ import annotations

import json
import os
import shutil
import socket
import sqlite3
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.processes import boot_id, identify
from gpuwatch.session.study import summary
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver

KEPT = Path(__file__).parents[2] / "data" / "kept-0.1.0"
RUN = "303bbbece897"


@pytest.fixture
def study(cli: Cli) -> Path:
    studies = cli.home / ".local/share/gpuwatch/studies"
    return Path(shutil.copytree(KEPT / "study", studies / "train.py-20261123-184454"))


@pytest.fixture
def killed(cli: Cli) -> Path:
    """As its recorder left it when it was killed, on this machine and since its last start."""
    home = cli.home
    shutil.copyfile(KEPT / "train.py", home / "train.py")
    folder = Path(shutil.copytree(KEPT / "killed", home / "killed" / "train.py-20261123-184509"))
    plan = json.loads((folder / "plan.json").read_text())
    plan |= {"host": socket.gethostname(), "working_directory": str(home)}
    (folder / "plan.json").write_text(json.dumps(plan))
    with sqlite3.connect(folder / "01-bare-1.gpuwatch") as file:
        rows = file.execute("SELECT key, value FROM meta").fetchall()
        meta = {key: json.loads(value) for key, value in rows}
        meta["clock"]["boot_id"] = boot_id()
        meta["recorder"] = _dead()
        for key in ("clock", "recorder"):
            file.execute("UPDATE meta SET value = ? WHERE key = ?", (json.dumps(meta[key]), key))
    file.close()
    return folder


def _dead() -> dict[str, Any]:
    """A process of this machine that has ended."""
    with subprocess.Popen(["sleep", "100"]) as process:
        known = identify(process.pid)
        process.kill()
    assert known is not None
    return asdict(known)


def _run_folder(cli: Cli, killed: Path) -> None:
    """The private folder of the killed run, with what the workload still wrote."""
    folder = cli.home / ".local/state/gpuwatch/runs" / RUN
    shutil.copytree(KEPT / "run", folder)
    os.chmod(folder, 0o700)
    handle = json.loads((folder / "handle.json").read_text())
    handle |= {"folder": str(folder), "holder": _dead()}
    (folder / "handle.json").write_text(json.dumps(handle))
    (folder / "recorder.lock").write_text(json.dumps(_dead()))
    (folder / "session").write_text(str(killed / "01-bare-1.gpuwatch"))


def test_every_command_reads_the_study(cli: Cli, study: Path) -> None:
    before = {path.name: path.read_bytes() for path in study.iterdir()}
    one, other = study / "03-bare-1.gpuwatch", study / "04-bare-2.gpuwatch"
    for words in (("show",), ("log",), ("export",), ("compare", other)):
        assert cli.read(*words, one).stdout
    assert "no roofline to draw" in cli.read("roofline", one, code=3).stderr
    compared = json.loads(cli.read("compare", "--format", "json", study).stdout)
    assert [each["session"]["status"] for each in compared["sessions"]] == ["finished"] * 4
    assert before == {name: (study / name).read_bytes() for name in before}
    assert "NO VERDICT" in cli.read("report", "--short", study).stdout


def test_its_labels_and_its_summary_are_listed(cli: Cli, study: Path) -> None:
    listed = json.loads(cli.read("sessions", "--format", "json", study.parent).stdout)["sessions"]
    assert {tuple(each["tags"]) for each in listed} == {(), ("old",)}
    assert "train.py-20261123-184454" in cli.read("compare", "kept study").stdout
    (saying,) = summary.sayings(study)
    assert saying.kind == "described" and "bare#2" in saying.text


def test_the_killed_run_is_taken_up_and_loses_nothing(cli: Cli, killed: Path) -> None:
    _run_folder(cli, killed)
    path = killed / "01-bare-1.gpuwatch"
    assert "the recorder died" in cli.read("show", path).stdout
    cli("attach", "--record", path)
    shown = json.loads(cli.read("show", "--format", "json", path).stdout)
    assert shown["session"]["status"] == "finished"
    assert "log line 40" in cli.read("log", path).stdout
    assert not (cli.home / ".local/state/gpuwatch/runs" / RUN).exists()


def test_the_rest_of_the_killed_study_is_resumed(cli: Cli, killed: Path) -> None:
    cli.variables |= FakeDriver(cli.home).variables
    refused = cli("resume", killed, code=2)
    assert "train.py 40 0.05" in refused.stderr
    cli("resume", "--trust", "--quiet", killed)
    result = json.loads(cli.read("compare", "--format", "json", killed).stdout)
    assert [each["session"]["status"] for each in result["sessions"]] == ["finished"] * 4
