"""A study's plan: the order of its runs, their names, and why some of them did not run."""

from __future__ import annotations

import json
from pathlib import Path

from gpuwatch.models import Environment, Problem, Workload
from gpuwatch.session import study

ENVIRONMENTS = (Environment("bare", "bare"), Environment("docker", "docker=a/b:c", "a/b:c"))
ONE = (Workload("mnist-cnn", "workload"),)
TWO = (*ONE, Workload("gcn", "workload"))
MISSING = Problem("image-missing", "there is no image x", "docker pull x")


def made(tmp_path: Path, workloads: tuple[Workload, ...], problems: dict[str, object]) -> Path:
    runs = study.plan_runs(workloads, ENVIRONMENTS)
    return study.create(tmp_path, runs, {"problems": problems})


def test_runs_are_ordered_by_workload_then_environment() -> None:
    runs = study.plan_runs(TWO, ENVIRONMENTS)
    assert [(run.index, run.workload.name, run.environment.kind) for run in runs] == [
        (1, "mnist-cnn", "bare"),
        (2, "mnist-cnn", "docker"),
        (3, "gcn", "bare"),
        (4, "gcn", "docker"),
    ]
    assert [run.file for run in runs] == [
        "01-bare.gpuwatch",
        "02-docker-a-b-c.gpuwatch",
        "03-bare.gpuwatch",
        "04-docker-a-b-c.gpuwatch",
    ]


def test_a_run_is_told_by_its_environment_and_by_its_workload_where_there_are_several() -> None:
    alone, both = study.plan_runs(ONE, ENVIRONMENTS), study.plan_runs(TWO, ENVIRONMENTS)
    assert study.label(alone[1], alone) == "docker=a/b:c"
    assert study.label(both[2], both) == "gcn in bare"


def test_a_problem_that_is_noted_later_is_read_with_those_known_before(tmp_path: Path) -> None:
    before = {"1": [{"code": "c", "text": "no python", "fix": None}]}
    folder = made(tmp_path, TWO, before)
    study.note_problems(folder, 4, [MISSING])
    first, second = study.not_run(folder)
    assert first.text == "mnist-cnn in bare did not run: no python"
    assert second == study.NotRun("gcn in docker=a/b:c", (MISSING,))
    assert second.text == "gcn in docker=a/b:c did not run: there is no image x; docker pull x"
    assert len(json.loads((folder / study.PLAN).read_text())["runs"]) == 4


def test_a_problem_noted_twice_is_the_last_one(tmp_path: Path) -> None:
    folder = made(tmp_path, ONE, {})
    study.note_problems(folder, 1, [Problem("a", "first")])
    study.note_problems(folder, 1, [MISSING])
    assert study.not_run(folder) == [study.NotRun("bare", (MISSING,))]


def test_a_plan_that_is_damaged_or_gone_is_left_as_it_is(tmp_path: Path) -> None:
    folder = made(tmp_path, ONE, {})
    for text in ("no json", "[]", "{}", '{"problems": 1}'):
        (folder / study.PLAN).write_text(text)
        study.note_problems(folder, 1, [MISSING])
        assert (folder / study.PLAN).read_text() == text
        assert study.not_run(folder) == []
    (folder / study.PLAN).unlink()
    study.note_problems(folder, 1, [MISSING])
    assert study.not_run(folder) == [] and not (folder / study.PLAN).exists()


def test_noting_a_problem_leaves_no_other_file(tmp_path: Path) -> None:
    folder = made(tmp_path, ONE, {})
    study.note_problems(folder, 1, [MISSING])
    assert [path.name for path in folder.iterdir()] == [study.PLAN]
