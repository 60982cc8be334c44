"""A container ends while nobody reads its output: the session says from when on it is missing."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from tests.engines.daemon import DockerDaemon
from tests.waiting import until

from .aftermath import PATIENCE, complete, in_order
from .environments import Place, marked, stepping_program
from .table import Row
from .test_engines_docker import said_of
from .test_taken_up import until_told

pytestmark = pytest.mark.docker

NoteFault = Callable[[Row], None]
Times = Callable[[int, int], int]

STEPS = 150
KNOWN = re.compile(r"its output is known only up to (\d+\.\d) s: ")


def end_unseen(mark: str) -> None:
    """Wait until the workload has ended, and longer than a daemon takes to tell of that."""
    until(lambda: not marked(mark))
    time.sleep(2)


def last_output(path: Path) -> float:
    """Seconds from the session's start."""
    with SessionReader(path) as reader:
        return max(row.t for row in (*reader.all_steps(), *reader.log(limit=10**6))) / 1e9


def test_a_run_that_finished_while_its_daemon_was_away_says_that_output_is_missing(
    private: Place, docker_daemon: DockerDaemon, mark: str, note_fault: NoteFault, times: Times
) -> None:
    tried, lost = times(1, 5), []
    for number in range(tried):
        place = Place(private.cli, "docker", private.env, private.out / str(number))
        home = place.cli.home / str(number)
        home.mkdir()
        recorder = place.cli.start(*place.arguments(*until_told(mark, home, STEPS)))
        place.wait_for_line("log line 10")
        docker_daemon.stop()
        (home / "go").touch()
        end_unseen(mark)
        docker_daemon.start()
        _, talk = recorder.communicate(timeout=PATIENCE)
        assert recorder.returncode == 0
        found = place.kept()
        in_order(found)
        assert 10 <= len(found.steps) < STEPS
        lost.append(STEPS - len(found.steps))
        assert found.status.state is State.FINISHED and "finished; its output" in found.status.text
        known = KNOWN.search(found.status.text)
        assert known and KNOWN.search(talk), "on the screen too"
        assert float(known[1]) == pytest.approx(last_output(place.path), abs=0.06)
        assert found.kinds.count("output-missing") == 1
        shown = json.loads(place.cli.read("show", place.path, "--format", "json").stdout)
        assert shown["step"]["count"] == len(found.steps)
        assert shown["step"]["known_until_seconds"] == pytest.approx(float(known[1]), abs=0.06)
        wrote = "the workload's output after this is unknown"
        assert any(wrote in note for note in shown["session"]["notes"])
        assert wrote in " ".join(place.cli.read("show", place.path).stdout.split())
        assert wrote in (place.path.parent / "summary.md").read_text()
        left = place.nothing_left(mark)
    whole = Place(private.cli, "docker", private.env, private.out / "whole")
    private.cli(*whole.arguments(*stepping_program(mark, STEPS)))
    compared = private.cli.read("compare", "--all", whole.path, place.path).stdout
    assert "nothing is known of the output after" in " ".join(compared.split())
    fault = "dockerd stopped, started again after the workload's end with code 0"
    what = f"what it wrote while the daemon was away: up to {max(lost)} of {STEPS} steps"
    note_fault(Row("engine", fault, tried, what, left, said_of(found)))


def test_who_takes_up_a_run_that_nobody_saw_end_says_what_is_not_known(
    private: Place, docker_daemon: DockerDaemon, mark: str, note_fault: NoteFault
) -> None:
    recorder = private.cli.start(*private.arguments(*until_told(mark, private.cli.home, STEPS)))
    private.wait_for_line("log line 10")
    recorder.kill()
    recorder.communicate()
    docker_daemon.stop()
    (private.cli.home / "go").touch()
    end_unseen(mark)
    docker_daemon.start()
    private.cli("attach", "--record", private.path)
    found = private.kept()
    in_order(found)
    assert 10 <= len(found.steps) < STEPS
    assert KNOWN.search(found.status.text) and "output-missing" in found.kinds
    left = private.nothing_left(mark)
    lost = f"what it wrote while the daemon was away: {STEPS - len(found.steps)} of {STEPS} steps"
    fault = "recorder killed, dockerd stopped, started again after the workload's end, taken up"
    note_fault(Row("engine", fault, 1, lost, left, said_of(found)))


def test_a_log_that_is_whole_is_not_told_as_missing(public: Place, mark: str) -> None:
    whole_for_who_takes_it_up(public, mark)


def test_a_log_that_is_whole_on_a_daemon_that_was_away_is_not_told_as_missing(
    private: Place, docker_daemon: DockerDaemon, mark: str
) -> None:
    def restart() -> None:
        docker_daemon.stop()
        docker_daemon.start()

    whole_for_who_takes_it_up(private, mark, restart)


def whole_for_who_takes_it_up(
    place: Place, mark: str, meanwhile: Callable[[], None] = lambda: None
) -> None:
    steps = 20
    recorder = place.cli.start(*place.arguments(*until_told(mark, place.cli.home, steps)))
    place.wait_for_line("log line 10")
    recorder.kill()
    recorder.communicate()
    meanwhile()
    (place.cli.home / "go").touch()
    until(lambda: not marked(mark))
    place.cli("attach", "--record", place.path)
    found = place.kept()
    complete(found, steps)
    assert found.status.text == "finished" and "output-missing" not in found.kinds
    place.nothing_left(mark)
