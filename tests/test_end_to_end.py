"""One run from end to end: recorded, listed, shown, compared and deleted."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.conftest import Cli

STEPS = Path(__file__).parent / "cli" / "steps.py"


def test_a_run_is_recorded_shown_compared_and_deleted(end_to_end: Cli) -> None:
    cli = end_to_end
    command = ("--", sys.executable, STEPS, 20, 0.02)
    done = cli("--record", "--env", "bare", "--env", "bare", *command)
    assert "NO VERDICT" in done.stdout
    listed = json.loads(cli("sessions", "--format", "json").stdout)["sessions"]
    assert [each["status"] for each in listed] == ["finished", "finished"]
    shown = json.loads(cli("show", "last", "--format", "json").stdout)
    assert shown["step"]["count"] == 20
    assert shown["step"]["median_seconds"] >= 0.02
    study = Path(listed[0]["path"]).parent
    assert "bare#2" in cli("compare", study).stdout
    cli("delete", "--yes", study)
    assert not study.exists()
