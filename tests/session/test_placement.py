"""``placement.json``: tells where a study runs, and decides nothing."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.session.placement import PLACEMENT, JobState, Placement, read, write
from gpuwatch.session.reading.status import State, status

BASE = Placement("slurm,partition=gpu", "0" * 16, JobState.QUEUED)


def _now(**changes: object) -> Placement:
    return Placement(**{**vars(BASE), "written": time.time(), **changes})  # type: ignore[arg-type]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    placement = _now(
        reason="Resources",
        hint="wait",
        native="17",
        where="n1",
        starts=1.5e9,
        changes=(("queued", 1.0), ("running", 2.0)),
    )
    write(tmp_path, placement)
    assert read(tmp_path) == placement


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "null",
        "[" * 100_000,
        '{"place": "x", "attempt": "y", "state": "no state"}',
        '{"place": 1, "attempt": "y", "state": "queued"}',
        '{"place": "x", "attempt": "y", "state": "queued", "changes": [[1]]}',
        '{"place": "x", "attempt": "y", "state": ["queued"]}',
        '{"place": "x", "attempt": "y", "state": "queued", "x": "' + "a" * 300_000 + '"}',
    ],
)
def test_nonsense_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / PLACEMENT).write_text(text)
    assert read(tmp_path) is None


def test_texts_are_cleaned_and_cut(tmp_path: Path) -> None:
    hostile = {
        "place": "\x1b[31mssh\n=x",
        "attempt": "a" * 9999,
        "state": "queued",
        "starts": 1e300,
    }
    (tmp_path / PLACEMENT).write_text(json.dumps(hostile))
    placement = read(tmp_path)
    assert placement is not None
    assert "\x1b" not in placement.text and "\n" not in placement.text
    assert len(placement.attempt) <= 300


def test_words() -> None:
    assert _now(reason="Resources").text == "queued on slurm,partition=gpu: Resources"
    assert "expected to start at " in _now(starts=time.time() + 60).text
    assert _now(state=JobState.RUNNING, where="n1").text == "running on n1"
    assert _now(state=JobState.UNKNOWN).text == "slurm,partition=gpu does not answer"
    assert _now(state=JobState.TIMED_OUT).text == "timed out on slurm,partition=gpu"


@pytest.mark.parametrize(
    ("place", "where", "short"),
    [
        ("ssh=gpu1,python=/x", "gpu1", "ssh=gpu1"),
        ("ssh=login1", "n1", "ssh=login1 n1"),
        ("slurm,time=5", "lur", "slurm lur"),
        ("slurm", None, "slurm"),
    ],
)
def test_a_node_stands_beside_a_place_of_another_name(
    place: str, where: str | None, short: str
) -> None:
    assert _now(place=place, where=where).short == short


@pytest.mark.parametrize("state", JobState)
def test_a_run_without_a_result_is_told_by_the_state_of_its_job(
    tmp_path: Path, state: JobState
) -> None:
    write(tmp_path, _now(state=state, fetched=state.over))
    told = status({"session": {"id": "x"}}, tmp_path / "01-bare.gpuwatch")
    if state is JobState.UNKNOWN:
        assert (told.state, told.live) == (State.UNKNOWN, True)
    elif state.over or state is JobState.ORPHANED:
        assert (told.state, told.live) == (State.LOST, False)
    else:
        assert (told.state, told.live) == (State.RUNNING, True)


@pytest.mark.parametrize(
    ("place", "state", "native", "text"),
    [
        ("slurm,time=1", JobState.QUEUED, "11", "queued on slurm,time=1 (job 11): Resources"),
        ("slurm", JobState.RUNNING, "11", "running on n1 (job 11): Resources"),
        ("slurm", JobState.ENDED, "11", "ended on n1: Resources"),
        ("slurm,job=11", JobState.RUNNING, "11.0", "running on n1: Resources"),
        ("kubernetes", JobState.QUEUED, "11", "queued on kubernetes: Resources"),
    ],
)
def test_a_job_of_slurm_is_named_until_it_is_over(
    place: str, state: JobState, native: str, text: str
) -> None:
    now = _now(place=place, state=state, native=native, where="n1", reason="Resources")
    assert replace(now, starts=None).text == text


def test_a_job_is_told_as_its_places_own_tools_know_it() -> None:
    job = _now(place="kubernetes,image=x", native="0b5c", attempt="ab" * 8)
    assert job.known_as == f"gpuwatch-{'ab' * 8}"
    assert replace(job, native=None).known_as is None
    assert replace(job, place="slurm", native="7").known_as == "7"


def test_nobody_follows_it(tmp_path: Path) -> None:
    write(tmp_path, _now(state=JobState.RUNNING, written=time.time() - 60))
    told = status({"session": {"id": "x"}}, tmp_path / "01-bare.gpuwatch")
    assert (told.state, told.live) == (State.UNKNOWN, False)
    assert "gpuwatch attach" in told.text


@pytest.mark.parametrize(
    ("changes", "state", "text"),
    [
        ((("timed out", 20.0),), State.TIMED_OUT, "timed out on n1: job 7 closed 9 s before 1:00"),
        ((("timed out", 20.0), ("starting", 30.0)), State.TIMED_OUT, "timed out"),
        ((("running", 5.0), ("cancelled", 20.0)), State.STOPPED, "stopped on request"),
        ((("running", 5.0), ("ended by others", 20.0)), State.KILLED, "ended by others"),
        ((("timed out", 5.0), ("running", 6.0)), State.STOPPED, "stopped by SIGTERM"),
        ((("running", 5.0), ("ended", 20.0)), State.STOPPED, "stopped by SIGTERM"),
        ((("running", 5.0), ("lost", 9.0)), State.STOPPED, "stopped by SIGTERM"),
    ],
)
def test_a_run_that_was_told_to_end_says_why(
    tmp_path: Path, changes: tuple[tuple[str, float], ...], state: State, text: str
) -> None:
    now, where = JobState(changes[-1][0]), "n1"
    reason = "job 7 closed 9 s before 1:00" if now is JobState.TIMED_OUT else None
    write(tmp_path, _now(state=now, where=where, reason=reason, changes=changes))
    meta = {
        "clock": {"unix_ns": 8_000_000_000},
        "result": {"code": 0, "stopped": "SIGTERM", "t": 7_000_000_000},
    }
    told = status(meta, tmp_path / "01-bare.gpuwatch")
    assert (told.state, told.text.removesuffix(" on n1")) == (state, text)


def test_a_result_is_believed_first(tmp_path: Path) -> None:
    write(tmp_path, _now(state=JobState.LOST))
    told = status({"result": {"code": 0}}, tmp_path / "01-bare.gpuwatch")
    assert told.state is State.FINISHED
