"""What prevents a start, from a form and the answers of gpuwatch's commands."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.metrics import Method
from gpuwatch.tui.feed.snapshot import Reading, Snapshot
from gpuwatch.tui.machine import Environment, Gpu, Machine, Refusal
from gpuwatch.tui.new_run.answers import (
    Answers,
    Plan,
    busy_text,
    field_problems,
    obstacle,
    plan_text,
    refusal,
    usable_environment,
)
from gpuwatch.tui.new_run.parameters import Form, arguments

from ..process_sessions import Made, add
from ..snapshots_of import snapshot_of

Make = Callable[..., Path]
WORKLOAD = Form("mnist-cnn")
OLD_DRIVER = Refusal("the driver is too old", "update it")
NO_DAEMON = Refusal("no daemon answers", "start it")
BARE = Environment("bare", "Linux", None, OLD_DRIVER)
DOCKER = Environment("docker", "", NO_DAEMON, NO_DAEMON)
GPUS = (Gpu("0", "H100", 85e9, OLD_DRIVER), Gpu("1", "H100", 85e9, None))


def answers(form: Form, *environments: Environment, **plan: object) -> Answers:
    """Answers about the environments, and a plan with these fields, for ``form``."""
    machine = Machine(environments, GPUS if environments else ())
    return Answers(machine, form.program, Plan(runs=1, **plan), ("", *arguments(form)))  # type: ignore[arg-type]


def test_a_bare_run_needs_a_torch_for_its_gpus() -> None:
    known = answers(WORKLOAD, BARE)
    fix = "update it, or choose device cpu"
    usable = Environment("bare", "Linux", None, None)
    assert refusal(WORKLOAD, known, "bare") == Refusal(OLD_DRIVER.text, fix)
    for form in (
        Form("mnist-cnn", gpus=("1",)),
        Form("mnist-cnn", values={"device": "cpu"}),
        Form(command="python train.py"),
    ):
        assert refusal(form, answers(form, usable), "bare") is None


def test_an_answer_about_another_program_says_nothing() -> None:
    form = Form(command="ls")
    assert refusal(form, answers(WORKLOAD, DOCKER), "docker") is None
    assert refusal(form, answers(form, DOCKER), "docker") == NO_DAEMON


def test_the_plan_of_another_form_says_nothing() -> None:
    form = Form(command="no-such-program")
    missing = Refusal("there is no such command")
    known = answers(form, refusals={0: missing})
    assert refusal(form, known, "bare") == missing
    assert obstacle(form, known) == ("bare", "see bare")
    assert obstacle(Form(command="ls"), known) is None


def test_the_first_obstacle_has_its_field() -> None:
    assert obstacle(Form("gcn", values={"steps": "0"}), Answers()) == (
        "steps",
        "steps: must be an integer of at least 1, not '0'",
    )
    form = Form("gcn", ticked=("docker",))
    known = answers(form, DOCKER, refusals={0: NO_DAEMON})
    assert obstacle(form, known) == ("docker", "see docker; start it"), "its row says why"
    text = "docker: no daemon answers; start it"
    form = Form("gcn", ticked=(), other="docker")
    assert obstacle(form, answers(form, DOCKER, refusals={0: NO_DAEMON})) == ("other", text)
    form = Form("gcn", other="moon=x")
    assert obstacle(form, answers(form, complaint="no such kind")) == ("other", "no such kind")


def test_without_a_gpu_nothing_runs_that_needs_one() -> None:
    machine = Machine(no_gpu=Refusal("no NVIDIA GPU is seen"))
    for values, field in (({"device": "cuda"}, "device"), ({"dtype": "tf32"}, "dtype")):
        assert list(field_problems(Form("gcn", values=values), machine)) == [field]
        assert field_problems(Form("gcn", values=values), None) == {}
    chosen = Form("gcn", gpus=(), values={"device": "cuda"})
    assert field_problems(chosen, Machine()) == {"device": "no GPU is chosen"}
    assert field_problems(Form(command="ls"), machine) == {}


def test_where_bare_cannot_run_another_environment_can() -> None:
    image = Environment("docker=mine", "Docker", None, None)
    machine = Machine((Environment("bare", "", NO_DAEMON, None), DOCKER, image))
    assert usable_environment(WORKLOAD, machine) == "docker=mine"
    assert usable_environment(Form(command="ls"), machine) is None
    assert usable_environment(Form("gcn", ticked=("docker=mine",)), machine) is None
    assert usable_environment(WORKLOAD, Machine((DOCKER,))) is None


def test_the_plan_says_what_would_run_for_how_long_and_by_which_command() -> None:
    form = Form("gcn", repeat="full", order_seed=3)
    blocks = ("warm-up: bare, docker", "block 1: docker, bare")
    known = answers(form, what="gcn in bare, docker", order=blocks, seconds=300.0)
    assert plan_text(form, known).plain.splitlines() == [
        "✓ 1 run: gcn in bare, docker",
        "$ gpuwatch run gcn --blocks 10 --order-seed 3",  # in sight, however long the rest
        "  takes about 5 min, by earlier runs of the same",
        "  warm-up: bare, docker",
        "  block 1: docker, bare",
    ]
    unknown = answers(form, what="gcn in bare", reason="no earlier run of gcn")
    assert plan_text(form, unknown).plain.endswith("\n  time unknown")
    assert plan_text(form, Answers()).plain.startswith("asking for the plan ...\n$ gpuwatch")
    assert plan_text(Form(), Answers()).plain == "enter a command, such as python train.py"


def test_it_is_told_what_already_runs_on_the_chosen_gpus(session: Make) -> None:
    path = add(session(gpus=2), Made(50, "python other.py"), Made(60, "python other.py"))
    seen = snapshot_of(path)
    zero = Form(command="ls", gpus=("0",))
    busy = busy_text(zero, seen)
    then = " when this was opened"
    assert re.fullmatch(rf"GPU 0: \S+ GiB held by alice other.py, \d+ % busy{then}", busy)
    both = busy_text(Form(command="ls"), seen)
    assert both.startswith(f"{busy.removesuffix(then)}; GPU 1: ") and both.endswith(then)
    for form in (Form(command="ls", gpus=()), Form(command="ls", on="slurm")):
        assert busy_text(form, seen) == ""
    assert busy_text(Form(command="ls"), None) == ""
    assert f"\n! {busy}" in plan_text(Form(command="ls"), Answers(), busy).plain

    def with_use(use: float | None, memory: float) -> Snapshot:
        told = (("hw.gpu.utilization", use), ("hw.gpu.memory.usage", memory))
        readings = {key: Reading(value, Method.MEASURED, None, "test") for key, value in told}
        gpus = tuple(replace(gpu, readings={**gpu.readings, **readings}) for gpu in seen.gpus)
        return replace(seen, devices=gpus)

    unknown = busy_text(zero, with_use(None, 8 * 2**30))
    assert unknown == f"GPU 0: 8.00 GiB held by alice other.py{then}"
    idle = busy_text(zero, with_use(0, 8 * 2**30))
    assert idle == f"GPU 0: 8.00 GiB held by alice other.py, no kernel{then}"
    assert busy_text(zero, with_use(0.04, 0)) == busy_text(zero, with_use(None, 0)) == ""
    assert busy_text(zero, with_use(0.05, 0)).endswith(f", 5.0 % busy{then}")
