"""What is told of a run that nobody watches: each trouble once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.tui.feed.snapshot import Alert, Snapshot
from gpuwatch.tui.plain.news import IDLE_SECONDS, STALLED_SECONDS, Troubles

from ..snapshots_of import snapshot_of

Make = Callable[..., Path]


def told(troubles: Troubles, snapshot: Snapshot, now: float) -> list[str]:
    return [each.text for each in troubles.look(snapshot, now)]


def test_a_run_without_steps_is_stalled_once_for_each_step_and_not_in_an_evaluation(
    session: Make,
) -> None:
    run, troubles = snapshot_of(session(), seconds=60), Troubles()
    assert run.work is not None and run.work.step is not None
    assert told(troubles, run, 0) == told(troubles, run, STALLED_SECONDS - 1) == []
    (text,) = told(troubles, run, STALLED_SECONDS)
    assert f"no step for 1:00 after step {run.work.step:,}; a step takes 5" in text
    assert told(troubles, run, STALLED_SECONDS * 9) == []
    later = replace(run, work=replace(run.work, step=run.work.step + 1))
    assert told(troubles, later, 1000) == []
    evaluated = replace(later, phase="evaluation")
    assert told(troubles, evaluated, 2000) == []
    assert told(troubles, later, 2000 + STALLED_SECONDS - 1) == []
    assert len(told(troubles, later, 2000 + STALLED_SECONDS)) == 1


def test_ten_steps_that_take_longer_than_a_minute_are_waited_for(session: Make) -> None:
    run, troubles = snapshot_of(session(), seconds=60), Troubles()
    assert run.work is not None
    slow = replace(run, work=replace(run.work, step_seconds=30.0))
    assert told(troubles, slow, 0) == told(troubles, slow, 299) == []
    assert len(told(troubles, slow, 300)) == 1


@pytest.mark.parametrize("utilization", [0.0, 0.01])
def test_gpus_of_the_run_that_do_nothing_for_ten_minutes_are_told(
    session: Make, utilization: float
) -> None:
    path = session(steps=False, sampled={("gpu0", "hw.gpu.utilization"): utilization})
    run, troubles = snapshot_of(path, seconds=60), Troubles()
    assert [gpu.row.used for gpu in run.gpus] == [True]
    assert told(troubles, run, 5) == told(troubles, run, 4 + IDLE_SECONDS) == []
    expected = ["its GPU is idle for 10:00"] if utilization == 0 else []
    assert told(troubles, run, 5 + IDLE_SECONDS) == expected
    assert told(troubles, run, 99 + IDLE_SECONDS) == []


def test_a_lost_gpu_and_an_error_are_told_once_each_and_low_memory_never(session: Make) -> None:
    run, troubles = snapshot_of(session(), seconds=60), Troubles()
    alerts = [Alert(kind, "gpu0", f"{kind} at 1 s") for kind in ("lost", "xid", "memory")]
    assert told(troubles, replace(run, alerts=(alerts[2], alerts[0])), 0) == ["lost at 1 s"]
    changed = [replace(each, text=f"{each.kind} at 2 s") for each in alerts]
    assert told(troubles, replace(run, alerts=tuple(changed)), 1) == ["xid at 2 s"]
