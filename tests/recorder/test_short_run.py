"""What recording adds to a run that is over at once: programs started, modules loaded."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.reading import sessions

pytestmark = pytest.mark.usefixtures("programs")

NOTING = """
import atexit, json, os, sys

def note():
    text = json.dumps({"argv": sys.orig_argv, "modules": sorted(sys.modules)})
    with open(os.path.join(os.path.dirname(__file__), "programs"), "a") as file:
        file.write(text + chr(10))

atexit.register(note)
"""
"""Each Python program that ends appends what it was and what it loaded."""


class Programs:
    """The Python programs that gpuwatch's command line starts, itself among them."""

    def __init__(self, cli: Cli, folder: Path) -> None:
        self._noted = folder / "programs"
        (folder / "sitecustomize.py").write_text(NOTING)
        cli.variables["PYTHONPATH"] = str(folder)

    @property
    def all(self) -> list[dict[str, Any]]:
        # One that leaves a daemon thread behind ends without a note.
        lines = self._noted.read_text().splitlines() if self._noted.exists() else []
        return [json.loads(line) for line in lines]

    @property
    def summaries(self) -> list[set[str]]:
        """The modules of each that made a summary."""
        return [set(each["modules"]) for each in self.all if "report" in each["argv"]]


@pytest.fixture
def programs(cli: Cli, tmp_path: Path) -> Programs:
    folder = tmp_path / "noting"
    folder.mkdir()
    return Programs(cli, folder)


def test_one_program_writes_the_summary_and_prints_it(
    cli: Cli, programs: Programs, tmp_path: Path
) -> None:
    done = cli("--record", "--out", tmp_path / "out", "--", "true")
    assert len(programs.summaries) == 1
    folder = sessions(tmp_path / "out")[0].parent
    assert done.stdout == cli.read("report", folder, "--format", "table", "--short").stdout
    assert {"summary.json", "summary.md", "summary.csv", "summary.html"} <= {
        path.name for path in folder.iterdir()
    }


def test_a_summary_of_a_run_without_steps_loads_no_scipy(
    cli: Cli, programs: Programs, tmp_path: Path
) -> None:
    cli("--record", "--out", tmp_path / "out", "--", "true")
    modules = set[str]().union(*programs.summaries)
    assert "numpy" in modules
    assert modules & {"scipy", "urllib.request", "email"} == set()


def test_the_exit_code_is_the_runs_where_nobody_reads_the_summary(cli: Cli, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as nobody:
        process = subprocess.run(
            cli.argv("--record", "--out", tmp_path / "out", "--", "sh", "-c", "exit 7"),
            env=cli.env, stdout=nobody, stderr=subprocess.PIPE, text=True, timeout=120, check=False,
        )  # fmt: skip
    assert process.returncode == 1 and "exit code 7" in process.stderr
    assert "Broken" not in process.stderr and "all figures" in process.stderr


def test_a_quiet_recording_of_the_machine_makes_no_summary(
    cli: Cli, programs: Programs, tmp_path: Path
) -> None:
    cli("--record", "--quiet", "--duration", "50ms", "--out", tmp_path / "out")
    assert programs.summaries == []
