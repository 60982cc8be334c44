"""Asked to end, once or twice: the workload ends, the session is whole, and the code says how."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from gpuwatch.recorder.control import ONE_REQUEST_SECONDS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from gpuwatch.session.study.plan import read
from tests.conftest import Cli
from tests.terminal import Pty
from tests.waiting import until

from .aftermath import (
    complete,
    in_order,
    kept,
    nothing_left,
    sessions,
    short_id,
    stepping,
    workload,
)
from .table import Row
from .test_taken_up import until_told

LONG = workload(100_000, 0.01)
RUN = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0])"
DEAF = """\
import runpy, signal, sys
signal.signal(signal.SIGTERM, lambda *_: print("asked to end", flush=True))
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0])
"""
"""Runs a program that goes on when it is asked to end."""
_STUDY = 'test -e "$1" && n=30 || n=99999; exec "$2" -c "$3" "$4" $n 0.01'
"""Many steps of it, until there is a file that asks for few."""


@pytest.mark.parametrize(
    ("command", "number", "code"),
    [("--record", "SIGTERM", 0), ("--record", "SIGHUP", 0), ("run", "SIGINT", 130)],
)
def test_a_signal_ends_the_run_and_the_session_is_whole(
    cli: Cli,
    tmp_path: Path,
    times: Callable[[int, int], int],
    note_fault: Callable[[Row], None],
    command: str,
    number: str,
    code: int,
) -> None:
    tried = times(1, 10)
    for time_ in range(tried):
        out = tmp_path / f"out-{time_}"
        recorder = cli.start(command, "--out", out, *LONG)
        path = stepping(out)
        before = kept(path).steps
        recorder.send_signal(signal.Signals[number])
        _, said = recorder.communicate(timeout=60)
        assert recorder.returncode == code, said
        assert "Traceback" not in said
        nothing_left(cli, out)
        found = kept(path)
        in_order(found)
        assert found.steps[: len(before)] == before
        assert (found.status.state, found.status.exit_code) == (State.STOPPED, 143)
        assert found.status.text == f"stopped by {number}"
        assert (path.parent / "summary.md").exists()
    what = f"{number} to `gpuwatch {command}` without a terminal"
    text = f"{found.status.text}; exit code {recorder.returncode}"
    note_fault(Row("recorder", what, tried, "nothing", "nothing", text))


def test_a_second_interrupt_ends_a_workload_that_does_not_listen(
    cli: Cli, tmp_path: Path, times: Callable[[int, int], int], note_fault: Callable[[Row], None]
) -> None:
    tried = times(1, 10)
    deaf = ["--", sys.executable, "-c", DEAF, *LONG[2:]]
    for time_ in range(tried):
        out = tmp_path / f"out-{time_}"
        recorder = cli.start("--record", "--out", out, *deaf)
        path = stepping(out)
        recorder.send_signal(signal.SIGINT)
        _wait_for_asked(path)
        time.sleep(1.1 * ONE_REQUEST_SECONDS)
        assert recorder.poll() is None, "it is given time to end"
        recorder.send_signal(signal.SIGINT)
        recorder.communicate(timeout=60)
        assert recorder.returncode == 130
        nothing_left(cli, out)
        found = kept(path)
        assert found.steps == list(range(1, len(found.steps) + 1))
        assert (found.status.state, found.status.exit_code) == (State.STOPPED, 137)
    text = f"{found.status.text}; exit code 130"
    what = "SIGINT twice, of a workload that ignores SIGTERM"
    note_fault(Row("recorder", what, tried, "nothing", "nothing", text))


@pytest.mark.parametrize(("twice", "number"), [(False, "SIGTERM"), (True, "SIGINT")])
def test_a_study_that_is_ended_says_what_did_not_run_and_is_gone_on_with(
    cli: Cli,
    tmp_path: Path,
    times: Callable[[int, int], int],
    note_fault: Callable[[Row], None],
    twice: bool,
    number: str,
) -> None:
    tried = times(1, 5)
    short = tmp_path / "short"
    work = ["--", "sh", "-c", _STUDY, "sh", str(short), sys.executable, DEAF if twice else RUN]
    for time_ in range(tried):
        out = tmp_path / f"out-{time_}"
        short.unlink(missing_ok=True)
        study = cli.start(
            "--record", "--env", "bare", "--env", "bare", "--out", out, *work, *LONG[2:3]
        )
        path = stepping(out)
        study.send_signal(signal.Signals[number])
        if twice:
            _wait_for_asked(path)
            time.sleep(1.1 * ONE_REQUEST_SECONDS)
            study.send_signal(signal.Signals[number])
        _, said = study.communicate(timeout=60)
        assert study.returncode == (130 if number == "SIGINT" else 0), said
        nothing_left(cli, out)
        assert sessions(out) == [path]
        assert kept(path).status.state is State.STOPPED
        plan = read(path.parent)
        assert plan is not None
        (problem,) = plan.problems[2]
        assert f"ended before its turn ({number})" in problem.text
        assert problem.hint == f"gpuwatch resume {path.parent.name}"
        assert "2 did not run" in (path.parent / "summary.md").read_text()
        short.touch()
        cli("resume", "--quiet", path.parent)
        assert len(sessions(out)) == 2
        for each in sessions(out):
            complete(kept(each), 30)
        (aside,) = path.parent.glob("*.lost-*")
        assert kept(aside).steps == list(range(1, len(kept(aside).steps) + 1))
    what = f"{number} {'twice' if twice else 'once'} to a study of two runs"
    text = f"{problem.text}; gpuwatch resume STUDY"
    left = "the run that was stopped, set aside by `resume`"
    note_fault(Row("recorder", what, tried, "nothing", left, text))


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_screen_that_is_asked_to_end_gives_the_terminal_back_and_leaves_the_run_alone(
    cli: Cli,
    tmp_path: Path,
    times: Callable[[int, int], int],
    note_fault: Callable[[Row], None],
    number: str,
) -> None:
    tried = times(1, 10)
    for time_ in range(tried):
        out = tmp_path / f"out-{time_}"
        program = until_told("a screen", tmp_path, 300)
        command = cli.argv("run", "--out", out, "--", *program)
        terminal = Pty(command, environment=cli.env)
        terminal.wait("running")
        path = stepping(out)
        terminal.process.send_signal(signal.Signals[number])
        assert terminal.end() == 0
        assert b"\x1b[?1049l" in terminal.sent
        assert f"gpuwatch attach {short_id(path)}" in terminal.text()
        terminal.close()
        (tmp_path / "go").touch()
        until(partial(_over, path))
        (tmp_path / "go").unlink()
        nothing_left(cli, out)
        complete(kept(path), 300)
        assert kept(path).status.state is State.FINISHED
    text = f"exit code 0, `gpuwatch attach SESSION`; the session: {kept(path).status.text}"
    note_fault(Row("screen", f"{number}", tried, "nothing", "nothing", text))


def _over(path: Path) -> bool:
    return not kept(path).status.live


def _wait_for_asked(path: Path) -> None:
    def asked() -> bool:
        with SessionReader(path) as reader:
            return "asked to end" in [row.text for row in reader.log(limit=10**6)]

    until(asked)
