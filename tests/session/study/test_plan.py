"""plan.json: what is written is what is read, and a plan from elsewhere cannot do harm."""

from __future__ import annotations

import copy
import json
import os
import random
from collections.abc import Iterable
from pathlib import Path

import pytest

from gpuwatch.core.models import JSON, Environment, Mount, Problem, Workload
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import (
    LARGEST,
    PLAN,
    Part,
    Plan,
    Settings,
    case_label,
    labels,
    read,
)
from gpuwatch.session.study.plan_file import document

BARE = Environment("bare", "bare", python="/usr/bin/python3")
DOCKER = Environment(
    kind="docker",
    label="docker=img",
    image="img",
    mounts=(Mount("/data", "/data"), Mount("/home/x y", "/out", writable=True)),
    shm_bytes=1 << 30,
    memory_bytes=1 << 33,
    network="none",
    pull=True,
    variables={"OMP_NUM_THREADS": "1"},
)
COMMANDS = tuple(
    Workload("train.py", "command", ("python", "train.py", *flags), label=label)
    for label, *flags in (("a",), ("amp", "--amp"))
)
SIZES = tuple(
    Workload("mnist-cnn", "workload", ("--batch-size", str(size)), {"batch_size": size})
    for size in (16, 32)
)
PARTS = (
    Part(
        "environments",
        (Workload("train.py", "command", ("python", "train.py")),),
        (BARE, DOCKER),
        blocks=7,
        warmup_blocks=1,
        margin=0.005,
        cool_down=2.0,
    ),
    Part("batch size", SIZES, (BARE,), sweep={"batch_size": (16, 32)}),
    Part("commands", COMMANDS, (BARE, DOCKER), blocks=4),
)
FULL = Plan(
    study="x",
    parts=PARTS,
    runs=plan_runs(PARTS, 5),
    seed=5,
    title="Two\u00a0questions",
    question="Does it cost anything?",
    preset="multi-environment",
    settings=Settings(
        gpus=("0",),
        dcgm="localhost",
        hook=("loss",),
        keep_children=True,
        afterwards="Copy it.",
        working_directory="/home/me",
        host="here",
        programs={"train.py": "3fa1"},
    ),
    problems={3: (Problem("image-missing", "there is no image", "docker pull img"),)},
    signature="5c0f",
)


def written(folder: Path, value: JSON) -> Path:
    (folder / PLAN).write_text(json.dumps(value))
    return folder


def test_a_plan_is_read_as_it_was_written(tmp_path: Path) -> None:
    study_folder.write(tmp_path, FULL)
    assert read(tmp_path) == FULL


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["schema"], 1),
        (["schema"], 3),
        (["schema"], True),
        (["runs"], {}),
        (["runs", 0], None),
        (["runs", 0, "file"], "../elsewhere.gpuwatch"),
        (["runs", 0, "file"], "/etc/x.gpuwatch"),
        (["runs", 0, "file"], "passwd"),
        (["runs", 0, "file"], "a\0.gpuwatch"),
        (["runs", 0, "file"], "\ud800.gpuwatch"),
        (["runs", 0, "file"], FULL.runs[1].file),
        (["runs", 0, "index"], 2),
        (["runs", 0, "part"], -1),
        (["runs", 0, "part"], 9),
        (["runs", 0, "workload"], -1),
        (["runs", 0, "workload"], 1),
        (["runs", 0, "environment"], "bare"),
        (["runs", 0, "block"], 8),
        (["runs", 0, "block"], -1),
        (["parts", 0, "blocks"], 0),
        (["parts", 0, "blocks"], 1.5),
        (["parts", 0, "blocks"], 1001),
        (["parts", 0, "warmup_blocks"], 2),
        (["parts", 0, "margin"], 0),
        (["parts", 0, "margin"], 1e-9),
        (["parts", 0, "margin"], 0.51),
        (["parts", 0, "margin"], float("nan")),
        (["parts", 0, "cool_down_seconds"], -1),
        (["parts", 0, "cool_down_seconds"], 10**400),
        (["parts", 0, "workloads", 0, "name"], None),
        (["parts", 0, "workloads", 0, "arguments"], "abc"),
        (["parts", 0, "environments", 1, "mounts"], ["nothing"]),
        (["parts", 1, "sweep"], {"batch_size": [[1]]}),
        (["problems"], []),
        (["problems"], {"x": [1]}),
        (["problems"], {"1": [{"code": "c"}]}),
        (["seed"], "5"),
        (["gpus"], "0"),
        (["working_directory"], 1),
        (["afterwards"], ["Copy it."]),
    ],
)
def test_a_value_of_the_wrong_type_makes_a_plan_unreadable(
    tmp_path: Path, path: list[str | int], value: JSON
) -> None:
    changed: JSON = copy.deepcopy(document(FULL))
    at = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    assert read(written(tmp_path, changed)) is None
    assert study_folder.not_run(tmp_path) == []


def test_damage_anywhere_gives_a_plan_or_none_and_no_exception(tmp_path: Path) -> None:
    text = json.dumps(document(FULL))
    rng = random.Random(1)
    for _ in range(300):
        at = rng.randrange(len(text))
        damaged = text[:at] + rng.choice(['"', "{", "[", "-1", "null", ""]) + text[at + 1 :]
        (tmp_path / PLAN).write_text(damaged)
        read(tmp_path)


def test_a_plan_that_is_too_large_too_deep_or_a_pipe_is_none(tmp_path: Path) -> None:
    path = tmp_path / PLAN
    assert read(tmp_path) is None
    path.write_text(json.dumps(document(FULL)) + " " * LARGEST)
    assert read(tmp_path) is None
    path.write_text("[" * 200_000)
    assert read(tmp_path) is None
    path.write_bytes(b"\xff\xfe\x00")
    assert read(tmp_path) is None
    path.unlink()
    os.mkfifo(path)
    assert read(tmp_path) is None


def test_a_problem_of_a_run_that_the_plan_does_not_have_is_left_out(tmp_path: Path) -> None:
    changed = document(FULL)
    changed["problems"]["9999"] = changed["problems"]["3"]
    plan = read(written(tmp_path, changed))
    assert plan is not None and list(plan.problems) == [3]


def test_cases_are_told_by_the_parameters_in_which_they_differ() -> None:
    assert case_label(SIZES[0], SIZES) == "mnist-cnn, batch size 16"
    assert case_label(SIZES[0], SIZES[:1]) == "mnist-cnn"
    default = Workload("mnist-cnn", "workload")
    assert case_label(default, [default, SIZES[0]]) == "mnist-cnn, batch size default"
    gcn = Workload("gcn", "workload", (), {"steps": 5})
    assert case_label(gcn, [gcn, SIZES[0]]) == "gcn"


def test_a_run_is_told_by_its_environment_and_by_its_case_where_there_are_several() -> None:
    alone = plan_runs(PARTS[:1], 1)
    assert set(labels(alone)) == {"bare", "docker=img"}
    sizes = plan_runs(PARTS[1:2], 1)
    assert labels(sizes)[1] == "mnist-cnn, batch size 32 in bare"
    commands = plan_runs(PARTS[2:], 1)
    assert {"a in bare", "amp in docker=img"} < set(labels(commands))
    assert {run.file[3:] for run in commands} == {
        "a-bare.gpuwatch",
        "a-docker-img.gpuwatch",
        "amp-bare.gpuwatch",
        "amp-docker-img.gpuwatch",
    }


def test_the_largest_study_has_its_labels_and_each_is_made_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cases = tuple(Workload("w", "workload", (), {"lr": at, "seed": at}) for at in range(100))
    part = Part("p", cases, (BARE, DOCKER), blocks=9, warmup_blocks=1)
    runs = plan_runs([part], 1)
    missing = (Problem("c", "no image"),)
    study_folder.write(
        tmp_path, Plan("x", (part,), runs, problems={run.index: missing for run in runs})
    )
    made: list[Workload] = []

    def counted(case: Workload, others: Iterable[Workload]) -> str:
        made.append(case)
        return case_label(case, others)

    monkeypatch.setattr("gpuwatch.session.study.plan.case_label", counted)
    told = study_folder.not_run(tmp_path)
    assert len(made) == len(cases)
    assert len(told) == len(runs) == 2000
    assert [each.label for each in told] == list(labels(runs))
    assert len(set(labels(runs))) == 200
