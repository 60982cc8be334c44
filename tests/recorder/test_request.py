"""What a plan tells of runs that cannot start here, before any does."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.core.models import Environment, LaunchSpec, Problem, Workload
from gpuwatch.recorder import request
from gpuwatch.session.study.plan import Part
from gpuwatch.workloads.nvidia import Driver


@pytest.fixture(autouse=True)
def ready(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment can run workloads, and there is no GPU."""
    monkeypatch.setattr(request.runners, "check", lambda spec: [])
    monkeypatch.setattr(request.torch_builds, "obstacles", lambda spec, look: [])
    monkeypatch.setattr(request, "resolve", lambda *given, **how: request.Allocation())
    monkeypatch.setattr(request, "find_driver", lambda: None)


def problem(kind: str = "workload", name: str = "bert", **parameters: object) -> Problem | None:
    case = Workload(name, kind, ("a",), parameters)
    plan = request.plan_of([Part("p", (case,), (Environment("bare", "bare"),))])
    found = request.resolve_plan(request.Request(plan, Path("out"))).problems
    return found[1][0] if found else None


@pytest.mark.parametrize("dtype", ["tf32", "float16", "fp8"])
def test_a_type_of_gpus_is_told_to_be_none_of_this_machine_unless_it_may_have_one(
    monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    asked = partial(problem, name="transformer-lm", dtype=dtype)
    for found in (asked(), asked(device="auto"), asked(device="cpu")):
        assert found is not None and found.code == "workload-flags"
        assert "CPU" in found.text and found.hint and "--dtype" in found.hint
    assert asked(device="cuda") is None, "which torch alone can tell"
    monkeypatch.setattr(request, "find_driver", lambda: Driver(1))
    assert asked() is None
    assert problem(dtype="bfloat16") is None and problem("command", dtype=dtype) is None


def test_data_that_is_not_there_is_told(tmp_path: Path) -> None:
    found = problem(data=str(tmp_path / "none.txt"))
    assert found is not None and found.code == "data-missing" and "none.txt" in found.text
    assert problem(name="mnist-cnn", data=str(tmp_path)) is None
    assert problem(name="mnist-cnn", data=str(tmp_path / "new"), download=True) is None


def test_gpus_are_looked_at_once_for_all_runs_and_not_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def facts(gpus: tuple[str, ...], patience_s: float) -> tuple[dict[str, str], ...]:
        asked.append((gpus, patience_s))
        return ()

    def obstacles(spec: LaunchSpec, look: Any) -> list[Problem]:
        return list(look(spec.gpus))

    monkeypatch.setattr(request, "gpu_facts", facts)
    monkeypatch.setattr(request.torch_builds, "obstacles", obstacles)
    monkeypatch.setattr(request, "resolve", lambda *_, **how: request.Allocation(("GPU-1",), True))
    cases = [Workload(name, "workload", ("a",)) for name in ("mnist-cnn", "bert")]
    plan = request.plan_of([Part("p", tuple(cases), (Environment("bare", "bare"),))])
    assert request.resolve_plan(request.Request(plan, Path("out"))).problems == {}
    assert asked == [(("GPU-1",), 2)]
