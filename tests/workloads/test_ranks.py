"""Runs of several ranks: the archive as processes of its own, and what each rank reports."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from gpuwatch.workloads.clock import PHASES
from tests.waiting import until

from .conftest import Report, parse

pytestmark = pytest.mark.torch

Run = Callable[..., Report]
LONG = ("sentiment-rnn", "--nproc", "2", "--steps", "1000000", "--warmup", "0")


def ranks_of(folder: Path) -> list[Report]:
    """What each rank wrote into the channel, by rank."""
    reports = []
    for path in folder.iterdir():
        events = [json.loads(line) for line in path.read_text().splitlines()]
        reports.append(Report(events, 0, [], ""))
    return sorted(reports, key=lambda report: report.events[0]["rank"])


def alive(pid: int) -> bool:
    try:
        return "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False


@contextmanager
def training(archive: Path, channel: Path) -> Iterator[tuple[subprocess.Popen[str], list[int]]]:
    """The launcher of two ranks that both train, and their PIDs by rank."""
    process = subprocess.Popen(
        [sys.executable, str(archive), *LONG],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        env={
            **os.environ,
            "GPUWATCH_HOOK": str(channel),
            "OMP_NUM_THREADS": "1",
            "CUDA_VISIBLE_DEVICES": "",
        },
    )

    def both() -> list[int]:
        begun = [path for path in channel.iterdir() if '"event": "step"' in path.read_text()]
        return [report.events[0]["pid"] for report in ranks_of(channel)] if len(begun) == 2 else []

    try:
        yield process, until(both)
    finally:
        process.kill()
        process.communicate()


def test_each_rank_reports_its_own_shard_to_a_file_of_its_own(
    run_workload: Run, tmp_path: Path
) -> None:
    done = run_workload("mnist-cnn", "--nproc", 2, "--workers", 0, GPUWATCH_HOOK=str(tmp_path))
    assert (done.code, done.stderr) == (0, "")
    assert done.events == []
    reports = ranks_of(tmp_path)
    assert len(reports) == 2
    for number, report in enumerate(reports):
        hook = report.events[0]
        assert (hook["event"], hook["version"]) == ("hook", 1)
        assert (hook["rank"], hook["local_rank"], hook["world_size"]) == (number, number, 2)
        assert hook["program"] == "workloads.pyz"
        run = report.one("run")
        assert (run["batch_size"], run["steps_per_epoch"]) == (64, 4)
        assert run["parameters"]["nproc"] == 2
        numbers = [
            number
            for line in report.all("step")
            for number in range(line["step"] - line["count"] + 1, line["step"] + 1)
        ]
        assert numbers == [1, 2, 3, 4, 5]
        assert report.all("step")[0]["warmup"] is True
        assert sum(line["samples"] for line in report.steps()) == 256
        assert {line["total_steps"] for line in report.steps()} == {run["total_steps"]} == {5}
        for line in report.all("step"):
            assert set(line["phases"]) == set(PHASES)
            assert sum(line["phases"].values()) == pytest.approx(sum(line["seconds"]), abs=1e-6)
        assert report.one("end")["steps"] == 4
        assert report.all("profile") == []
    one, other = reports
    assert one.one("count")["flop_per_step"] == other.one("count")["flop_per_step"]
    assert one.losses() != other.losses()
    for path in tmp_path.iterdir():
        assert path.stat().st_mode & 0o777 == 0o600
        assert path.name.startswith(tuple(f"{report.events[0]['pid']}-" for report in reports))


def test_two_ranks_train_as_one_process_with_twice_the_batch(
    run_workload: Run, fork_workload: Run, tmp_path: Path
) -> None:
    """Gradients are averaged: with one batch of all data, both see the loss of the whole."""
    flags = ("--steps", 4, "--warmup", 0)
    alone = fork_workload("sentiment-rnn", "--batch-size", 1000, *flags)
    run_workload(
        "sentiment-rnn", "--batch-size", 500, "--nproc", 2, *flags, GPUWATCH_HOOK=str(tmp_path)
    )
    both = [report.losses() for report in ranks_of(tmp_path)]
    means = [(one + other) / 2 for one, other in zip(*both, strict=True)]
    assert means == pytest.approx(alone.losses(), rel=1e-5)


def test_without_a_channel_rank_0_alone_prints(run_workload: Run) -> None:
    done = run_workload("sentiment-rnn", "--nproc", 2, "--steps", 20)
    assert (done.code, done.log, done.stderr) == (0, [], "")
    order = list(dict.fromkeys(event["event"] for event in done.events))
    assert order == ["started", "versions", "run", "step", "startup", "count", "epoch", "end"]
    assert done.one("end")["steps"] == sum(line["count"] for line in done.steps()) == 20


def test_one_rank_is_a_run_as_ever(run_workload: Run, fork_workload: Run, tmp_path: Path) -> None:
    flags = ("sentiment-rnn", "--steps", 3, "--warmup", 0, "--profile", 0)
    plain = fork_workload(*flags)
    one = run_workload(*flags, "--nproc", 1, GPUWATCH_HOOK=str(tmp_path))
    assert one.losses() == plain.losses()
    assert one.one("run") == plain.one("run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("mnist-cnn", "--nproc", 0), "must be an integer of at least 1"),
        (("mnist-cnn", "--nproc", 257), "must be at most 256"),
        (("gcn", "--nproc", 2), "gcn trains on all its data as one batch"),
        (("mnist-cnn", "--nproc", 2, "--profile", 4), "--profile measures one process"),
        (("mnist-cnn", "--nproc", 2, "--counters"), "--counters measures one process"),
        (("mnist-cnn", "--nproc", 2, "--device", "cuda:1"), "cuda:1 is one GPU"),
    ],
)
def test_what_several_ranks_cannot_do_is_refused_before_any_starts(
    run_workload: Run, flags: tuple[object, ...], message: str
) -> None:
    done = run_workload(*flags)
    assert done.code == 2
    assert message in done.one("error")["message"]
    assert len(done.stderr.splitlines()) == 1
    assert done.events == done.all("error")


def test_a_failure_that_all_ranks_share_is_told_once(run_workload: Run, tmp_path: Path) -> None:
    done = run_workload("mnist-cnn", "--nproc", 2, "--batch-size", 300)
    assert done.code == 2
    assert done.one("error")["message"] == "a batch of 300 is more than a rank's 256 samples"
    assert len(done.stderr.splitlines()) == 1
    done = run_workload("mnist-cnn", "--nproc", 2, GPUWATCH_HOOK=str(tmp_path / "none"))
    assert done.code == 3
    assert "cannot report to the folder that GPUWATCH_HOOK names" in done.one("error")["message"]
    assert len(done.stderr.splitlines()) == 1


def test_a_rank_that_fails_ends_all_and_its_error_is_told_once_whatever_signal_follows(
    run_workload: Run, tmp_path: Path
) -> None:
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, os, signal\n"
        "if os.environ.get('RANK') == '1':\n"
        "    import torch\n"
        "    def fail(self): raise RuntimeError('the disk of rank 1 is on fire')\n"
        "    torch.optim.SGD.step = fail\n"
        "    atexit.register(os.kill, os.getpid(), signal.SIGTERM)\n"
    )
    done = run_workload(*LONG, PYTHONPATH=str(tmp_path))
    assert done.code == 1
    assert done.one("error")["message"] == "rank 1: RuntimeError: the disk of rank 1 is on fire"
    assert done.stderr == "run: rank 1: RuntimeError: the disk of rank 1 is on fire\n"


def test_a_rank_that_is_killed_ends_all(archive: Path, tmp_path: Path) -> None:
    with training(archive, tmp_path) as (process, pids):
        os.kill(pids[1], signal.SIGKILL)
        stdout, stderr = process.communicate(timeout=60)
        assert process.returncode == 1
        (error,) = parse(stdout)[0]
        assert error["message"] == "rank 1 was ended by SIGKILL"
        assert len(stderr.splitlines()) == 1
        assert not any(map(alive, pids))


@pytest.mark.parametrize(
    ("signum", "group"), [(signal.SIGTERM, False), (signal.SIGINT, True), (signal.SIGTERM, True)]
)
def test_a_signal_ends_all_ranks_at_once_and_says_nothing(
    archive: Path, tmp_path: Path, signum: signal.Signals, group: bool
) -> None:
    with training(archive, tmp_path) as (process, pids):
        (os.killpg if group else os.kill)(process.pid, signum)
        stdout, stderr = process.communicate(timeout=60)
        assert (process.returncode, stdout, stderr) == (128 + signum, "", "")
        assert not any(map(alive, pids))
    for report in ranks_of(tmp_path):
        assert report.one("end")["steps"] == sum(line["count"] for line in report.steps())


def test_ranks_listen_on_the_loopback_interface_only_and_end_with_a_launcher_that_is_killed(
    archive: Path, tmp_path: Path
) -> None:
    with training(archive, tmp_path) as (process, pids):
        sockets = set()
        for pid in pids:
            for path in Path(f"/proc/{pid}/fd").iterdir():
                target = os.readlink(path)
                if target.startswith("socket:["):
                    sockets.add(target[8:-1])
        listening = [
            fields[1]
            for table in ("tcp", "tcp6")
            for fields in map(str.split, Path("/proc/net", table).read_text().splitlines()[1:])
            if fields[3] == "0A" and fields[9] in sockets
        ]
        assert listening
        assert all(address.startswith("0100007F:") for address in listening)
        process.kill()
        until(lambda: not any(map(alive, pids)))
