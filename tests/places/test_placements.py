"""This user's record of what was sent to places: the only authority on what may be done there."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpuwatch.cli import main
from gpuwatch.cli.commands import stop
from gpuwatch.cli.place.watching import until_over
from gpuwatch.core import paths
from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.places import placements
from gpuwatch.places.base import Job, JobState, JobStatus, Place
from gpuwatch.places.follower import follow
from gpuwatch.places.placements import Placed
from gpuwatch.session import placement
from gpuwatch.session.placement import Placement
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import Label


@pytest.fixture
def placed(tmp_path: Path) -> Placed:
    (tmp_path / "capsule").write_bytes(b"capsule")
    (tmp_path / "study").mkdir()
    return placements.create("ssh=gpu1", tmp_path / "study", tmp_path / "capsule")


def _folder(placed: Placed) -> Path:
    return placed.capsule.parent


def test_what_is_noted_is_read_again(placed: Placed) -> None:
    assert placements.read(placed.id) == placed
    assert placements.of_study(Path(placed.study)) == placed
    assert placements.named("study") == placed
    assert placements.newest() == placed
    assert placed.capsule.read_bytes() == b"capsule"
    assert placed.job.study == f"study-{placed.id[:8]}"
    again = placements.new_attempt(placements.update(placed, native="7", done=True))
    assert (again.attempt != placed.attempt, again.native, again.done) == (True, None, False)
    placements.forget(again)
    assert placements.all_placed() == []


def test_a_name_of_several_studies_is_refused_and_they_are_told(
    placed: Placed, tmp_path: Path
) -> None:
    (other := tmp_path / "other" / "study").mkdir(parents=True)
    sent = [placements.create("slurm", other, tmp_path / "capsule") for _ in range(2)]
    with pytest.raises(UsageError, match="study may be any of 2") as refused:
        placements.named("study")
    assert str(other) in str(refused.value.hint) and placed.study in str(refused.value.hint)
    assert placements.named(str(other)) == placements.newest() == sent[1], "sent again"
    placements.forget(placed)
    assert placements.named("study") == sent[1]


def test_a_study_that_was_moved_or_copied_is_not_the_one_that_was_sent(placed: Placed) -> None:
    Path(placed.study).rename(Path(placed.study).with_name("other"))
    assert placements.of_study(Path(placed.study).with_name("other")) is None


class _Cancelled(Place):
    """A place whose job waits at the first look, and is cancelled at the next."""

    shares_files = True

    def __init__(self) -> None:
        waits = JobStatus(JobState.STARTING, "ImagePullBackOff", where="n1")
        self._looks = [JobStatus(JobState.CANCELLED), waits]

    def connect(self, *, person: bool) -> None: ...

    def submit(self, job: Job) -> str:
        return "7"

    def state(self, job: Job, native: str) -> JobStatus:
        return self._looks.pop()

    def log(self, job: Job, native: str) -> str:
        return ""


def test_what_a_cancelled_job_waited_for_stays_known(placed: Placed) -> None:
    follow(placed, _Cancelled())
    known = placement.read(Path(placed.study))
    assert known is not None
    assert known.text == "cancelled on n1: was starting: ImagePullBackOff"


def test_a_place_that_its_follower_cannot_read_is_what_is_known(
    placed: Placed, tmp_path: Path
) -> None:
    place = f"slurm,setup={tmp_path / 'gone.sh'}"
    sent = placements.create(place, Path(placed.study), tmp_path / "capsule")
    assert main(["follow", sent.id]) == 2
    known = placement.read(Path(placed.study))
    assert known is not None and known.state is JobState.UNKNOWN
    assert known.reason == f"there is no file {tmp_path / 'gone.sh'}"


def test_a_study_at_a_place_is_found_by_its_name_before_it_has_a_session(placed: Placed) -> None:
    study = Path(placed.study)
    paths.remember_study(study)
    placement.write(study, Placement(placed.place, placed.attempt, JobState.QUEUED))
    labels.change(study, "", lambda _: Label("q1"))
    assert stop._at_a_place("q1") == placed


@pytest.mark.parametrize(
    ("state", "code"),
    [
        *((state, 1) for state in ("timed out", "preempted", "out of memory", "ended by others")),
        ("lost", 1),
        ("failed", 3),
    ],
)
def test_a_job_that_was_cut_off_before_its_first_run_is_told_from_one_that_could_not_start(
    placed: Placed, state: str, code: int
) -> None:
    over = Placement(placed.place, placed.attempt, JobState(state), fetched=True)
    placement.write(Path(placed.study), over)
    with pytest.raises(GpuwatchError, match="nothing ran on ssh=gpu1") as error:
        until_over([placed])
    assert error.value.exit_code == code
    assert state not in str(error.value), "it was told a line before"


def test_only_a_private_folder_counts(placed: Placed) -> None:
    _folder(placed).chmod(0o750)
    assert placements.read(placed.id) is None
    _folder(placed).chmod(0o700)
    assert placements.read(placed.id) == placed
    if os.geteuid() == 0:
        os.chown(_folder(placed), 12345, 12345)
        assert placements.read(placed.id) is None
        os.chown(_folder(placed), 0, 0)
    real = _folder(placed).with_name("elsewhere")
    _folder(placed).rename(real)
    _folder(placed).symlink_to(real)
    assert placements.read(placed.id) is None


@pytest.mark.parametrize("id_", ["", "..", "../x", "0" * 15, "0" * 17, "A" * 16, "-" * 16])
def test_an_id_is_a_name_of_sixteen_digits(id_: str) -> None:
    assert placements.read(id_) is None


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"id": 1}', "{" * 100000, '"x"'])
def test_a_damaged_record_is_none(placed: Placed, text: str) -> None:
    (_folder(placed) / "record.json").write_text(text)
    assert placements.read(placed.id) is None


def test_one_follows_at_a_time(placed: Placed) -> None:
    with placements.lease(placed) as lease:
        assert lease.renew()
        holder = placements.follower(placed)
        assert holder is not None and holder.pid == os.getpid()
        with pytest.raises(UsageError, match="followed already"), placements.lease(placed):
            pass
    assert placements.follower(placed) is None
    with placements.lease(placed):
        pass


_HOLD = """
import sys
from gpuwatch.places import placements
with placements.lease(placements.read(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_the_lease_of_a_killed_follower_is_taken_at_once(placed: Placed, programs: None) -> None:
    pipe = subprocess.PIPE
    holder = subprocess.Popen(
        [sys.executable, "-c", _HOLD, placed.id], stdin=pipe, stdout=pipe, text=True
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"
    with pytest.raises(UsageError), placements.lease(placed):
        pass
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert placements.follower(placed) is None
    with placements.lease(placed):
        pass


def test_the_lease_of_another_host_runs_out(placed: Placed) -> None:
    with placements.lease(placed) as lease:
        path = _folder(placed) / "lease.json"
        content = json.loads(path.read_text())
        content["holder"] |= {"host": "elsewhere", "boot_id": "x", "machine": "y"}
        path.write_text(json.dumps(content))
        assert placements.follower(placed) is not None
        with pytest.raises(UsageError, match="elsewhere"), placements.lease(placed):
            pass
        old = time.time() - placements.LEASE_SECONDS - 1
        os.utime(path, (old, old))
        with placements.lease(placed) as taken:
            assert taken.renew()
            lease._due = 0.0
            assert not lease.renew()


def _try(id_: str, gate: object, over: object, results: multiprocessing.Queue[int]) -> None:
    placed = placements.read(id_)
    assert placed is not None
    gate.wait()  # type: ignore[attr-defined]
    try:
        with placements.lease(placed):
            results.put(1)
            over.wait()  # type: ignore[attr-defined]
    except UsageError:
        results.put(0)
        over.wait()  # type: ignore[attr-defined]


def test_of_many_at_once_one_gets_it(placed: Placed, programs: None) -> None:
    path = _folder(placed) / "lease.json"
    context = multiprocessing.get_context("fork")
    for _ in range(10):
        gone = subprocess.Popen(["true"])
        gone.wait()
        holder = {"host": os.uname().nodename, "boot_id": "", "pid": gone.pid, "start_time": 1}
        path.write_text(json.dumps({"holder": holder}))
        given = (placed.id, context.Barrier(6), context.Barrier(6), results := context.Queue())
        tries = [context.Process(target=_try, args=given) for _ in range(6)]
        for each in tries:
            each.start()
        for each in tries:
            each.join()
        assert sum(results.get() for _ in tries) == 1
