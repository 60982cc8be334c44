"""A study in a job of a real Slurm of two nodes (``.ci/slurm``), from its submission on."""

from __future__ import annotations

import json
import os
import random
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.models import JSON, mapping
from gpuwatch.places.slurm import script
from gpuwatch.session.placement import PLACEMENT
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.progress import recorder_of
from tests.cli.test_four_environments import environments
from tests.conftest import Cli
from tests.places.slurm.test_slurm_place import slurm, wait_for_nodes
from tests.terminal import Pty
from tests.waiting import until

# A test may wait for those of other workers to leave the nodes.
pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

SAVES = "trap 'echo saved >>saved; exit 0' TERM; touch begun; while :; do sleep 600 & wait; done"
"""A workload that saves when it is told to end, also if its ``sleep`` is told first."""
ONCE = f"[ ! -e go ] || exit 0; {SAVES}"
"""The same, until there is a file ``go``."""
PATIENCE = 180.0


@pytest.fixture
def here(cli: Cli) -> Iterator[Cli]:
    """The command line, in whose home all jobs end with the test."""
    yield cli
    for record in records(cli):
        told = json.loads(record.read_text())
        name = script.name(Path(told["study"]), told["attempt"])
        subprocess.run(["scancel", f"--name={name}"], check=False)


def records(here: Cli) -> list[Path]:
    return list((here.home / ".local/state/gpuwatch/placements").glob("*/record.json"))


def send(here: Cli, options: str, *words: str) -> Path:
    """Submit a study in the background; returns its folder."""
    place = f"slurm,{options}" if options else "slurm"
    return Path(here("--record", "--detach", "--on", place, *words).stdout.strip())


def placement(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / PLACEMENT).read_text())
    return found


def wait_for(folder: Path, *states: str, seconds: float = PATIENCE) -> dict[str, object]:
    until(lambda: placement(folder)["state"] in states, f"{folder} is {states}", seconds)
    return placement(folder)


def sessions(folder: Path) -> list[Path]:
    return sorted(folder.glob("0*.gpuwatch"))


def facts(session: Path) -> dict[str, JSON]:
    with SessionReader(session) as reader:
        return {key: value for scope in reader.facts().values() for key, value in scope.items()}


def status(here: Cli) -> list[str]:
    listed = json.loads(here.read("sessions", "--format", "json").stdout)
    return [row["status"] for row in listed["sessions"]]


def test_two_environments_of_two_blocks_run_in_one_job_on_one_node(here: Cli) -> None:
    commands = ("--command", "a=sleep 0.2", "--command", "b=sleep 0.2")
    where = "slurm,gres=gpu:2,cpus-per-task=1,time=30"
    here("--record", "--on", where, "--blocks", "2", "--cool-down", "0", *commands)
    (folder,) = (path.parent for path in here.home.rglob("plan.json"))
    told = [facts(session) for session in sessions(folder)]
    assert len(told) == 6
    assert len({(each["job.id"], each["job.node"]) for each in told}) == 1
    assert {each["job.gpus.on.node"] for each in told} == {"2"}
    assert {each["job.partition"] for each in told} == {"gpu"}
    assert {(each["job.time.limit"], each["job.gres"]) for each in told} == {
        ("30:00", "gres:gpu:2")
    }
    assert (folder / "summary.md").exists()
    assert placement(folder)["state"] == "ended"


def test_a_job_has_the_cores_that_it_asked_for(here: Cli) -> None:
    folder = send(here, "cpus-per-task=1", "--", "sh", "-c", "nproc >cores")
    wait_for(folder, "ended")
    assert (here.home / "cores").read_text() == "1\n"


def test_a_queued_study_tells_why_and_is_cancelled(here: Cli) -> None:
    folder = send(here, "partition=down", "--", "true")
    known = wait_for(folder, "queued")
    assert known["reason"] == "PartitionDown"
    assert "PartitionDown" in here.read("sessions").stdout
    assert "not over" in here("delete", "--yes", folder, code=2).stderr
    assert "not over" in here("resume", folder, code=2).stderr
    here("stop", folder)
    wait_for(folder, "cancelled")
    assert sessions(folder) == []
    here("delete", "--yes", folder)
    assert not folder.exists()


def test_the_screen_shows_what_waits_and_then_the_run(here: Cli) -> None:
    command = here.argv(
        "run", "--on", "slurm,begin=now+1hour", "--", "sh", "-c", "echo begun; sleep 600"
    )
    screen = Pty(command, environment=here.env, folder=here.home)
    try:
        screen.wait("BeginTime", PATIENCE)
        screen.wait("job ", PATIENCE)
        (folder,) = (path.parent for path in here.home.rglob("plan.json"))
        job = str(placement(folder)["native"])
        subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], check=True)
        screen.wait("begun", PATIENCE)
        screen.type("q")
        assert screen.end() == 0
        assert "gpuwatch attach" in screen.text()
    finally:
        screen.close()
    here("stop", folder)


def test_a_running_study_that_is_stopped_saves_and_is_resumed(here: Cli) -> None:
    folder = send(here, "", "--", "sh", "-c", ONCE)
    until((here.home / "begun").exists, "it begins", PATIENCE)
    wait_for(folder, "running")
    here("delete", "--yes", folder, code=2)
    assert "not over" in here("resume", folder, code=2).stderr
    here("stop", folder)
    wait_for(folder, "cancelled")
    assert (here.home / "saved").read_text() == "saved\n"
    assert status(here) == ["stopped"]
    assert "stopped on request" in here("show", folder).stdout
    resumed(here, folder)


def test_a_plain_run_tells_why_it_waits_and_then_the_run(here: Cli) -> None:
    words = ("run", "--plain", "--on", "slurm,begin=now+1hour", "--", "echo", "done")
    waiting = here.start(*words)
    assert waiting.stdout is not None and waiting.stderr is not None
    told = ""
    for line in waiting.stderr:
        told += line
        if "BeginTime" in line:
            break
    assert "BeginTime" in told, told
    (folder,) = (path.parent for path in here.home.rglob("plan.json"))
    job = str(placement(folder)["native"])
    subprocess.run(["scontrol", "update", f"JobId={job}", "StartTime=now"], check=True)
    shown, errors = waiting.communicate(timeout=PATIENCE)
    assert waiting.returncode == 0, errors
    assert "the run is over" in shown and "finished" in shown


def test_a_waiting_job_that_is_cancelled_by_hand_is_told_and_resumed(here: Cli) -> None:
    folder = send(here, "begin=now+1hour", "--", "true")
    subprocess.run(["scancel", str(wait_for(folder, "queued")["native"])], check=True)
    wait_for(folder, "ended by others")
    assert sessions(folder) == []
    other = "slurm,begin=now+2hours,time=5"
    assert "not resumed on ssh=x" in here("resume", "--on", "ssh=x", folder, code=2).stderr
    here("resume", "--detach", "--on", other, folder.name)
    assert wait_for(folder, "queued")["place"] == other
    here("stop", folder)
    wait_for(folder, "cancelled")


def test_a_running_job_that_is_cancelled_by_hand_saves_and_is_resumed(here: Cli) -> None:
    folder = send(here, "", "--", "sh", "-c", ONCE)
    until((here.home / "begun").exists, "it begins", PATIENCE)
    subprocess.run(["scancel", str(wait_for(folder, "running")["native"])], check=True)
    wait_for(folder, "ended by others")
    resumed_after(here, folder)


def resumed(here: Cli, folder: Path) -> None:
    """The run that is left runs, once nothing is left to be done for the job before."""
    (record,) = records(here)
    until(lambda: json.loads(record.read_text())["done"], f"{record} is done", PATIENCE)
    (here.home / "go").touch()
    here("resume", folder)
    wait_for(folder, "ended")
    assert "finished" in status(here)


def resumed_after(here: Cli, folder: Path) -> None:
    """A study that was taken its node saved, its session says so, and the run that is left runs."""
    assert "saved" in (here.home / "saved").read_text()
    assert status(here) == ["killed"]
    resumed(here, folder)


def test_a_preempted_study_saves_and_is_resumed(here: Cli) -> None:
    folder = send(here, "partition=low,nodelist=n1,exclusive", "--", "sh", "-c", ONCE)
    until((here.home / "begun").exists, "it begins", PATIENCE)
    more = ("--partition=gpu", "--nodelist=n1", "--exclusive", "--output=/dev/null")
    words = ["sbatch", "--parsable", *more, "--wrap=sleep 600"]
    other = subprocess.run(words, capture_output=True, text=True, check=True).stdout.strip()
    try:
        known = wait_for(folder, "preempted")
    finally:
        subprocess.run(["scancel", other], check=True)
    assert str(known["hint"]).endswith(f"gpuwatch resume {folder.name}")
    resumed_after(here, folder)


def test_a_study_whose_node_fails_is_lost_and_resumed(here: Cli) -> None:
    folder = send(here, "nodelist=n2", "--", "sh", "-c", ONCE)
    until((here.home / "begun").exists, "it begins", PATIENCE)
    wait_for(folder, "running")
    try:
        slurm("stop", "n2")
        assert wait_for(folder, "lost")["reason"] == "NODE_FAIL"
    finally:
        slurm("start", "n2")
        wait_for_nodes()
    assert status(here) == ["lost"]
    resumed(here, folder)


@pytest.mark.slow
def test_a_time_limit_lets_the_workload_save(here: Cli) -> None:
    folder = send(here, "time=1", "--", "sh", "-c", SAVES)
    known = wait_for(folder, "timed out", seconds=2 * PATIENCE)
    reason = str(known["reason"])  # of a slow node Slurm itself says so first
    early = rf"job {known['native']} closed \d+ s before its limit of 1:00"
    assert reason == "TIMEOUT" or re.fullmatch(early, reason)
    assert f"gpuwatch resume {folder.name}" in str(known["hint"])
    assert "from its beginning, with the same limit" in str(known["hint"])
    assert (here.home / "saved").read_text() == "saved\n"
    assert status(here) == ["timed out"]
    (session,) = json.loads(here.read("sessions", "--format", "json").stdout)["sessions"]
    assert session["failure"] == f"timed out on {known['where']}: {reason}"
    said = folder / "summary.csv"
    until(lambda: ",timed out," in said.read_text(), "the summary tells it, too")
    here("attach", "--plain", folder.name, code=1)


def test_a_recorder_that_is_killed_is_told_and_what_it_left_before_it_is_sent_again(
    here: Cli,
) -> None:
    folder = send(here, "nodelist=n2", "--", "sh", "-c", f"echo $$ >>pids; echo a; {ONCE}")
    wait_for(folder, "running")
    until((here.home / "begun").exists, "it begins", PATIENCE)
    until(lambda: log(sessions(folder)[0]), "its session has all that tells of it")
    native = str(placement(folder)["native"])
    subprocess.run(["scancel", "--batch", "--signal=KILL", native], check=True)
    known = wait_for(folder, "lost")
    reason, helps = str(known["reason"]), f"on n2: `gpuwatch attach --record {folder.name}` takes"
    assert str(known["hint"]).startswith(helps)
    left = re.fullmatch(
        r"its recorder was killed; (its workload may still run there: PID \d+)", reason
    )
    assert left is not None, reason
    (record,) = records(here)
    until(lambda: json.loads(record.read_text())["done"], f"{record} is done", PATIENCE)
    told = here("stop", folder, code=2).stderr
    assert "is recorded on n2" in told and "not running" not in told
    there = ["srun", "--nodelist=n2", "--quiet", *here.argv("stop", folder)]
    (here.home / "go").touch()
    said = here("resume", "--detach", "--on", "slurm,nodelist=n1,begin=now+1hour", folder).stderr
    assert f"n2: {left[1]}; `gpuwatch stop {folder.name}` there ends it" in said
    here("stop", folder)
    wait_for(folder, "cancelled")
    subprocess.run(there, check=True, env=here.env, cwd=here.home)
    assert (here.home / "saved").read_text() == "saved\n"
    assert status(here) == ["stopped"]
    assert "may still run" not in here("resume", "--on", "slurm", folder).stderr
    assert status(here) == ["finished"] and (here.home / "pids").read_text().count("\n") == 2


def test_what_a_killed_recorder_left_on_this_host_is_not_sent_again_but_taken_over(
    here: Cli,
) -> None:
    folder = send(here, "nodelist=n1", "--", "sh", "-c", SAVES)
    until((here.home / "begun").exists, "it begins", PATIENCE)
    wait_for(folder, "running")
    native = str(placement(folder)["native"])
    subprocess.run(["scancel", "--batch", "--signal=KILL", native], check=True)
    wait_for(folder, "lost")
    (record,) = records(here)
    until(lambda: json.loads(record.read_text())["done"], f"{record} is done", PATIENCE)
    assert "has lost its recorder; `gpuwatch attach" in here("resume", folder, code=2).stderr
    taking = here.start("attach", "--record", folder.name)
    until(lambda: recorder_of(folder) is not None, "it is recorded again", PATIENCE)
    taking.terminate()
    taking.communicate(timeout=PATIENCE)
    assert status(here) == ["stopped"] and (here.home / "saved").exists()


def log(session: Path) -> int:
    """How many lines of output it has."""
    with SessionReader(session) as reader:
        return len(reader.log())


def test_a_study_goes_on_when_its_follower_is_killed(here: Cli) -> None:
    folder = send(
        here, "", "--", "sh", "-c", "while [ ! -e go ]; do sleep 0.1; done; echo done >done"
    )
    wait_for(folder, "running")
    (follower,) = followers(here)
    os.kill(follower, signal.SIGKILL)
    (here.home / "go").touch()
    here("attach", "--plain", folder.name)
    assert (here.home / "done").exists()
    wait_for(folder, "ended")


def followers(here: Cli) -> list[int]:
    """The processes that follow studies of this home."""
    leases = (here.home / ".local/state/gpuwatch/placements").glob("*/lease.json")
    return [json.loads(lease.read_text())["holder"]["pid"] for lease in leases]


def test_a_kill_between_submission_and_its_note_leaves_exactly_one_job(here: Cli) -> None:
    """A wrapper as a site has one kills whoever submits, before or after."""
    folder, draw = here.home / "bin", random.Random(23)
    folder.mkdir()
    program = folder / "sbatch"
    path = os.environ["PATH"]
    for number in range(20):
        first, then = '/usr/bin/sbatch "$@"', "kill -9 $PPID"
        if draw.random() < 0.3:
            first, then = then, "exit 1"
        program.write_text(
            "#!/bin/sh\n"
            f'case "$*" in *--test-only*) exec /usr/bin/sbatch "$@" ;; esac\n{first}\n{then}\n'
        )
        program.chmod(0o755)
        here.variables["PATH"] = f"{folder}:{path}"
        script = f"echo x >>ran-{number}"
        here("--record", "--detach", "--on", "slurm", "--", "sh", "-c", script, code=-9)
    here.variables["PATH"] = path
    studies = sorted(path.parent for path in here.home.rglob("plan.json"))
    assert len(studies) == 20
    several = [here.start("attach", "--plain", study.name) for study in studies for _ in range(2)]
    for each in several:
        each.communicate(timeout=PATIENCE)
    for study in studies:
        wait_for(study, "ended")
    assert [path.read_text() for path in here.home.glob("ran-*")] == ["x\n"] * 20


def test_runs_go_on_while_the_controller_is_away_and_the_next_job_is_submitted_after_it(
    here: Cli,
) -> None:
    wait = "sh -c 'while [ ! -e go ]; do sleep 0.1; done'"
    commands = ("--command", f"a={wait}", "--command", f"b={wait}")
    words = ("--on", "slurm,jobs=block", "--blocks", "2", "--cool-down", "0", *commands)
    screen = Pty(here.argv("run", *words), (180, 30), here.env, folder=here.home)
    try:
        screen.taken_over("▶ running", PATIENCE)
        (folder,) = (path.parent for path in here.home.rglob("plan.json"))
        slurm("stop", "ctld")
        screen.wait("it is tried again", PATIENCE)
        assert "Unable to contact slurm controller" in screen.text()
        asked = here("stop", folder, code=3).stderr
        assert f"{folder.name} was not stopped and goes on" in asked and "tried" not in asked
        assert "controller does not answer" in here("run", *words, code=3).stderr
        (here.home / "go").touch()
        until(lambda: status(here).count("finished") == 2, "its block is done", PATIENCE)
        assert placement(folder)["state"] == "unknown"
        slurm("start", "ctld")
        wait_for(folder, "ended")
        screen.wait("6 finished", PATIENCE)
        screen.type("q")
        assert screen.end() == 0
    finally:
        screen.close()
        slurm("start", "ctld")
        wait_for_nodes()
    assert status(here) == ["finished"] * 6
    assert len((folder / "attempts").read_text().split()) == 3
    known = placement(folder)["changes"]
    assert isinstance(known, list) and [state for state, _ in known].count("unknown") == 1


@pytest.mark.parametrize(
    ("place", "words", "code"),
    [
        ("slurm=gpu1", "takes options", 2),
        ("slurm,output=x", "'output' cannot be given", 2),
        ("slurm,partition=--wrap=x", "invalid value partition", 2),
        ("slurm,setup=/nowhere", "there is no file /nowhere", 2),
        ("slurm,partition=nope", "invalid partition specified: nope", 3),
        ("slurm,gres=gpu:9", "Requested node configuration is not available", 3),
        ("slurm,colour=red", "unrecognized option", 3),
    ],
)
def test_what_slurm_or_gpuwatch_refuses_leaves_nothing(
    here: Cli, place: str, words: str, code: int
) -> None:
    done = here("--record", "--on", place, "--", "true", code=code)
    assert words in done.stderr
    assert not list(here.home.rglob("plan.json"))
    assert not list((here.home / ".local/state/gpuwatch/placements").glob("*"))


def test_a_setup_file_and_a_binding_that_was_left_out_are_in_the_session(here: Cli) -> None:
    (here.home / "setup.sh").write_text("export FROM_SETUP=yes\n")
    here.variables["SLURM_CPU_BIND"] = "quiet,mask_cpu:0x1"
    words = ("sh", "-c", "echo $FROM_SETUP >told")
    folder = send(here, f"setup={here.home}/setup.sh", "--", *words)
    wait_for(folder, "ended")
    assert (here.home / "told").read_text() == "yes\n"
    (session,) = sessions(folder)
    assert len(str(facts(session)["job.setup.sha256"])) == 64
    assert facts(session)["job.left.out"] == "SLURM_CPU_BIND"
    shown = " ".join(here("show", session).stdout.split())
    assert "SLURM_CPU_BIND of the submitting shell was kept from the job" in shown


def test_a_secret_is_in_no_file_but_in_slurms_own(here: Cli) -> None:
    here.variables["HF_TOKEN"] = secret = f"hf_{secrets.token_hex(16)}"
    job = wait_for(send(here, "", "--", "sh", "-c", "sleep 0.1"), "ended")["native"]
    of_slurm = Path(os.environ["SLURM_CONF"]).parent
    asked = ["grep", "-rlaF", secret, here.home, of_slurm]
    found = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.split()
    assert [path[path.index("job.") :] for path in found] == [f"job.{job}/environment"]
    assert {os.stat(path).st_mode & 0o777 for path in found} == {0o600}


def test_each_block_may_be_a_job_of_its_own(here: Cli) -> None:
    commands = ("--command", "a=sleep 0.2", "--command", "b=sleep 0.2")
    here(*("--record", "--on", "slurm,jobs=block", "--blocks", "2", "--cool-down", "0"), *commands)
    (folder,) = (path.parent for path in here.home.rglob("plan.json"))
    told = [facts(session)["job.id"] for session in sessions(folder)]
    assert len(told) == 6 and len(set(told)) == 3
    assert told[0] == told[1] and told[2] == told[3] and told[4] == told[5]
    assert len((folder / "attempts").read_text().split()) == 3
    assert placement(folder)["state"] == "ended"


def test_a_block_that_cannot_run_is_not_tried_for_ever(here: Cli) -> None:
    where = ("--record", "--on", "slurm,jobs=block", "--blocks", "3", "--cool-down", "0")
    done = here(*where, "--env", "charliecloud=/nowhere", "--", "true", code=3)
    assert "/nowhere" in done.stderr
    (folder,) = (path.parent for path in here.home.rglob("plan.json"))
    assert len((folder / "attempts").read_text().split()) == 1
    done = here("--record", "--on", "slurm,jobs=many", "--", "true", code=2)
    assert "jobs=block" in done.stderr


@pytest.mark.docker
@pytest.mark.apptainer
@pytest.mark.charliecloud
def test_containers_run_inside_a_job_but_those_of_a_daemon(
    here: Cli, small_image: str, small_root: Path
) -> None:
    kinds = environments(small_image, small_root)
    done = here("--record", "--on", "slurm,cpus-per-task=1", *kinds, "--", "nproc")
    assert "docker containers run outside of the job" in done.stderr
    (folder,) = (path.parent for path in here.home.rglob("plan.json"))
    cores, outside = {}, set()
    for session in sessions(folder):
        with SessionReader(session) as reader:
            kind = str(mapping(reader.meta()["environment"])["kind"])
            cores[kind] = int(reader.log()[-1].text)
            if "outside of Slurm's job" in " ".join(summarise(reader).notes):
                outside.add(kind)
    assert cores == {"bare": 1, "docker": 1, "apptainer": 1, "charliecloud": 1}
    assert outside == {"docker"}
