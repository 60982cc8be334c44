"""Whose fingerprint a session has: the workload's, not that of what launches it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from gpuwatch.recorder.sources import Sources
from gpuwatch.telemetry.nvml.errors import Unavailable
from tests.conftest import Cli
from tests.reading import facts, sessions
from tests.waiting import until

BECOMES = """
import json, os, resource, sys, time
if len(sys.argv) > 2:
    print(":::GPUWATCH", json.dumps({"event": "step", "step": 1, "seconds": 0.01}), flush=True)
    while not os.path.exists(sys.argv[1]):
        time.sleep(0.1)
else:
    time.sleep(3)  # later than the early looks
    resource.setrlimit(resource.RLIMIT_NOFILE, (333, 333))
    os.execv(sys.executable, [sys.executable, __file__, sys.argv[1], "workload"])
"""


def test_a_shell_is_looked_at_where_what_it_runs_has_ended_meanwhile() -> None:
    sources = Sources(Unavailable("none", "none"), workload=True)
    with subprocess.Popen(["sh", "-c", "while :; do /bin/true; done"]) as shell:
        looks = [sources.process_facts([shell.pid], container=False) for _ in range(100)]
        shell.kill()
    sources.close()
    assert {look["process.uid"] for look in looks} == {os.getuid()}


def test_a_program_that_reports_steps_only_is_looked_at_when_it_reports_its_first(
    cli: Cli, tmp_path: Path
) -> None:
    script = tmp_path / "becomes.py"
    script.write_text(BECOMES)
    out, seen = tmp_path / "out", tmp_path / "seen"
    recorder = cli.start("--record", "--quiet", "--out", out, "--", sys.executable, script, seen)

    def limit() -> str:
        for path in sessions(out):
            return str(facts(path).get("process.limit.nofile"))
        return ""

    until(lambda: limit() == "333")
    seen.touch()
    recorder.communicate(timeout=60)
    assert (recorder.returncode, limit()) == (0, "333")
