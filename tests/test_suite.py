from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.suite import MOST, TIMES

_ROOT = Path(__file__).resolve().parents[1]


def suite(folder: Path, body: str) -> tuple[int, str, int]:
    """Exit code, what was printed, and how often the test ran."""
    (folder / "pytest.ini").touch()
    (folder / "test_one.py").write_text(
        "from pathlib import Path\n"
        "ran = Path(__file__).with_name('ran')\n"
        "with ran.open('a') as file:\n    file.write('.')\n"
        "times = len(ran.read_text())\n" + body
    )
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    command = [sys.executable, "-m", "tests.suite", "-q"]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout, len((folder / "ran").read_text())


def test_what_passes_runs_once(tmp_path: Path) -> None:
    code, _, ran = suite(tmp_path, "def test_it(): pass\n")
    assert (code, ran) == (0, 1)


def test_what_failed_beside_others_passes_three_times_alone_and_is_named(tmp_path: Path) -> None:
    code, said, ran = suite(tmp_path, "def test_it(): assert times > 1\n")
    assert (code, ran) == (0, 1 + TIMES)
    assert said.rstrip().endswith("to be mended:\n  test_one.py::test_it")


def test_what_fails_always_or_once_of_three_times_fails(tmp_path: Path) -> None:
    for name, body in (("always", "False"), ("third", "times in (2, 3)")):
        folder = tmp_path / name
        folder.mkdir()
        code, said, _ = suite(folder, f"def test_it(): assert {body}\n")
        assert code == 1
        assert "unsteady" not in said


def test_many_failures_are_not_tried_again(tmp_path: Path) -> None:
    several = f"import pytest\n@pytest.mark.parametrize('n', range({MOST + 1}))\n"
    code, _, ran = suite(tmp_path, several + "def test_it(n): assert times > 1\n")
    assert (code, ran) == (1, 1)
