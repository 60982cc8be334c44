"""Jobs in a real Slurm of two nodes (``.ci/slurm``)."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.places.base import Job, JobState, JobStatus, PlaceSpec, Refused
from gpuwatch.places.slurm import script
from gpuwatch.places.slurm.place import SlurmPlace
from gpuwatch.session.study.plan import Plan, Settings
from gpuwatch.session.study.plan_file import document
from tests.conftest import Cli
from tests.places import stand_in
from tests.waiting import until

# A test may wait for those of other workers to leave the nodes.
pytestmark = [pytest.mark.slurm, pytest.mark.timeout(600)]

ROOT = Path(__file__).parents[3]
PATIENCE = 180.0


class Study:
    """A study's folder, its job, and the place."""

    def __init__(self, folder: Path, plan: dict[str, object], options: dict[str, str]) -> None:
        folder.mkdir()
        (folder / "plan.json").write_text(json.dumps(plan))
        capsule = stand_in.make(folder.with_name(f"{folder.name}.pyz"))
        self.folder = folder
        self.place = SlurmPlace(PlaceSpec("slurm", None, options), capsule)
        self.job = Job(secrets.token_hex(8), folder.name, folder)
        self.native = ""

    def submit(self) -> None:
        self.native = self.place.submit(self.job)

    @property
    def status(self) -> JobStatus:
        return self.place.state(self.job, self.native)

    def wait_for(self, *states: JobState) -> JobStatus:
        return until(
            lambda: [each for each in (self.status,) if each.state in states], f"{states}", PATIENCE
        )[0]

    def cancel(self) -> None:
        self.place.cancel(self.job, self.native)

    @property
    def process(self) -> dict[str, object]:
        """What the recorder noted of itself."""
        until((self.folder / "process.json").exists, "it begins", PATIENCE)
        noted: dict[str, object] = json.loads((self.folder / "process.json").read_text())
        return noted

    @property
    def environment(self) -> dict[str, str]:
        environment = self.process["environment"]
        assert isinstance(environment, dict)
        return environment

    @property
    def saved(self) -> bool:
        return (self.folder / "saved").exists()


Studies = Callable[..., Study]


@pytest.fixture
def study(tmp_path: Path) -> Iterator[Studies]:
    """``study(plan, name=..., **options)``: a study that is not submitted yet."""
    made: list[Study] = []

    def make(plan: dict[str, object] | None = None, name: str = "", **options: str) -> Study:
        given = {key.replace("_", "-"): value for key, value in options.items()}
        made.append(Study(tmp_path / (name or f"study{len(made)}"), plan or {}, given))
        return made[-1]

    yield make
    for each in made:
        subprocess.run(["scancel", f"--name={name_of(each.job)}"], check=False)
    for each in made:
        subprocess.run(["scancel", "-s", "KILL", f"--name={name_of(each.job)}"], check=False)


def slurm(*words: str) -> None:
    """Do something to the daemons."""
    subprocess.run([ROOT / ".ci/slurm", *words], check=True, capture_output=True)


def name_of(job: Job) -> str:
    return script.name(job.folder, job.attempt)


def jobs(job: Job) -> list[str]:
    asked = ["squeue", "--noheader", "--states=all", f"--name={name_of(job)}", "--format=%A"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()


def test_a_job_from_submission_to_its_end(
    study: Studies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_CPU_BIND", "quiet,mask_cpu:0x1")
    monkeypatch.setenv("SLURM_LEAKED", "x")
    monkeypatch.setenv("SBATCH_PARTITION", "down")
    monkeypatch.setenv("SQUEUE_FORMAT", "%j")
    monkeypatch.setenv("OF_THE_USER", "kept")
    one = study({"code": 1}, gres="gpu:2", cpus_per_task="2")
    assert one.place.preflight() == []
    one.submit()
    running = one.wait_for(JobState.RUNNING)
    assert running.where in ("n1", "n2")
    environment = one.environment
    assert environment["SLURM_JOB_ID"] == one.native
    assert len(environment["CUDA_VISIBLE_DEVICES"].split(",")) == 2
    assert environment["SLURM_CPUS_PER_TASK"] == "2"
    assert environment["OF_THE_USER"] == "kept"
    assert not {"SLURM_CPU_BIND", "SLURM_LEAKED", "SBATCH_PARTITION"} & environment.keys()
    assert one.process["cwd"] == str(one.folder)
    (one.folder / "go").touch()
    assert one.wait_for(JobState.ENDED).reason is None
    assert not one.saved


def test_that_one_of_several_nodes_is_recorded_is_said(study: Studies) -> None:
    assert study(nodes="1").place.preview(()).notes == ()
    (note,) = study(partition="down").place.preview(()).notes
    assert note == "partition down is down: a job would wait; sinfo lists the others"
    (note,) = study(nodes="2").place.preview(()).notes
    assert note == "of its nodes, as n[1-2], the first alone runs and records the study"


def test_a_job_waits_in_the_queue_with_slurms_reason_and_is_cancelled_there(study: Studies) -> None:
    one = study(partition="down")
    one.submit()
    status = one.status
    assert (status.state, status.reason) == (JobState.QUEUED, "PartitionDown")
    assert status.hint == "the partition starts no jobs; sinfo lists the others"
    one.cancel()
    assert one.status == JobStatus(JobState.CANCELLED)
    one.cancel()  # nothing happens
    assert not (one.folder / "attempts").exists()


def test_a_job_that_waits_for_its_turn_has_an_expected_start(study: Studies) -> None:
    first = study({"seconds": 600}, nodelist="n1", exclusive="", time="20")
    begun = time.time()
    first.submit()
    first.wait_for(JobState.RUNNING)
    second = study(nodelist="n1", exclusive="", time="20")
    second.submit()
    until(lambda: second.status.starts is not None, "an expected start", PATIENCE)
    status = second.status
    assert status.state is JobState.QUEUED and status.reason in ("Resources", "Priority")
    assert status.starts is not None and begun + 1100 < status.starts < time.time() + 1300
    first.cancel()
    second.wait_for(JobState.RUNNING)


def test_a_running_job_that_is_cancelled_saves_first(study: Studies) -> None:
    one = study()
    one.submit()
    assert one.process["pid"]
    one.wait_for(JobState.RUNNING)
    one.cancel()
    assert one.wait_for(JobState.CANCELLED).where is not None
    assert one.saved


def test_a_job_of_that_name_is_taken_up_not_submitted_again(study: Studies) -> None:
    one = study()
    one.submit()
    again = SlurmPlace(PlaceSpec("slurm", None, {}), one.folder.with_name("study0.pyz"))
    assert [again.submit(one.job) for _ in range(3)] == [one.native] * 3
    assert jobs(one.job) == [one.native]


def test_a_submission_of_which_the_answer_is_lost_is_taken_up(
    study: Studies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrapper as a site has one, which prints no id."""
    wrapper(tmp_path, monkeypatch, "/usr/bin/sbatch \"$@\" >/dev/null; echo 'Thank you!'")
    one = study()
    one.submit()
    assert jobs(one.job) == [one.native]


def test_what_a_sites_own_sbatch_prints_besides_is_skipped(
    study: Studies, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wrapper(tmp_path, monkeypatch, 'echo "You have 42 hours left"; exec /usr/bin/sbatch "$@"')
    one = study()
    one.submit()
    assert jobs(one.job) == [one.native]


def wrapper(folder: Path, monkeypatch: pytest.MonkeyPatch, body: str) -> None:
    (folder / "bin").mkdir()
    program = folder / "bin/sbatch"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}/bin:{os.environ['PATH']}")


def test_another_job_is_never_cancelled(study: Studies) -> None:
    mine, other = study(), study()
    other.submit()
    other.wait_for(JobState.RUNNING)
    mine.place.cancel(mine.job, other.native)
    mine.submit()
    mine.place.cancel(mine.job, other.native)
    (other.folder / "go").touch()
    other.wait_for(JobState.ENDED)
    assert not other.saved


REFUSED = [
    ({"partition": "nope"}, "invalid partition specified: nope"),
    ({"gres": "gpu:9"}, "Requested node configuration is not available"),
    ({"frobnicate": "1"}, "unrecognized option '--frobnicate=1'"),
    ({"time": "soon"}, "Invalid --time specification"),
]


@pytest.mark.parametrize(("options", "words"), REFUSED)
def test_slurms_own_words_for_options_that_it_refuses(
    study: Studies, options: dict[str, str], words: str
) -> None:
    one = study(**options)
    (problem,) = one.place.preflight()
    assert problem.text == f"Slurm refuses such a job: {words}"
    with pytest.raises(Refused, match=r"^Slurm does not take the job: "):
        one.submit()
    # It may be listed for a moment, as one that is over.
    for native in jobs(one.job):
        assert one.place.state(one.job, native).state.over


def test_a_recorder_that_cannot_begin_leaves_its_words(study: Studies) -> None:
    one = study({"refuse": "gpuwatch: error: the plan is of another gpuwatch"})
    one.submit()
    assert one.wait_for(JobState.FAILED).reason is None
    assert (
        one.place.log(one.job, one.native) == "gpuwatch: error: the plan is of another gpuwatch\n"
    )


def test_a_node_without_python_is_told(study: Studies) -> None:
    one = study(python="/nowhere/python3")
    one.submit()
    one.wait_for(JobState.FAILED)
    assert one.place.log(one.job, one.native) == "there is no /nowhere/python3\n"


def test_a_node_without_the_working_folder_runs_nothing(study: Studies) -> None:
    one = study()
    plan = Plan("study", (), (), settings=Settings(working_directory="/nowhere"))
    (one.folder / "plan.json").write_text(json.dumps(document(plan)))
    one.submit()
    one.wait_for(JobState.FAILED)
    assert "/nowhere: No such file or directory" in one.place.log(one.job, one.native)


def test_a_setup_file_is_read_first_and_its_digest_told(study: Studies, tmp_path: Path) -> None:
    setup = tmp_path / "my modules.sh"
    setup.write_text("export FROM_SETUP=yes\n")
    one = study(setup=str(setup))
    one.submit()
    digest = hashlib.sha256(setup.read_bytes()).hexdigest()
    assert one.environment["FROM_SETUP"] == "yes"
    assert one.environment["GPUWATCH_SETUP"] == digest


def test_a_folder_may_have_any_name(study: Studies) -> None:
    one = study({"seconds": 0}, name="a study, 100 %j 'of' $HOME mine")
    one.submit()
    one.wait_for(JobState.ENDED)
    assert one.process["cwd"] == str(one.folder)
    assert (one.folder / "job.log").exists()
    with pytest.raises(Refused, match="a path with a backslash"):
        study(name="back\\slash").submit()


def test_what_a_job_prints_is_cut_to_its_end(study: Studies) -> None:
    one = study({"refuse": "x" * 10_000 + " the end"})
    one.submit()
    one.wait_for(JobState.FAILED)
    text = one.place.log(one.job, one.native)
    assert len(text) == 4000 and text.endswith(" the end\n")


def test_a_job_that_takes_too_much_memory_is_told(study: Studies) -> None:
    one = study({"megabytes": 400}, mem="200M")
    one.submit()
    assert one.wait_for(JobState.OUT_OF_MEMORY).where is not None


def test_a_recorder_that_is_killed_is_lost(study: Studies) -> None:
    one = study()
    one.submit()
    assert one.process["pid"]
    subprocess.run(["scancel", "--batch", "--signal=KILL", one.native], check=True)
    assert one.wait_for(JobState.LOST).reason == "its recorder was killed"


def test_a_suspended_job_is_paused_and_goes_on(study: Studies) -> None:
    one = study()
    one.submit()
    one.wait_for(JobState.RUNNING)
    subprocess.run(["scontrol", "suspend", one.native], check=True)
    one.wait_for(JobState.PAUSED)
    subprocess.run(["scontrol", "resume", one.native], check=True)
    one.wait_for(JobState.RUNNING)


def test_nobody_starts_a_job_again(study: Studies) -> None:
    one = study()
    one.submit()
    one.wait_for(JobState.RUNNING)
    asked = subprocess.run(
        ["scontrol", "requeue", one.native], capture_output=True, text=True, check=False
    )
    assert asked.returncode == 1, asked
    assert one.status.state is JobState.RUNNING


@pytest.mark.slow
def test_a_job_that_slurm_has_forgotten(study: Studies) -> None:
    ended, failed, cancelled = study({"seconds": 0}), study({"refuse": "no"}), study()
    for each in (ended, failed, cancelled):
        each.submit()
    ended.wait_for(JobState.ENDED)
    failed.wait_for(JobState.FAILED)
    cancelled.wait_for(JobState.RUNNING)
    cancelled.cancel()
    cancelled.wait_for(JobState.CANCELLED)
    for each in (ended, failed, cancelled):  # MinJobAge is 40 s, looked at twice a minute
        until(lambda each=each: not jobs(each.job), "it is forgotten", PATIENCE)
    assert ended.status == JobStatus(JobState.ENDED)
    assert cancelled.status == JobStatus(JobState.CANCELLED)
    assert failed.status.state is JobState.LOST
    assert failed.status.reason == f"Slurm has forgotten the job {failed.native}"
    unfinished = ended.folder / "session.gpuwatch"
    unfinished.touch()
    Path(f"{unfinished}-journal").touch()
    assert ended.status.state is JobState.LOST


@pytest.mark.slow
def test_a_time_limit_lets_the_recorder_save(study: Studies) -> None:
    one = study(time="1")
    one.submit()
    one.wait_for(JobState.RUNNING)
    status = one.wait_for(JobState.TIMED_OUT)
    assert status.hint == (
        f"start the runs that are missing: gpuwatch resume {one.job.folder.name}; what was cut off "
        "starts again from its beginning, with the same limit unless --on slurm,... names another; "
        "its session is kept beside the new one"
    )
    assert one.saved


@pytest.mark.slow
def test_a_recorder_that_does_not_end_at_its_limit_is_killed(study: Studies) -> None:
    one = study({"stubborn": True}, time="1")
    one.submit()
    one.wait_for(JobState.RUNNING)
    until(lambda: one.status.state.over, "its end", PATIENCE)
    assert one.status.state is JobState.TIMED_OUT


def test_a_preempted_job_is_told_and_not_started_again(study: Studies) -> None:
    low = study(partition="low", nodelist="n1", exclusive="")
    low.submit()
    assert low.process["pid"]
    high = study(partition="gpu", nodelist="n1", exclusive="")
    high.submit()
    status = low.wait_for(JobState.PREEMPTED)
    assert status.hint == f"start the runs that are missing: gpuwatch resume {low.job.folder.name}"
    assert low.saved
    high.wait_for(JobState.RUNNING)
    high.cancel()
    high.wait_for(JobState.CANCELLED)
    assert jobs(low.job) in ([low.native], [])


def test_a_job_whose_node_fails_is_lost(study: Studies) -> None:
    one = study(nodelist="n2")
    one.submit()
    assert one.process["pid"]
    try:
        slurm("stop", "n2")
        status = one.wait_for(JobState.LOST)
        assert (status.reason, status.where) == ("NODE_FAIL", "n2")
    finally:
        slurm("start", "n2")
        wait_for_nodes()


def wait_for_nodes() -> None:
    def up() -> bool:
        asked = ["sinfo", "--noheader", "-N", "-p", "gpu", "--format=%t"]
        states = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
        return len(states) == 2 and set(states) <= {"idle", "mix", "alloc"}

    until(up, "both nodes are up", PATIENCE)


def test_doctor_tells_what_slurm_says_and_of_this_machine_the_disk_alone(cli: Cli) -> None:
    done = cli("doctor", "--on", "slurm,partition=gpu")
    assert "partition   gpu (default), up" in done.stdout and "gres gpu:4" in done.stdout
    assert "disk        " in done.stdout and "share" in done.stdout
    assert re.search(r"start  .*slurm,partition=gpu would start a job at \d\d:\d\d", done.stdout)
    assert "not known before a job runs; ask: srun --partition=gpu sh -c 'python3" in done.stdout
    assert "torch  " not in done.stdout and "clock" not in done.stderr
    found = json.loads(cli("doctor", "--on", "slurm", "--format", "json").stdout)
    assert found["ready"] and found["starts"] > 1.6e9
    assert {row["partition"] for row in found["partitions"]} > {"gpu", "low"}
    refused = cli("doctor", "--on", "slurm,partition=nope", code=3)
    assert "nope" in refused.stderr and "ask: srun" not in refused.stdout
