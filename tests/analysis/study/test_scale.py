"""Hours at 10 Hz: what of them is read, and that the recorder does not grow with them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.opening import Long, write
from gpuwatch.analysis.study.read import read
from tests.session.counted import counted

pytestmark = pytest.mark.usefixtures("programs")

ROOT = Path(__file__).parents[3]


def test_of_a_long_session_each_step_line_is_read_once_and_of_its_ticks_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "long.gpuwatch"
    write(path, Long("long", 1, 120_500))
    rows = counted(monkeypatch)
    found = read(path)
    assert found.steady.count > 2_000_000
    # 60,250 lines, and of 120,500 ticks one row a minute and channel.
    assert rows() < 75_000


def test_the_recorders_writer_and_intake_do_not_grow_with_the_run() -> None:
    script = "import json; from benchmarks.scale.feed import feed; print(json.dumps(feed(8, 0.5)))"
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    resident = json.loads(done.stdout)
    assert len(resident) == 20
    assert max(resident[4:]) - resident[3] < 2.0, resident
