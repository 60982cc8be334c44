"""How long runs take, by the sessions of earlier ones; unknown where there are none."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gpuwatch.core.models import Environment, Workload
from gpuwatch.session import placement
from gpuwatch.session.placement import JobState, Placement
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.estimate import KnownTimes, about, cell, history, times_of_study, timing
from gpuwatch.session.study.plan import Part, Plan, PlannedRun
from gpuwatch.session.study.progress import seconds_to_go
from gpuwatch.session.writing.statements import meta
from gpuwatch.session.writing.store import SessionStore

BARE, DOCKER = Environment("bare", "bare"), Environment("docker", "docker")
PARTS = (
    Part("p", (Workload("w", "workload", ("--steps", "9")),), (BARE, DOCKER), 3, 1, 0.01, 2.0),
)
RUNS = plan_runs(PARTS, 1)
ONE, OTHER = cell(RUNS[0]), cell(RUNS[1])


def recorded(
    folder: Path, run: PlannedRun, start: float, seconds: float | None, code: int = 0,
    host: str | None = None,
) -> Path:  # fmt: skip
    """The session of ``run``, which began and took so long; ``None``: it is not over."""
    path = folder / run.file
    here = host or socket.gethostname()
    rows = [
        meta("session", {"id": "a", "index": run.index}),
        meta("clock", {"unix_ns": int(start * 1e9), "monotonic_ns": 0}),
        meta("recorder", {"host": here, "boot_id": "b", "pid": 1, "start_time": 1}),
        meta("workload", {"name": "w", "kind": "workload", "arguments": ["--steps", "9"]}),
        meta("environment", {"kind": "bare", "label": run.environment.label}),
    ]
    if seconds is not None:
        rows += [meta("result", {"code": code}), meta("closed", {"t": int(seconds * 1e9)})]
    SessionStore.create(path, [], rows).close()
    return path


def made(tmp_path: Path, count: int, seconds: float = 10.0, pause: float = 5.0) -> list[Path]:
    """A study of which so many runs took place, one after the other."""
    folder = study_folder.create(tmp_path, Plan("", PARTS, RUNS))
    return [
        recorded(folder, run, 1000 + at * (seconds + pause), seconds)
        for at, run in enumerate(RUNS[:count])
    ]


def test_history_is_of_what_finished_here(tmp_path: Path) -> None:
    paths = made(tmp_path, 4)
    folder = paths[0].parent
    paths.append(recorded(folder, RUNS[4], 2000, 1.0, code=1))
    paths.append(recorded(folder, RUNS[5], 2010, 1.0, host="elsewhere"))
    paths.append(recorded(folder, RUNS[6], 2020, None))
    found = history(paths, [ONE, OTHER])
    assert {each: sorted(times) for each, times in found.runs.items()} == {
        ONE: [10.0, 10.0],
        OTHER: [10.0, 10.0],
    }
    assert found.left([ONE, OTHER, ONE], 2) == pytest.approx(3 * 10 + 2 * 3.0)


def test_of_another_place_count_the_runs_that_were_sent_there(tmp_path: Path) -> None:
    paths = made(tmp_path, 4)
    paths.append(recorded(paths[0].parent, RUNS[4], 2010, 30.0, host="n1"))
    assert history(paths, [ONE, OTHER], "slurm").runs == {}
    sent = Placement("slurm", "0123456789abcdef", JobState.ENDED)
    placement.write(paths[0].parent, sent)
    assert len(history(paths, [ONE, OTHER], "slurm").runs[ONE]) == 3
    assert history(paths, [ONE, OTHER], "ssh=a").runs == {}


def test_pauses_of_the_history_are_without_the_cool_down_of_their_study(tmp_path: Path) -> None:
    assert list(history(made(tmp_path, 3), [ONE, OTHER]).pauses) == pytest.approx([3.0, 3.0])


def test_pauses_are_sought_behind_newer_runs_of_no_study(tmp_path: Path) -> None:
    paths = made(tmp_path, 3)
    for at in range(3):
        folder = tmp_path / str(at)
        folder.mkdir()
        paths.append(recorded(folder, RUNS[0], 5000 + 100 * at, 10.0))
    for at, path in enumerate(paths):
        os.utime(path, (at, at))
    assert history(paths, [ONE, ONE]).pauses
    assert not history(paths, [ONE]).pauses, "of one run nobody asks"


def test_where_one_run_has_no_history_the_whole_is_not_known(tmp_path: Path) -> None:
    found = history(made(tmp_path, 1), [ONE, OTHER])
    assert found.left([ONE], 0) == pytest.approx(10.0)
    assert found.left([ONE, OTHER], 1) is None
    assert found.left([ONE, ONE], 1) is None, "nobody knows how long a pause is"


def test_other_flags_are_another_run(tmp_path: Path) -> None:
    other = ("w", "workload", ("--steps", "10"), "bare")
    assert history(made(tmp_path, 4), [other]).runs == {}


def test_no_more_files_are_opened_than_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = made(tmp_path, 8)
    opened = []

    def counting(path: Path) -> object:
        opened.append(path)
        return timing(path)

    monkeypatch.setattr("gpuwatch.session.study.estimate.timing", counting)
    history(paths, [ONE, OTHER])
    assert 6 <= len(opened) < 8
    opened.clear()
    history([tmp_path / f"{n}.gpuwatch" for n in range(1000)], [ONE])
    assert len(opened) == 100


def test_within_a_study_failed_runs_count_too(tmp_path: Path) -> None:
    (first,) = made(tmp_path, 1)
    second = recorded(first.parent, RUNS[1], 1015, 4.0, code=1)
    timings = [each for path in (first, second) if (each := timing(path))]
    assert times_of_study(timings).runs == {ONE: [10.0], OTHER: [4.0]}
    assert seconds_to_go(RUNS[2:4], timings) == pytest.approx(10 + 4 + 5)
    assert seconds_to_go(RUNS[:1], timings[:1]) == pytest.approx(10)
    assert seconds_to_go(RUNS[1:], timings[:1]) is None


def test_rare_long_pauses_are_part_of_the_time_left() -> None:
    known = KnownTimes({ONE: [1.0]}, [0.1, 0.1, 4.0])
    assert known.left([ONE] * 10, 9) == pytest.approx(10 + 9 * 1.4)


def test_a_file_that_is_no_session_tells_nothing(tmp_path: Path) -> None:
    (tmp_path / "x.gpuwatch").write_text("no session")
    assert timing(tmp_path / "x.gpuwatch") is None
    assert history([tmp_path / "x.gpuwatch", tmp_path / "y"], [ONE]).runs == {}


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (3.2, "under 10 s"),
        (10, "about 10 s"),
        (44, "about 40 s"),
        (100, "about 2 min"),
        (3600, "about 60 min"),
        (9000, "about 2.5 h"),
        (100_000, "about 28 h"),
    ],
)
def test_a_time_that_is_not_known_better_is_told_roughly(seconds: float, text: str) -> None:
    assert about(seconds) == text
