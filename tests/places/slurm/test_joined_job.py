"""Joining a job of a real Slurm that runs already."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.session.placement import PLACEMENT
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.rows import Processes
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver
from tests.session.samples import rows_of, times_of
from tests.waiting import until

# A test may wait for those of other workers to leave the nodes.
pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

PATIENCE = 180.0
BUSY = """import os, time
end = time.time() + 600
while time.time() < end and not os.path.exists({over!r}): pass
"""

Submit = Callable[..., str]


@pytest.fixture
def submit(cli: Cli) -> Iterator[Submit]:
    """Submit a job that computes until there is the file ``over``; returns its number. All end with
    the test."""
    jobs: list[str] = []

    def start(*options: str) -> str:
        program = cli.home / "busy.py"
        program.write_text(BUSY.format(over=str(cli.home / "over")))
        words = ("sbatch", "--parsable", "--ntasks=1", "--output=/dev/null", *options)
        done = subprocess.run(
            [*words, "--wrap", f"exec python3 {program}"],
            capture_output=True,
            text=True,
            check=True,
        )
        jobs.append(done.stdout.strip())
        return jobs[-1]

    yield start
    for job in jobs:
        subprocess.run(["scancel", job], check=False)


def state_of(job: str) -> str:
    """Slurm's word."""
    asked = ["squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T"]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout.strip()


def running(job: str) -> None:
    until(lambda: state_of(job) == "RUNNING", "the job runs", PATIENCE)


def join(cli: Cli, job: str) -> Path:
    """Join a job in the background; returns the study's folder."""
    return Path(cli("--record", "--detach", "--on", f"slurm,job={job}").stdout.strip())


def placement(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / PLACEMENT).read_text())
    return found


def is_over(folder: Path) -> bool:
    return placement(folder)["fetched"] is True


def session_of(folder: Path, ticks: int) -> Path:
    """Its session, once that has so many samples."""

    def enough() -> bool:
        for path in folder.glob("01-*.gpuwatch"):
            with SessionReader(path) as reader:
                return len(times_of(reader)) >= ticks
        return False

    until(enough)
    return folder / "01-bare.gpuwatch"


def is_closed(session: Path) -> bool:
    with SessionReader(session) as reader:
        return "closed" in reader.meta()


def processes(session: Path) -> Processes:
    with SessionReader(session) as reader:
        return reader.processes()


def sees(session: Path, text: str) -> bool:
    """Whether a process of that name is the run's own."""
    return any(text in str(each.name) and each.owned for each in processes(session).all)


def test_a_job_is_seen_and_goes_on_when_the_recording_is_stopped(cli: Cli, submit: Submit) -> None:
    job = submit()
    running(job)
    folder = join(cli, job)
    session = session_of(folder, 8)
    until(lambda: sees(session, "busy.py"))
    assert not any("gpuwatch" in str(each.name) for each in processes(session).all)
    with SessionReader(session) as reader:
        facts, channels = reader.facts()["host"], reader.channels()
        (cpu,) = (each.id for each in channels if each.metric == "process.cpu.time")
        used = [row[1] for row in rows_of(reader, [cpu]) if row[1] is not None]
    assert facts["job.id"] == job
    assert used[-1] > used[0] >= 0  # type: ignore[operator]
    cli("stop", folder)
    assert placement(folder)["state"] == "cancelled"
    assert placement(folder)["reason"] == "the recording alone, not the job"
    assert is_closed(session)
    assert state_of(job) == "RUNNING"
    assert f"slurm-job-{job}" in cli.read("sessions").stdout
    assert "not a study of a workload" in cli("resume", folder, code=2).stderr
    cli("delete", "--yes", folder)


def test_it_ends_with_its_job(cli: Cli, submit: Submit) -> None:
    job = submit()
    running(job)
    attached = cli.start("attach", "--plain", "--on", f"slurm,job={job}")
    studies = cli.home / ".local/share"
    until(lambda: [*studies.rglob("plan.json")])
    (folder,) = (path.parent for path in studies.rglob("plan.json"))
    session_of(folder, 2)
    (cli.home / "over").touch()
    _, errors = attached.communicate(timeout=PATIENCE)
    assert (attached.returncode, "starting on n" in errors) == (0, True), errors
    until(lambda: is_over(folder))
    assert placement(folder)["state"] == "ended"
    assert is_closed(folder / "01-bare.gpuwatch")


def test_one_that_waits_is_told_and_joined_when_it_runs(cli: Cli, submit: Submit) -> None:
    job = submit("--hold")
    folder = join(cli, job)
    until(lambda: placement(folder)["state"] == "queued")
    assert placement(folder)["reason"] == "JobHeldUser"
    assert "JobHeldUser" in cli.read("sessions").stdout
    subprocess.run(["scontrol", "release", job], check=True)
    session_of(folder, 2)


def test_one_that_waits_need_not_be_waited_for(cli: Cli, submit: Submit) -> None:
    job = submit("--hold")
    folder = join(cli, job)
    until(lambda: placement(folder)["state"] == "queued")
    cli("stop", folder)
    assert placement(folder)["state"] == "cancelled"
    assert state_of(job) == "PENDING"


def test_one_that_is_cancelled_while_it_waits_is_told(cli: Cli, submit: Submit) -> None:
    job = submit("--hold")
    watching = cli.start("--record", "--on", f"slurm,job={job}")
    until(lambda: [*(cli.home / ".local/share").rglob(PLACEMENT)])
    subprocess.run(["scancel", job], check=True)
    _, errors = watching.communicate(timeout=PATIENCE)
    assert watching.returncode == 3
    assert f"the job {job} is over: CANCELLED" in errors


def test_ctrl_c_ends_the_recording_alone(cli: Cli, submit: Submit) -> None:
    job = submit()
    running(job)
    recorder = cli.start("--record", "--on", f"slurm,job={job}")
    studies = cli.home / ".local/share/gpuwatch"
    until(lambda: [*studies.rglob("01-bare.gpuwatch")])
    (session,) = studies.rglob("01-bare.gpuwatch")
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=PATIENCE)
    assert recorder.returncode == 130
    assert is_closed(session)
    assert state_of(job) == "RUNNING"


def test_it_goes_on_when_srun_and_its_follower_are_killed(cli: Cli, submit: Submit) -> None:
    job = submit()
    running(job)
    folder = join(cli, job)
    session_of(folder, 2)
    attempt = str(placement(folder)["attempt"])
    # srun's child first: where srun alone is killed, that one ends the step.
    killed = sorted(commands_with(f"--job-name={attempt}"), reverse=True)
    (lease,) = (cli.home / ".local/state/gpuwatch/placements").glob("*/lease.json")
    for pid in (*killed, json.loads(lease.read_text())["holder"]["pid"]):
        os.kill(pid, signal.SIGKILL)
    assert killed
    with SessionReader(folder / "01-bare.gpuwatch") as reader:
        before = len(times_of(reader))
    session = session_of(folder, before + 4)
    cli("stop", folder)
    assert placement(folder)["state"] == "cancelled"
    assert is_closed(session)
    assert state_of(job) == "RUNNING"


def commands_with(word: str) -> list[int]:
    """The processes with that word on their command line."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if word.encode() in words:
            found.append(int(folder.name))
    return found


def test_two_watch_one_job(cli: Cli, submit: Submit) -> None:
    job = submit()
    running(job)
    first, second = join(cli, job), join(cli, job)
    one, other = session_of(first, 4), session_of(second, 4)
    cli("stop", first)
    assert placement(second)["state"] == "running"
    assert (is_closed(one), is_closed(other)) == (True, False)
    cli("stop", second)


def test_several_jobs_and_other_places_are_recorded_at_once(cli: Cli, submit: Submit) -> None:
    jobs = submit(), submit()
    for job in jobs:
        running(job)
    on = [word for job in jobs for word in ("--on", f"slurm,job={job}")]
    folders = [Path(line) for line in cli("--record", "--detach", *on).stdout.splitlines()]
    for job, folder in zip(jobs, folders, strict=True):
        assert session_of(folder, 2).parent.name.startswith(f"slurm-job-{job}")
        cli("stop", folder)


def test_steps_of_the_job_need_not_wait_for_it(cli: Cli, submit: Submit) -> None:
    job = submit("--cpus-per-task=2", "--gres=gpu:4", "--mem=500")
    running(job)
    session_of(join(cli, job), 2)
    whole = ("--exact", "--ntasks=1", "--cpus-per-task=2", "--gres=gpu:4", "--mem=500")
    done = subprocess.run(
        ["srun", f"--jobid={job}", *whole, "nproc"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "2\n"


def test_doctor_of_a_job_tells_the_job_and_nothing_of_this_machine(
    cli: Cli, submit: Submit
) -> None:
    job = submit()
    running(job)
    told = cli("doctor", "--on", f"slurm,job={job}").stdout.splitlines()
    assert len(told) == 2 and told[0].startswith(f"job         {job}: running, on ")
    assert told[1].endswith(f"ask: srun --jobid={job} --overlap sh -c 'python3 -V; nvidia-smi -L'")


def test_only_the_gpus_of_the_job_are_shown(cli: Cli, driver: FakeDriver, submit: Submit) -> None:
    driver.resize(2)
    job = submit("--gres=gpu:1")
    running(job)
    session = session_of(join(cli, job), 2)
    with SessionReader(session) as reader:
        assert [each.id for each in reader.devices() if each.kind == "gpu"] == ["gpu0"]


@pytest.mark.parametrize(
    ("place", "words", "code"),
    [
        ("slurm,job=999999", "knows no job 999999", 3),
        ("slurm,job=x", "invalid job number 'x'", 2),
        ("slurm,job=0", "invalid job number '0'", 2),
        ("slurm,job=5,gres=gpu:1", "'gres' cannot be given beside job=5", 2),
    ],
)
def test_what_cannot_be_joined_leaves_nothing(cli: Cli, place: str, words: str, code: int) -> None:
    assert words in cli("--record", "--on", place, code=code).stderr
    assert words in cli("attach", "--plain", "--on", place, code=code).stderr
    assert not list(cli.home.rglob("plan.json"))
    assert not list((cli.home / ".local/state/gpuwatch/placements").glob("*"))


def test_a_job_that_is_over_or_another_users_is_refused(cli: Cli, submit: Submit) -> None:
    job = submit("--hold")
    subprocess.run(["scancel", job], check=True)
    until(lambda: state_of(job) == "CANCELLED")
    done = cli("--record", "--on", f"slurm,job={job}", code=3)
    assert f"the job {job} is over: CANCELLED" in done.stderr
    foreign = submit("--hold", "--uid=65534", "--gid=65534", "--chdir=/")
    done = cli("--record", "--on", f"slurm,job={foreign}", code=3)
    assert f"the job {foreign} is another user's" in done.stderr
    assert not list(cli.home.rglob("plan.json"))


def test_a_workload_beside_it_is_refused(cli: Cli) -> None:
    done = cli("--record", "--on", "slurm,job=5", "--", "true", code=2)
    assert "without a workload" in done.stderr
    done = cli("attach", "--plain", "--on", "ssh=gpu1", code=2)
    assert "names no job that runs already" in done.stderr
