"""Several terminals attached to one run."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from gpuwatch.session.study.progress import recorder_alive
from tests.conftest import Cli
from tests.terminal import Pty
from tests.waiting import until

pytestmark = pytest.mark.usefixtures("programs")

STEPS = Path(__file__).parents[2] / "cli" / "steps.py"


def test_terminals_attach_and_are_lost_and_the_run_goes_on(cli: Cli, tmp_path: Path) -> None:
    started = cli("--record", "--detach", "--", sys.executable, STEPS, "100000", "0.05")
    session = Path(started.stdout.strip())
    screens = [Pty(cli.argv("attach"), size, cli.env) for size in ((80, 24), (160, 50), (100, 30))]
    try:
        for screen in screens:
            screen.taken_over("running")
            screen.taken_over("step ")
        first, second, third = screens
        first.hang_up()
        assert first.end() == 0
        second.type("q")
        assert second.end() == 0 and "come back: gpuwatch attach" in second.text()
        start = len(third.sent)
        assert third.read(60) and len(third.sent) > start
        (listed,) = json.loads(cli.read("sessions", "--format", "json").stdout)["sessions"]
        assert listed["status"] == "running"

        third.type("s")
        third.wait("Stop it")
        third.type("\x1b[C\r")
        third.wait("stopped")
        until(lambda: not recorder_alive(session.parent))
        third.type("q")
        assert third.end() == 0 and "all figures: gpuwatch show --all" in third.text()
    finally:
        cli("stop", session, code=None)
        for screen in screens:
            screen.close()
