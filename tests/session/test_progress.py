"""How far a study is, as its plan and its sessions tell; the plan is anybody's file."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from gpuwatch.models import JSON
from gpuwatch.processes import boot_id, identify
from gpuwatch.session.progress import Place, place, tally, unstarted
from gpuwatch.session.store import SessionStore, meta

MISSING = [{"code": "image-missing", "text": "there is no image x", "fix": "docker pull x"}]


def planned(folder: Path, count: int, problems: dict[str, JSON] | None = None) -> list[Path]:
    """The paths of the sessions of a plan of so many runs."""
    names = [f"{number:02d}-bare.gpuwatch" for number in range(1, count + 1)]
    where = {"kind": "bare", "label": "bare"}
    runs = [
        {"index": index, "file": name, "workload": {"name": "x"}, "environment": where}
        for index, name in enumerate(names, 1)
    ]
    plan = {"schema": 1, "runs": runs, "problems": problems or {}}
    (folder / "plan.json").write_text(json.dumps(plan))
    return [folder / name for name in names]


def recorded(path: Path, result: dict[str, JSON] | None) -> None:
    """A session of this process that ended so; ``None``: it goes on."""
    me = identify(os.getpid())
    assert me is not None
    start = me.start_time if result is None else 1
    recorder = {"host": me.host, "boot_id": boot_id(), "pid": me.pid, "start_time": start}
    rows = [meta("session", {"id": path.stem, "schema": 1}), meta("recorder", recorder)]
    SessionStore.create(path, [], rows + ([meta("result", result)] if result else [])).close()


def test_a_run_knows_its_place_what_failed_before_and_what_comes(tmp_path: Path) -> None:
    runs = planned(tmp_path, 5, {"1": MISSING, "4": MISSING})
    recorded(runs[1], {"code": 1})
    recorded(runs[2], None)
    assert place(runs[2]) == Place(number=3, total=5, failed=1, not_run=1, to_come=1)


def test_a_run_of_its_own_has_no_place(tmp_path: Path) -> None:
    (alone,) = planned(tmp_path, 1)
    assert place(alone) is None and tally(tmp_path) is None
    planned(tmp_path, 3)
    assert place(tmp_path / "other.gpuwatch") is None


def test_a_study_is_summed_up_when_nobody_records_it_any_more(tmp_path: Path) -> None:
    runs = planned(tmp_path, 4, {"4": MISSING})
    recorded(runs[0], {"code": 0})
    recorded(runs[1], {"code": 3})
    recorded(runs[2], None)
    assert tally(tmp_path) is None
    runs[2].unlink()
    recorded(runs[2], {"code": 0, "stopped": "SIGTERM"})
    assert tally(tmp_path) == "4 runs: 1 finished, 1 failed, 1 stopped, 1 did not run"


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
        '{"schema": 1, "runs": {}}',
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
    assert unstarted(tmp_path) == []


def test_a_pipe_in_place_of_the_plan_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "plan.json")
    assert place(tmp_path / "01-bare.gpuwatch") is None and unstarted(tmp_path) == []
