"""Slurm's words and options, without Slurm."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gpuwatch.core.errors import UsageError
from gpuwatch.places import spec
from gpuwatch.places.base import RESUME, JobState, PlaceSpec
from gpuwatch.places.slurm import nodes, options, script, states
from gpuwatch.places.slurm.commands import Answer, environment
from gpuwatch.places.slurm.place import SlurmPlace
from gpuwatch.places.slurm.states import Seen

AT = "2026-11-25T10:28:49"

SEEN = [
    # what squeue printed, whether the recorder began, the state, its reason
    (f"1|PENDING|{AT}|n/a|Resources", False, JobState.QUEUED, "Resources"),
    ("1|PENDING|N/A|n/a|PartitionDown", False, JobState.QUEUED, "PartitionDown"),
    (
        "1|PENDING|N/A|n/a|ReqNodeNotAvail, UnavailableNodes:n1|n2",
        False,
        JobState.QUEUED,
        "ReqNodeNotAvail, UnavailableNodes:n1|n2",
    ),
    (f"1|CONFIGURING|{AT}|n1|None", False, JobState.QUEUED, "CONFIGURING"),
    ("1|REQUEUED|N/A|n/a|None", True, JobState.QUEUED, "REQUEUED"),
    ("1|REQUEUE_HOLD|N/A|n/a|None", True, JobState.QUEUED, "REQUEUE_HOLD"),
    (f"1|RUNNING|{AT}|n1|None", False, JobState.STARTING, None),
    (f"1|RUNNING|{AT}|n1|None", True, JobState.RUNNING, None),
    (f"1|COMPLETING|{AT}|n1|None", True, JobState.RUNNING, "COMPLETING"),
    (f"1|SUSPENDED|{AT}|n1|None", True, JobState.PAUSED, None),
    (f"1|COMPLETED|{AT}|n1|None", True, JobState.ENDED, None),
    (f"1|FAILED|{AT}|n1|NonZeroExitCode", True, JobState.ENDED, None),
    (f"1|FAILED|{AT}|n1|NonZeroExitCode", False, JobState.FAILED, None),
    (f"1|TIMEOUT|{AT}|n1|TimeLimit", True, JobState.TIMED_OUT, "TIMEOUT"),
    (f"1|DEADLINE|{AT}|n1|DeadLine", False, JobState.TIMED_OUT, "DEADLINE"),
    (f"1|CANCELLED|{AT}|n/a|PartitionDown", False, JobState.ENDED_BY_OTHERS, None),
    (f"1|CANCELLED by 1000|{AT}|n1|None", True, JobState.ENDED_BY_OTHERS, None),
    (f"1|PREEMPTED|{AT}|n1|None", True, JobState.PREEMPTED, "PREEMPTED"),
    (f"1|NODE_FAIL|{AT}|n1|NodeDown", True, JobState.LOST, "NODE_FAIL"),
    (f"1|BOOT_FAIL|{AT}|n1|None", False, JobState.LOST, "BOOT_FAIL"),
    (f"1|OUT_OF_MEMORY|{AT}|n1|OutOfMemory", True, JobState.OUT_OF_MEMORY, "OutOfMemory"),
    (f"1|NEW_WORD|{AT}|n1|None", True, JobState.UNKNOWN, "Slurm calls it NEW_WORD"),
]


def test_a_job_has_its_studys_name_and_one_that_is_its_own() -> None:
    assert script.name(Path("x/train.py-20260101"), "0" * 16) == f"train.py-20260101-{'0' * 16}"
    assert script.name(Path("my run, ü%"), "a" * 16) == f"my_run____-{'a' * 16}"
    assert len(script.name(Path("x" * 255), "a" * 16)) == 117


@pytest.mark.parametrize(("line", "begun", "state", "reason"), SEEN)
def test_slurms_word_for_a_state(
    line: str, begun: bool, state: JobState, reason: str | None
) -> None:
    (seen,) = states.parse_queue(f"{line}\n")
    status = states.status(seen, begun=begun)
    assert (status.state, status.reason) == (state, reason)


@pytest.mark.parametrize(
    ("named", "told"),
    [
        (None, []),
        ("gpu,down", []),
        ("unknown", []),
        ("down", ["partition down is down: a job would wait"]),
        ("down,old", ["partition down is down and old is inact: a job would wait"]),
        ("old", ["partition old is inact: takes no jobs"]),
        ("old,new", ["partition old is inact and new is drain: takes no jobs"]),
    ],
)
def test_a_partition_that_starts_no_jobs_is_told(named: str | None, told: list[str]) -> None:
    rows = ("gpu|gpu*|up", "down|down|down", "down|down|down", "old|old|inact", "new|new|drain")
    found = nodes.parse("\n".join(f"{row}|1:00:00|2|idle|2|100|(null)" for row in rows))
    assert [problem.text for problem in nodes.obstacles(found, named, 3600)] == told


def test_a_time_over_the_limit_of_each_partition_is_told_with_the_limit() -> None:
    rows = ("gpu|gpu*|up|1:00:00", "low|low|up|30:00", "long|long|up|infinite")
    found = nodes.parse("\n".join(f"{row}|2|idle|2|100|(null)" for row in rows))
    (problem,) = nodes.obstacles(found, "low,gpu", 7200)
    assert problem.text.startswith("partition gpu has a time limit of 1:00:00: ")
    assert str(problem.hint).endswith("time=1:00:00")
    assert nodes.obstacles(found, "gpu,long", 7200) == []


@pytest.mark.parametrize(("begun", "hint"), [(True, RESUME), (False, None)])
def test_a_job_that_others_ended_is_resumed_where_a_run_had_begun(
    begun: bool, hint: str | None
) -> None:
    assert states.status(Seen("7", "CANCELLED"), begun=begun).hint == hint


def test_the_expected_start_of_a_queued_job_is_in_local_time() -> None:
    (seen,) = states.parse_queue(f"7|PENDING|{AT}|n/a|Priority")
    starts = states.status(seen, begun=False).starts
    assert starts is not None
    assert time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(starts)) == AT


@pytest.mark.parametrize(
    ("nodes", "told"),
    [("nodes n[1-2]", "n[1-2]"), ("n1,x2", "n1,x2"), ("nodes n1", None), ("n1", None)],
)
def test_several_nodes_are_told_from_one(nodes: str, told: str | None) -> None:
    line = f"sbatch: Job 7 to start at {AT} using 2 processors on {nodes} in partition gpu\n"
    assert states.parse_nodes(f"sbatch: partitions: a,b\n{line}") == told
    assert states.parse_start(line) is not None


def test_other_lines_of_squeue_are_left_out() -> None:
    text = f"CLUSTER: lab\nWelcome to this site|really|now|and|here\n7|RUNNING|{AT}|n1|None\n"
    assert [seen.id for seen in states.parse_queue(text)] == ["7"]


HINTS = [
    ("Resources", None),
    ("Priority", None),
    ("PartitionDown", "sinfo lists the others"),
    ("PartitionTimeLimit", "will never start"),
    ("QOSMaxJobsPerUserLimit", "a limit of your account"),
    ("AssocGrpGRES", "a limit of your account"),
    ("QOSMaxGRESPerJob", "will never start"),
    ("ReqNodeNotAvail, UnavailableNodes:n1", "sinfo -R"),
    ("BadConstraints", "will never start"),
    ("InvalidQOS", "account=NAME,qos=NAME"),
    ("JobHeldUser", "scontrol release 7"),
    ("launch failed requeued held", "ask an administrator"),
]


@pytest.mark.parametrize(("reason", "hint"), HINTS)
def test_a_reason_that_may_never_pass_has_a_hint(reason: str, hint: str | None) -> None:
    status = states.status(Seen("7", "PENDING", reason=reason), begun=False)
    assert hint in (status.hint or "") if hint else status.hint is None


def test_a_job_that_ended_after_slurms_notice_reached_its_limit() -> None:
    shown = "JobState=FAILED ExitCode=1:0 RunTime=00:{} TimeLimit=00:30:00 Comment=ExitCode=0:0"
    for ran, reached in (("29:01", True), ("28:05", True), ("27:30", False), ("00:10", False)):
        ended = states.parse_ended(shown.format(ran))
        assert ended is not None and ended.limit == 1800
        assert states.at_its_limit(ended, 60) is reached
    killed = states.parse_ended("ExitCode=0:9 RunTime=00:29:30 TimeLimit=00:30:00")
    assert killed is not None and killed.signal == 9
    endless = states.parse_ended("ExitCode=1:0 RunTime=2-00:29:30 TimeLimit=UNLIMITED")
    assert endless is not None and endless.ran == 174_570 and not states.at_its_limit(endless, 60)


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("", None),
        ("RUNNING\n", None),
        ("CANCELLED by 1000\n", "CANCELLED"),
        ("PREEMPTED\nTIMEOUT\n", "TIMEOUT"),
    ],
)
def test_accounting_tells_final_states_only(text: str, word: str | None) -> None:
    assert states.parse_accounting(text) == word


def parsed(**given: str) -> options.Options:
    return options.parse(
        PlaceSpec("slurm", None, {k.replace("_", "-"): v for k, v in given.items()})
    )


def test_options_are_sbatchs_own() -> None:
    words = parsed(partition="gpu", gres="gpu:a100:2", nodelist="n[1,3-5]", exclusive="").words
    assert words == ("--partition=gpu", "--gres=gpu:a100:2", "--nodelist=n[1,3-5]", "--exclusive")


RESERVED = (
    "job-name output error open-mode requeue no-requeue signal array wrap export export-file chdir "
    "input wait parsable test-only uid gid outpu exp arr job-n wra help version"
)


@pytest.mark.parametrize("key", RESERVED.split())
def test_what_gpuwatch_sets_itself_is_refused_with_the_reason_also_abbreviated(key: str) -> None:
    with pytest.raises(UsageError, match=f"'{key}' cannot be given in --on slurm: ") as error:
        options.parse(PlaceSpec("slurm", None, {key: "x"}))
    assert error.value.hint == "leave it out"


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("-partition", "gpu"),
        ("p", "gpu"),
        ("Partition", "gpu"),
        ("partition gpu", ""),
        ("partition", "--wrap=x"),
        ("partition", "gpu\nx"),
        ("comment", "\x1b[31m"),
        ("setup", "/nowhere/setup.sh"),
        ("jobs", "\n"),
    ],
)
def test_misspelt_options_are_refused(key: str, value: str) -> None:
    with pytest.raises(UsageError):
        options.parse(PlaceSpec("slurm", None, {key: value}))


def test_slurm_has_no_name() -> None:
    with pytest.raises(UsageError, match="takes options, not the name 'gpu1'"):
        options.parse(PlaceSpec("slurm", "gpu1"))


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("1:30", 90),
        ("2:00:00", 7200),
        ("1-2", 93_600),
        ("1-2:30", 95_400),
        ("1-0:0:5", 86_405),
        ("UNLIMITED", None),
        ("", None),
    ],
)
def test_time_limits(text: str, seconds: int | None) -> None:
    assert options.seconds(text) == seconds


def test_a_short_job_is_told_later_of_its_limit() -> None:
    assert [parsed(time=text).notice for text in ("30", "2", "1", "0:10")] == [60, 30, 15, 2]
    assert parsed().notice == 60


def test_a_setup_file_is_known_by_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "modules.sh").write_text("true\n")
    monkeypatch.chdir(tmp_path)
    assert parsed(setup="modules.sh") == options.Options(setup=tmp_path / "modules.sh")


def test_variables_of_another_job_are_left_out() -> None:
    ours = {
        "PATH": "/bin",
        "SLURM_CPU_BIND": "quiet",
        "SLURM_JOB_ID": "1",
        "SBATCH_PARTITION": "x",
        "SQUEUE_FORMAT": "%i",
        "PMIX_RANK": "0",
        "SLURM_CONF": "/etc/x",
        "GPUWATCH_LEFT_OUT": "SLURM_MEM_BIND",
    }
    kept = {"PATH": "/bin", "SLURM_CONF": "/etc/x"}
    assert environment(ours) == {**kept, "GPUWATCH_LEFT_OUT": "SLURM_CPU_BIND"}
    assert environment({"PATH": "/bin", "SLURM_JOB_ID": "1"}) == {"PATH": "/bin"}


def test_what_sinfo_tells_of_partitions() -> None:
    printed = (
        "CLUSTER: one\n"
        "gpu|gpu*|up|1:00:00|2|idle|64|515000|gpu:h100:4\n"
        "cpu|cpu|inactive|infinite|1|down*|8+|16000+|(null)\n"
    )
    first, second = nodes.parse(printed)
    assert first.line == (
        "partition   gpu (default), up, time limit 1:00:00: 2 nodes idle, "
        "each 64 CPUs, 515000 MiB, gres gpu:h100:4"
    )
    assert second.line == (
        "partition   cpu, inactive, time limit infinite: 1 node down*, "
        "each 8+ CPUs, 16000+ MiB, no gres"
    )
    assert (first.gres, second.gres) == ("gpu:h100:4", None)


def test_the_file_system_of_a_folder_is_that_of_the_nearest_mount(tmp_path: Path) -> None:
    mounts = f"""\
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
51 22 0:45 /export {tmp_path}/my\\040home rw shared:9 master:2 - nfs4 server:/export rw
a line of another form
"""
    assert nodes.file_system(tmp_path / "my home" / "studies", mounts) == "nfs4"
    assert nodes.file_system(tmp_path / "my", mounts) == "ext4"
    assert nodes.file_system(tmp_path, "") is None


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        ("squeue: slurm_load_jobs error: Invalid job id specified", "Invalid job id specified"),
        ("slurm_load_jobs error: Invalid job id specified", "Invalid job id specified"),
        ("sbatch: error: Batch job submission failed: no", "Batch job submission failed: no"),
        ("allocation failure: Invalid qos", "Invalid qos"),
        ("\nsrun: error: gone\nmore", "gone"),
        ("", "it ended with the code 1"),
    ],
)
def test_a_reason_is_told_without_what_slurm_puts_before_it(printed: str, reason: str) -> None:
    assert Answer(1, "", printed).problem == reason


def test_the_path_of_a_setup_file_is_noted_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder := tmp_path / "a,b").mkdir()
    (folder / "setup.sh").touch()
    monkeypatch.chdir(folder)
    text = "slurm,setup=setup.sh,time=3"
    exact = SlurmPlace(spec.parse(text), tmp_path).exact(text)
    assert exact == f'slurm,setup="{folder}/setup.sh",time=3'
    monkeypatch.chdir("/")
    assert spec.parse(exact).options == {"setup": str(folder / "setup.sh"), "time": "3"}
