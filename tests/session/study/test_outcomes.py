"""Which runs are not worth starting any more, by how the others ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.core.models import JSON, Environment, Workload
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.outcomes import FAILED_TWICE, OUT_OF_MEMORY, End, end_of, given_up
from gpuwatch.session.study.plan import Part, Plan
from gpuwatch.session.writing.statements import meta
from gpuwatch.session.writing.store import SessionStore

BARE, DOCKER = Environment("bare", "bare"), Environment("docker", "docker")


def case(size: int, dtype: str = "float32") -> Workload:
    flags = ("--batch-size", str(size), "--dtype", dtype)
    return Workload("w", "workload", flags, {"batch_size": size, "dtype": dtype})


def plan(*cases: Workload, blocks: int | None = 3, sweep: bool = False) -> Plan:
    swept: dict[str, tuple[JSON, ...]] = {"batch_size": (1,)} if sweep else {}
    parts = (Part("p", cases, (BARE, DOCKER), blocks, int(blocks is not None), sweep=swept),)
    return Plan("s", parts, plan_runs(parts, 1))


def ended(plan: Plan, label: str, *ends: End, size: int | None = None) -> dict[int, End]:
    """The first runs in an environment (and of a batch size) ended so."""
    runs = [
        run.index
        for run in plan.runs
        if run.environment.label == label
        and (size is None or run.workload.parameters["batch_size"] == size)
    ]
    return dict(zip(runs, ends, strict=False))


def left_alone(plan: Plan, ends: dict[int, End], code: str) -> set[tuple[str, int]]:
    """Environment and batch size of the runs that are given up for ``code``."""
    return {
        (run.environment.label, run.workload.parameters["batch_size"])
        for index, problem in given_up(plan, ends).items()
        for run in plan.runs
        if run.index == index and problem.code == code
    }


def test_two_failures_and_no_success_end_a_case_in_its_environment_alone() -> None:
    asked = plan(case(16))
    ends = ended(asked, "docker", End.FAILED, End.FAILED) | ended(asked, "bare", End.FINISHED)
    found = given_up(asked, ends)
    assert {asked.runs[index - 1].environment.label for index in found} == {"docker"}
    assert len(found) == 2 and not set(found) & set(ends)
    assert next(iter(found.values())).text == (
        "w failed 2 times in docker, one in the warm-up, and never succeeded"
    )


@pytest.mark.parametrize(
    "ends", [(End.FAILED,), (End.FAILED, End.FINISHED, End.FAILED), (End.STOPPED, End.FAILED)]
)
def test_one_failure_or_any_success_does_not(ends: tuple[End, ...]) -> None:
    asked = plan(case(16))
    assert given_up(asked, ended(asked, "docker", *ends)) == {}


def test_out_of_memory_ends_that_size_and_every_larger_one_of_a_sweep() -> None:
    asked = plan(case(16), case(32), case(64), sweep=True)
    ends = ended(asked, "bare", End.OUT_OF_MEMORY, size=32)
    assert left_alone(asked, ends, OUT_OF_MEMORY) == {("bare", 32), ("bare", 64)}
    problem = next(iter(given_up(asked, ends).values()))
    assert problem.text == "w in bare ran out of memory at batch size 32"


def test_the_smallest_size_that_ran_out_of_memory_counts() -> None:
    asked = plan(case(16), case(32), case(64), sweep=True)
    ends = ended(asked, "bare", End.OUT_OF_MEMORY, size=64)
    ends |= ended(asked, "bare", End.FINISHED, End.OUT_OF_MEMORY, size=16)
    assert left_alone(asked, ends, OUT_OF_MEMORY) == {("bare", 16), ("bare", 32), ("bare", 64)}


def test_other_parameters_are_another_sweep() -> None:
    asked = plan(case(16), case(32), case(16, "bfloat16"), case(32, "bfloat16"), sweep=True)
    first = next(run.index for run in asked.runs if run.workload.parameters["dtype"] == "float32")
    found = given_up(asked, {first: End.OUT_OF_MEMORY})
    given = {asked.runs[index - 1].workload.parameters["dtype"] for index in found}
    assert given == {"float32"}


def test_without_a_sweep_out_of_memory_is_a_failure_like_any_other() -> None:
    asked = plan(case(16), case(32))
    assert given_up(asked, ended(asked, "bare", End.OUT_OF_MEMORY, size=16)) == {}
    ends = ended(asked, "bare", End.OUT_OF_MEMORY, End.OUT_OF_MEMORY, size=16)
    assert left_alone(asked, ends, FAILED_TWICE) == {("bare", 16)}


@pytest.mark.parametrize(
    ("result", "error", "end"),
    [
        ({"code": 0}, None, End.FINISHED),
        ({"code": 1}, None, End.FAILED),
        ({"code": 1}, {"message": "out of memory: tried to get 3 GiB"}, End.OUT_OF_MEMORY),
        ({"code": 1}, {"message": "no such file"}, End.FAILED),
        ({"signal": 9, "out_of_memory": True}, None, End.OUT_OF_MEMORY),
        ({"signal": 9}, None, End.FAILED),
        ({"code": None, "launcher_failed": True}, None, End.FAILED),
        ({"signal": 15, "stopped": "SIGTERM"}, None, End.STOPPED),
        (None, None, None),
    ],
)
def test_a_session_tells_how_its_run_ended(
    tmp_path: Path, result: JSON, error: JSON, end: End | None
) -> None:
    rows = [meta("session", {"id": "a"})]
    rows += [meta("result", result)] if result else []
    rows += [meta("error", error)] if error else []
    SessionStore.create(tmp_path / "x.gpuwatch", [], rows).close()
    assert end_of(tmp_path / "x.gpuwatch") is end
