"""Whose fingerprint a session has: the workload's, not that of what launches it."""

from __future__ import annotations

import sys
from pathlib import Path

from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli

BECOMES = """
import json, os, resource, sys, time
if len(sys.argv) > 1:
    print(":::GPUWATCH", json.dumps({"event": "step", "step": 1, "seconds": 0.01}), flush=True)
    time.sleep(1)
else:
    time.sleep(3)  # later than the early looks
    resource.setrlimit(resource.RLIMIT_NOFILE, (333, 333))
    os.execv(sys.executable, [sys.executable, __file__, "workload"])
"""


def test_a_program_that_reports_steps_only_is_looked_at_when_it_reports_its_first(
    cli: Cli, tmp_path: Path
) -> None:
    script = tmp_path / "becomes.py"
    script.write_text(BECOMES)
    cli("--record", "--quiet", "--out", tmp_path / "out", "--", sys.executable, script)
    (path,) = tmp_path.glob("out/*/*.gpuwatch")
    with SessionReader(path) as reader:
        facts = reader.facts()["process"]
    assert str(facts["process.limit.nofile"]) == "333"
