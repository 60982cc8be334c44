"""Several environments in one command: their order, their labels, and what cannot run."""

from __future__ import annotations

import csv
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.reading import sessions
from tests.runners.packages import installed

from ..commands.test_record import STEPS
from ..test_errors import one_line

NO_DAEMON = "unix:///no/such/docker.sock"

EMPTY_HANDED = """
from gpuwatch.core.errors import NotAvailable

class Runner:
    kind = "empty"
    contained = False

    def engine(self):
        return "Empty 1.0"

    def preflight(self, spec):
        return []

    def prepare(self, spec, say):
        say("looking for the image")
        raise NotAvailable("the image is gone", "empty pull")
"""


def summary(out: Path) -> tuple[dict[str, Any], str]:
    """``summary.json`` and ``summary.md`` of the only study."""
    (as_json,) = out.glob("*/summary.json")
    return json.loads(as_json.read_text()), as_json.with_name("summary.md").read_text()


def labels(found: dict[str, Any]) -> list[str]:
    return [session["environment"]["label"] for session in found["sessions"]]


def test_the_same_environment_twice_is_two_runs_side_by_side(cli: Cli, tmp_path: Path) -> None:
    done = cli(
        "--record", "--env", "bare", "--env", "bare", "--out", tmp_path,
        "--", sys.executable, STEPS, 40, 0.01,
    )  # fmt: skip
    assert [path.name for path in sessions(tmp_path)] == [
        "01-bare-1.gpuwatch",
        "02-bare-2.gpuwatch",
    ]
    found, _ = summary(tmp_path)
    assert labels(found) == ["bare#1", "bare#2"]
    head = next(line for line in done.stdout.splitlines() if "method" in line)
    assert head.split() == ["bare#1", "bare#2", "method"] and " %" in done.stdout
    step = next(row for row in found["rows"] if row["name"] == "step time, median")
    assert all(0.01 <= value < 0.03 for value in step["values"])


@pytest.mark.parametrize("order", [("docker=x", "bare"), ("bare", "docker=x")])
def test_one_that_cannot_run_is_a_row_everywhere_and_the_others_run(
    cli: Cli, tmp_path: Path, order: tuple[str, str]
) -> None:
    cli.variables["DOCKER_HOST"] = NO_DAEMON
    arguments = [part for text in order for part in ("--env", text)]
    done = cli("--record", *arguments, "--out", tmp_path, "--", "sh", "-c", "echo hello", code=3)
    (path,) = sessions(tmp_path)
    assert path.name == f"{order.index('bare') + 1:02d}-bare.gpuwatch"
    found, markdown = summary(tmp_path)
    assert labels(found) == ["bare"]
    (missing,) = found["not_run"]
    label, problems = missing["label"], missing["problems"]
    assert label == "docker=x" and problems[0]["code"] == "docker-absent"
    for text in (done.stderr, done.stdout, markdown):
        plain = text.replace("\\", "").replace("\u200b", "")
        assert problems[0]["text"] in " ".join(plain.split())
        assert problems[0]["hint"] in plain
    assert "docker=x did not run: " in done.stdout and "sh (bare): finished" in done.stdout
    plan = json.loads((path.parent / "plan.json").read_text())
    assert list(plan["problems"]) == [str(order.index("docker=x") + 1)]


def test_where_none_can_run_the_summary_is_written_all_the_same(cli: Cli, tmp_path: Path) -> None:
    cli.variables["DOCKER_HOST"] = NO_DAEMON
    done = cli(
        "--record", "--env", "docker=x", "--env", "docker=y", "--out", tmp_path, "--", "true",
        code=3,
    )  # fmt: skip
    assert sessions(tmp_path) == []
    found, markdown = summary(tmp_path)
    assert found["sessions"] == [] and found["baseline"] is None
    assert [each["label"] for each in found["not_run"]] == ["docker=x", "docker=y"]
    for label in ("docker=x", "docker=y"):
        assert label in markdown
    assert "docker=x, docker=y did not run: " in done.stdout
    (plan,) = tmp_path.glob("*/plan.json")
    assert cli.read("report", plan.parent, "--format", "table").stdout == done.stdout


def test_one_alone_that_cannot_run_is_an_error_and_nothing_is_made(
    cli: Cli, tmp_path: Path
) -> None:
    cli.variables["DOCKER_HOST"] = NO_DAEMON
    done = cli("--record", "--env", "docker=x", "--out", tmp_path / "out", "--", "true", code=3)
    assert "no Docker daemon answers" in one_line(done.stderr) and done.stdout == ""
    assert not (tmp_path / "out").exists()


def test_where_blocks_have_nothing_left_to_compare_nothing_is_started(
    cli: Cli, tmp_path: Path
) -> None:
    cli.variables["DOCKER_HOST"] = NO_DAEMON
    both = ("--env", "bare", "--env", "docker=x", "--blocks", "3", "--out", tmp_path / "out")
    done = cli("--record", *both, "--", "true", code=3)
    assert "no Docker daemon answers" in done.stderr and not (tmp_path / "out").exists()


def test_the_machine_alone_is_recorded_in_no_environment(cli: Cli, tmp_path: Path) -> None:
    done = cli("--record", "--env", "bare", "--duration", "1s", "--out", tmp_path / "out", code=2)
    assert "--env without a workload" in one_line(done.stderr)


def test_what_turns_out_only_at_the_start_is_a_row_as_well(cli: Cli, tmp_path: Path) -> None:
    cli.variables["PYTHONPATH"] = str(
        installed(tmp_path / "site", "empty", "gw_empty:Runner", EMPTY_HANDED)
    )
    out = tmp_path / "out"
    done = cli("--record", "--env", "empty", "--env", "bare", "--out", out, "--", "true", code=3)
    assert "gpuwatch: looking for the image" in done.stderr
    assert "gpuwatch: empty: the image is gone; empty pull" in done.stderr
    assert "empty did not run: the image is gone\n    Fix: empty pull\n" in done.stdout
    found, markdown = summary(out)
    assert labels(found) == ["bare"] and "the image is gone" in markdown
    assert found["not_run"] == [
        {
            "label": "empty",
            "problems": [
                {"code": "not-started", "text": "the image is gone", "hint": "empty pull"}
            ],
            "index": 1,
        }
    ]
    # Alone it is an error, and the plan says why there is no session.
    alone = tmp_path / "alone"
    done = cli("--record", "--quiet", "--env", "empty", "--out", alone, "--", "true", code=3)
    assert done.stderr.splitlines()[-1].startswith("gpuwatch: error: the image is gone")
    (plan,) = alone.glob("*/plan.json")
    assert json.loads(plan.read_text())["problems"]["1"][0]["text"] == "the image is gone"


def test_a_run_that_fails_does_not_keep_the_next_from_running(cli: Cli, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    script = f"if mkdir {flag} 2>/dev/null; then echo the reason >&2; exit 9; fi; echo fine >&2"
    done = cli(
        "--record", "--env", "bare", "--env", "bare", "--out", tmp_path / "out",
        "--", "sh", "-c", script, code=1,
    )  # fmt: skip
    found, _ = summary(tmp_path / "out")
    assert [session["session"]["exit_code"] for session in found["sessions"]] == [9, 0]
    assert "  the reason" in done.stderr.splitlines(), "the last words are of the run that failed"
    assert "  fine" not in done.stderr.splitlines()
    assert "bare#1" in done.stdout and "exit code 9" in done.stdout


def test_the_highest_code_counts(cli: Cli, tmp_path: Path) -> None:
    cli.variables["DOCKER_HOST"] = NO_DAEMON
    cli(
        "--record", "--quiet", "--env", "bare", "--env", "docker=x", "--out", tmp_path,
        "--", "sh", "-c", "exit 7", code=3,
    )  # fmt: skip


@pytest.mark.torch
def test_two_workloads_in_two_environments_run_workload_by_workload(
    cli: Cli, tmp_path: Path
) -> None:
    cli.variables["DOCKER_HOST"] = NO_DAEMON
    done = cli(
        "--record", "gcn", "sentiment-rnn", "--steps", "3", "--warmup", "0", "--profile", "0",
        "--env", "bare", "--env", "docker", "--python", sys.executable, "--out", tmp_path, code=3,
    )  # fmt: skip
    first, second = sessions(tmp_path)
    assert [first.name, second.name] == ["01-bare.gpuwatch", "03-bare.gpuwatch"]
    found, _ = summary(tmp_path)
    assert [session["workload"]["name"] for session in found["sessions"]] == [
        "gcn",
        "sentiment-rnn",
    ]
    assert [each["label"] for each in found["not_run"]] == [
        "gcn in docker",
        "sentiment-rnn in docker",
    ]
    told = [line for line in done.stderr.splitlines() if "no Docker daemon" in line]
    assert [line.split(": ")[1] for line in told] == ["gcn in docker", "sentiment-rnn in docker"]

    compared = json.loads(cli.read("compare", first, second, "--format", "json").stdout)
    assert any("different workloads:" in note for note in compared["notes"])
    assert "step time, median" in cli.read("compare", first, second, "--format", "md").stdout
    rows = list(csv.DictReader(io.StringIO(cli.read("export", first).stdout)))
    assert len(rows) > 2 and "cpu hw.cpu.utilization [1]" in rows[0]


def test_in_the_background_the_first_session_that_there_is_is_named(
    cli: Cli, tmp_path: Path
) -> None:
    cli.variables["DOCKER_HOST"] = NO_DAEMON
    environments = ("--env", "docker=x", "--env", "bare")
    done = cli("--record", "--detach", *environments, "--out", tmp_path, "--", "true")
    assert done.stdout.strip().endswith("02-bare.gpuwatch")
    assert "no Docker daemon answers" in done.stderr
    done = cli(
        "--record", "--detach", "--env", "docker=x", "--env", "docker=y", "--out", tmp_path,
        "--", "true", code=3,
    )  # fmt: skip
    assert done.stderr.count("no Docker daemon answers") == 2 and done.stdout == ""


@pytest.mark.docker
def test_bare_and_docker_are_compared(cli: Cli, tmp_path: Path, small_image: str) -> None:
    done = cli(
        "--record", "--env", "bare", "--env", f"docker={small_image}", "--out", tmp_path / "out",
        "--", "sh", "-c", "echo in $0; sleep 0.2",
    )  # fmt: skip
    found, _ = summary(tmp_path / "out")
    assert labels(found) == ["bare", f"docker={small_image}"]
    assert found["not_run"] == [] and "elapsed" in done.stdout
    assert {session["environment"]["kind"] for session in found["sessions"]} == {"bare", "docker"}


def test_a_study_that_is_stopped_says_what_never_had_its_turn(cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "out"
    twice = ("--env", "bare", "--env", "bare")
    path = Path(cli("--record", "--detach", "--out", out, *twice, "--", "sleep", "300").stdout[:-1])
    assert "stopped" in cli("stop", path.parent).stderr
    (summary,) = out.glob("*/summary.md")
    assert "2 did not run: the study was ended before its turn" in summary.read_text()
    assert [each.name for each in out.glob("*/*.gpuwatch")] == ["01-bare-1.gpuwatch"]
    assert "is not running" in cli("stop", path).stderr
