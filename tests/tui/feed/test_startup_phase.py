"""What a live run does before its first step."""

from __future__ import annotations

from typing import Any

import pytest

from gpuwatch.core.units import NS
from gpuwatch.session.reading.status import State, Status
from gpuwatch.tui.feed.parts import startup_phase

OWN: dict[str, Any] = {
    "workload": {"kind": "command"},
    "launch": {"t": NS},
    "hook": {"given": True, "processes": 0},
}


def test_what_a_run_was_stopped_in_after_its_steps_is_said() -> None:
    stopped = Status(State.STOPPED, "stopped by SIGTERM", 143, live=False)
    meta = {
        "workload": {"kind": "workload"},
        "end": {"t": 80 * NS},
        "profile": {"t": 81 * NS, "reason": None},
        "counters": {"t": 89 * NS, "reason": "the run was stopped while it was counted"},
    }
    told = startup_phase(meta, stopped, 90 * NS, stepped=True, cuda=False)
    assert told == "timed steps done; stopped during ncu"
    meta["counters"] = {"t": 89 * NS, "reason": "ncu was not found"}
    assert startup_phase(meta, stopped, 90 * NS, stepped=True, cuda=False) == ""


def phase(t: float, *, cuda: bool = False, stepped: bool = False, **meta: Any) -> str:
    live = Status(State.RUNNING, "running", None, live=True)
    return startup_phase(OWN | meta, live, int(t * NS), stepped=stepped, cuda=cuda)


@pytest.mark.parametrize(
    ("what", "cuda", "told"),
    [
        ("import", False, "importing torch, 9 s"),
        ("first step", True, "waiting for CUDA or the first step, 9 s"),
        ("first step", False, "waiting for the first step, 9 s"),
        ("own lines", True, "figures soon"),
        ("evaluation", True, "counting the first calls of a model"),
    ],
)
def test_what_a_program_of_ones_own_waits_for_is_said(what: str, cuda: bool, told: str) -> None:
    waiting = {"for": what, "t": 2 * NS}
    assert phase(11, cuda=cuda, waiting=waiting) == told
    assert phase(11, waiting=waiting, stepped=True) == ""


def test_a_program_that_imports_no_torch_is_not_waited_for_long() -> None:
    assert phase(5) == "no steps yet, 4 s"
    assert phase(2.9) == "no steps yet", "0 s of what?"
    assert phase(5.9) == "no steps yet, 4 s", "the clock beside it says 0:05"
    assert phase(70) == ""
    assert phase(5, hook={"given": False}) == ""


@pytest.mark.parametrize(
    ("reports", "told"),
    [
        ({}, "starting, 11 s"),
        ({"started": 2}, "importing torch, 10 s"),
        ({"started": 2, "waiting": 7}, "making the model and its data, 5 s"),
        ({"started": 2, "waiting": 7, "run": 9}, "preparing the first step, 3 s"),
    ],
)
def test_what_a_built_in_workload_waits_for_is_said(reports: dict[str, int], told: str) -> None:
    meta = {report: {"t": t * NS} for report, t in reports.items()}
    assert phase(12, workload={"kind": "workload"}, **meta) == told


@pytest.mark.parametrize(
    ("given", "done", "told"),
    [
        ({}, {}, "timed steps done, profiling kernels, 6 s"),
        ({"profile": 0}, {}, "timed steps done"),
        ({}, {"profile": 10}, "timed steps done"),
        ({"counters": True}, {"profile": 10}, "timed steps done, ncu counts FLOP and bytes, 2 s"),
        ({"counters": True}, {"profile": 8, "counters": 11}, "timed steps done"),
    ],
)
def test_what_follows_the_timed_steps_is_said(
    given: dict[str, Any], done: dict[str, int], told: str
) -> None:
    reports = {report: {"t": t * NS} for report, t in {"end": 6, **done}.items()}
    workload = {"kind": "workload", "parameters": given}
    assert phase(12, stepped=True, workload=workload, **reports) == told
