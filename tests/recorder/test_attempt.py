"""A study that was sent here runs once for each attempt."""

from __future__ import annotations

import json
from pathlib import Path

from gpuwatch.session.study.attempts import ATTEMPTS, attempts
from gpuwatch.session.study.estimate import known_meta
from gpuwatch.session.study.plan import PLAN
from tests.conftest import Cli
from tests.waiting import until

FIRST, SECOND = "0123456789abcdef", "fedcba9876543210"


def _sent(cli: Cli, *words: str) -> Path:
    """A study that was planned elsewhere, with nothing but its plan."""
    there = cli.home / "there" / "study"
    there.mkdir(parents=True)
    cli("--record", "--out", cli.home / "here", *words)
    (plan,) = (cli.home / "here").glob(f"*/{PLAN}")
    (there / PLAN).write_bytes(plan.read_bytes())
    return there


def _status(folder: Path, cli: Cli) -> list[str]:
    listed = json.loads(cli.read("sessions", folder, "--format", "json").stdout)
    return [row["status"] for row in listed["sessions"]]


def test_an_attempt_runs_once(cli: Cli) -> None:
    folder = _sent(cli, "--", "sh", "-c", f"echo x >>{cli.home}/ran")
    (cli.home / "ran").unlink()
    for _ in range(3):
        cli("start-plan", folder, "--attempt", FIRST)
    assert attempts(folder) == (FIRST,)
    assert (cli.home / "ran").read_text() == "x\n"
    assert _status(folder, cli) == ["finished"]


def test_a_further_attempt_does_what_is_missing(cli: Cli) -> None:
    ran = cli.home / "ran"
    folder = _sent(cli, "--env", "bare", "--env", "bare", "--", "sh", "-c", f"echo x >>{ran}")
    ran.unlink()
    cli("start-plan", folder, "--attempt", FIRST)
    kept, gone = sorted(folder.glob("*.gpuwatch"))
    before = kept.read_bytes()
    gone.unlink()
    cli("start-plan", folder, "--attempt", SECOND)
    assert attempts(folder) == (FIRST, SECOND)
    assert ran.read_text() == "x\n" * 3
    assert gone.exists() and kept.read_bytes() == before


def test_no_attempt_begins_while_a_run_goes_on_that_lost_its_recorder(cli: Cli) -> None:
    ran = cli.home / "ran"
    folder = _sent(cli, "--", "sh", "-c", f"[ -e {ran} ] || exit 0; echo x >>{ran}; exec sleep 300")
    ran.touch()
    recorder = cli.start("start-plan", folder, "--attempt", FIRST)
    looking = ("start-plan", folder, "--attempt", FIRST, "--look")
    (path,) = until(lambda: list(folder.glob("*.gpuwatch")))
    until(lambda: (known_meta(path) or {}).get("handle", {}).get("holder"))
    assert cli(*looking).stdout == "started\n"
    recorder.kill()
    recorder.communicate()
    assert cli(*looking).stdout == "orphaned\n"
    refused = cli("start-plan", folder, "--attempt", SECOND, code=2).stderr
    assert f"the run of {path} has lost its recorder" in refused
    assert (attempts(folder), ran.read_text()) == ((FIRST,), "x\n")
    cli("stop", folder)
    assert cli(*looking).stdout == "started\n"
    assert _status(folder, cli) == ["stopped"]


def test_each_of_several_recorders_keeps_to_its_own_runs(cli: Cli) -> None:
    """As in the containers of a pod: what one says of its run outlives the next."""
    nowhere = f"charliecloud={cli.home}/nothing"
    folder = _sent(cli, "--env", "bare", "--env", "bare", "--env", "bare", "--", "true")
    plan = json.loads((folder / PLAN).read_text())
    second = plan["parts"][0]["environments"][1]
    second |= {"kind": "charliecloud", "image": str(cli.home / "nothing"), "label": nowhere}
    (folder / PLAN).write_text(json.dumps(plan))
    for index, attempt in enumerate((FIRST, SECOND, "0" * 16), 1):
        cli("start-plan", folder, "--attempt", attempt, "--runs", index, code=3 * (index == 2))
        assert len(list(folder.glob("*.gpuwatch"))) == (1, 1, 2)[index - 1]
    (problem,) = json.loads((folder / PLAN).read_text())["problems"]["2"]
    assert "there is no" in problem["text"]


def test_nothing_runs_without_a_plan_or_with_another_id(cli: Cli) -> None:
    folder = _sent(cli, "--", "true")
    for id_ in ("x", "0123456789ABCDEF", "../../etc/passwd", ""):
        assert "plan" in cli("start-plan", folder, "--attempt", id_, code=2).stderr
    (folder / PLAN).unlink()
    assert "no plan" in cli("start-plan", folder, "--attempt", FIRST, code=2).stderr
    assert not (folder / ATTEMPTS).exists()


def test_what_stands_in_the_file_of_attempts_is_checked(tmp_path: Path) -> None:
    assert attempts(tmp_path) == ()
    (tmp_path / ATTEMPTS).write_bytes(b"\xff\x00 " + FIRST.encode() + b"\nnonsense " + b"a" * 99999)
    assert attempts(tmp_path) == (FIRST,)
    (tmp_path / ATTEMPTS).unlink()
    (tmp_path / ATTEMPTS).symlink_to("/etc/hostname")
    assert attempts(tmp_path) == ()
