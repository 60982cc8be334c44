"""How far a study is, as its plan and its sessions tell; the plan is anybody's file."""

from __future__ import annotations

import os
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from gpuwatch.core.models import JSON, Environment, Problem, Workload
from gpuwatch.core.processes import boot_id, identify
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import Part, Plan, read
from gpuwatch.session.study.progress import StudyPosition, following, place, recorder_alive, tally
from gpuwatch.session.study.study_folder import not_run
from gpuwatch.session.writing.statements import meta
from gpuwatch.session.writing.store import SessionStore
from tests.analysis import recorded_studies

MISSING = Problem("image-missing", "there is no image x", "docker pull x")


def planned(folder: Path, count: int, *missing: int) -> list[Path]:
    """The paths of the sessions of a plan of so many runs, of which some could not start."""
    bare = tuple(Environment("bare", f"bare#{number}") for number in range(count))
    part = Part("", (Workload("x", "workload"),), bare)
    plan = recorded_studies.planned([part], problems=dict.fromkeys(missing, MISSING))
    recorded_studies.written(folder, plan)
    return [folder / run.file for run in plan.runs]


def recorded(path: Path, result: dict[str, JSON] | None) -> None:
    """A session of this process that ended so; ``None``: it goes on."""
    me = identify(os.getpid())
    assert me is not None
    start = me.start_time if result is None else 1
    recorder = {"host": me.host, "boot_id": boot_id(), "pid": me.pid, "start_time": start}
    rows = [meta("session", {"id": path.stem, "schema": 1}), meta("recorder", recorder)]
    SessionStore.create(path, [], rows + ([meta("result", result)] if result else [])).close()


def test_a_run_knows_its_place_what_failed_before_and_what_comes(tmp_path: Path) -> None:
    runs = planned(tmp_path, 5, 1, 4)
    recorded(runs[1], {"code": 1})
    recorded(runs[2], None)
    assert place(runs[2]) == StudyPosition(number=3, total=5, failed=1, not_run=1, to_come=1)


def test_a_run_of_its_own_has_no_place(tmp_path: Path) -> None:
    (alone,) = planned(tmp_path, 1)
    assert place(alone) is None and tally(tmp_path) is None
    planned(tmp_path, 3)
    assert place(tmp_path / "other.gpuwatch") is None


def test_a_study_is_summed_up_when_nobody_records_it_any_more(tmp_path: Path) -> None:
    runs = planned(tmp_path, 4, 4)
    recorded(runs[0], {"code": 0})
    recorded(runs[1], {"code": 3})
    recorded(runs[2], None)
    assert tally(tmp_path) is None
    runs[2].unlink()
    recorded(runs[2], {"code": 0, "stopped": "SIGTERM"})
    assert tally(tmp_path) == "4 runs: 1 finished, 1 failed, 1 stopped, 1 did not run"


def test_a_study_goes_on_before_its_first_session_as_long_as_a_recorder_holds_it(
    tmp_path: Path,
) -> None:
    planned(tmp_path, 2)
    assert not recorder_alive(tmp_path) and tally(tmp_path) == "2 runs: 2 did not run"
    with study_folder.held(tmp_path):
        assert recorder_alive(tmp_path) and tally(tmp_path) is None
        assert recorder_alive(tmp_path), "looking at it took nothing away"
    assert not recorder_alive(tmp_path)
    with study_folder.held(tmp_path):
        pass
    assert not recorder_alive(tmp_path / "gone")


def test_a_session_that_cannot_be_read_is_counted_as_such(tmp_path: Path) -> None:
    runs = planned(tmp_path, 2)
    recorded(runs[0], {"code": 0})
    runs[1].write_text("no session")
    assert tally(tmp_path) == "2 runs: 1 finished, 1 unreadable"


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        "{}",
        '{"schema": 2, "runs": {}}',
        '{"runs": [1, null, [], {"file": ["x"]}]}',
        '{"runs": [{"file": "../x"}, {"file": "/etc/passwd"}], "problems": []}',
        "[" * 200_000,
    ],
)
def test_a_plan_of_anything_else_tells_nothing(tmp_path: Path, text: str) -> None:
    (path,) = planned(tmp_path, 1)
    (tmp_path / "plan.json").write_text(text)
    assert place(path) is None
    told = tally(tmp_path)
    assert told is None or told.endswith("did not run")
    assert not_run(tmp_path) == []


def test_a_pipe_in_place_of_the_plan_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    assert place(tmp_path / "01-bare.gpuwatch") is None and not_run(tmp_path) == []


def timed(path: Path, label: str, start: float, seconds: float | None) -> None:
    """A session in ``label`` that began at a Unix time; ``None``: this process records it now."""
    me = identify(os.getpid())
    assert me is not None
    rows = [
        meta("session", {"id": path.stem, "index": int(path.name[:2])}),
        meta("clock", {"unix_ns": int(start * 1e9), "monotonic_ns": 0}),
        meta("workload", {"name": "w", "kind": "command", "arguments": ["true"]}),
        meta("environment", {"kind": "bare", "label": label}),
        meta("recorder", {**asdict(me), "start_time": me.start_time if seconds is None else 1}),
    ]
    if seconds is not None:
        rows += [meta("result", {"code": 0}), meta("closed", {"t": int(seconds * 1e9)})]
    SessionStore.create(path, [], rows).close()


def test_a_run_in_blocks_knows_its_block_and_what_time_is_left(tmp_path: Path) -> None:
    both = (Environment("bare", "a"), Environment("bare", "b"))
    parts = (
        Part("speed", (Workload("w", "command", ("true",)),), both, 2, 1),
        Part("size", (Workload("w", "command", ("true",)),), both[:1]),
    )
    folder = study_folder.create(tmp_path, Plan("", parts, plan_runs(parts, 3)))
    plan = read(folder)
    assert plan is not None and len(plan.runs) == 7
    paths = [folder / run.file for run in plan.runs]
    now = time.time()
    timed(paths[0], "a", now - 60, 10)
    first = place(paths[0])
    assert first is not None
    assert (first.block, first.blocks, first.part) == (0, 2, "speed")
    assert first.seconds_left is None, "it is over, and nothing runs"
    timed(paths[1], "b", now - 45, 20)
    third = plan.runs[2].environment.label
    timed(paths[2], third, now - 4, None)
    found = place(paths[2])
    assert found is not None and (found.block, found.number, found.to_come) == (1, 3, 4)
    # This run and four more: three of "a" and two of "b", each after a pause of 5 s.
    late = time.time() - now
    assert found.seconds_left == pytest.approx(3 * 10 + 2 * 20 + 4 * 5 - 4, abs=1 + late)
    last = place(paths[6])
    assert last is not None and (last.block, last.blocks, last.part) == (None, None, "size")


def test_the_next_run_is_named_by_its_command_where_there_are_several(tmp_path: Path) -> None:
    commands = tuple(Workload("w", "command", ("true",), label=name) for name in ("fast", "slow"))
    parts = (Part("", commands, (Environment("bare", "bare"),)),)
    folder = study_folder.create(tmp_path, Plan("", parts, plan_runs(parts, 3)))
    plan = read(folder)
    assert plan is not None
    found = following(folder / plan.runs[0].file)
    assert found is not None and found.label == f"{plan.runs[1].workload.label} in bare"


def test_the_time_left_is_unknown_while_an_environment_did_not_run_yet(tmp_path: Path) -> None:
    both = (Environment("bare", "a"), Environment("bare", "b"))
    parts = (Part("p", (Workload("w", "command", ("true",)),), both, 2, 1),)
    folder = study_folder.create(tmp_path, Plan("", parts, plan_runs(parts, 3)))
    path = folder / "01-a.gpuwatch"
    timed(path, "a", time.time(), None)
    found = place(path)
    assert found is not None and found.seconds_left is None
