"""What the form of a new run turns into."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuwatch.tui.new_run import fields as launch_fields
from gpuwatch.tui.new_run.form import (
    OF_TORCHVISION,
    OWN_COMMAND,
    Form,
    arguments,
    command_line,
    problems,
)
from gpuwatch.workloads import options
from gpuwatch.workloads.names import BUILT_IN


def test_a_form_nobody_touched_is_the_shortest_command() -> None:
    assert command_line(arguments(Form())) == "gpuwatch run mnist-cnn"
    assert problems(Form()) == {}


def test_every_field_has_its_place() -> None:
    form = Form(
        "resnet18",
        ticked=("bare", "docker"),
        other="docker=img,shm=1g",
        pull=True,
        gpus=("0", "2"),
        repeat="full",
        values={"steps": " 20 ", "batch_size": "0064", "dtype": "bfloat16", "counters": "yes"},
        order_seed=7,
    )
    assert problems(form) == {}
    assert " ".join(arguments(form)) == (
        "resnet18 --batch-size 64 --steps 20 --dtype bfloat16 --counters "
        "--env bare --env docker --env docker=img,shm=1g --pull --gpus 0,2 "
        "--blocks 7 --order-seed 7"
    )


def test_no_gpu_ticked_is_none_and_all_of_them_is_no_flag() -> None:
    assert arguments(Form(gpus=()))[-2:] == ("--gpus", "none")
    assert "--gpus" not in arguments(Form(gpus=None))
    assert not Form(gpus=()).on_gpus and not Form(values={"device": "cpu"}).on_gpus


def test_a_command_keeps_its_quotes_and_has_no_parameters() -> None:
    form = Form(OWN_COMMAND, command="sh -c 'echo \"a b\"'", values={"steps": "no number"})
    assert arguments(form) == ("--", "sh", "-c", 'echo "a b"')
    assert command_line(arguments(form)).endswith("""-- sh -c 'echo "a b"'""")


def test_a_model_of_torchvision_is_part_of_the_workloads_name() -> None:
    assert arguments(Form(OF_TORCHVISION, model=" vit_b_16 ")) == ("torchvision:vit_b_16",)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (Form(OF_TORCHVISION), "model"),
        (Form(OF_TORCHVISION, model="a b"), "model"),
        (Form(OWN_COMMAND), "command"),
        (Form(OWN_COMMAND, command="'"), "command"),
        (Form(ticked=()), "where"),
        (Form(other="docker="), "other"),
        (Form(other="=x"), "other"),
        (Form(other="pytorch/pytorch"), "other"),
        (Form(other="'bare"), "other"),
        (Form(values={"steps": "0"}), "steps"),
        (Form(values={"steps": "-3"}), "steps"),
        (Form(values={"steps": "²"}), "steps"),
        (Form(values={"batch_size": "1.5"}), "batch_size"),
        (Form(values={"lr": "nan"}), "lr"),
        (Form(values={"seed": "99999999999"}), "seed"),
        (Form(values={"download": "yes"}), "download"),
        (Form(values={"dtype": "float16", "device": "cpu"}), "dtype"),
    ],
)
def test_what_cannot_be_meant_is_a_problem_of_its_field(form: Form, field: str) -> None:
    found = problems(form)
    assert list(found) == [field] and found[field]


def test_a_flag_that_a_workload_refuses_is_not_asked_for() -> None:
    form = Form("gcn", values={"batch_size": "7", "image_size": "9", "steps": "3"})
    assert arguments(form) == ("gcn", "--steps", "3")
    assert "--batch-size" in arguments(replace(form, workload="resnet18"))


def test_every_flag_of_a_workload_is_a_field_with_its_default() -> None:
    fields = launch_fields.parameters()
    assert {each.name for each in fields} == {*options.FLAGS}
    for name in BUILT_IN:
        told = {each.name: launch_fields.default(each, name) for each in fields}
        assert told["dtype"] == "float32" and told["seed"] == "0" and told["device"] == "auto"
        assert "default" not in "".join(each.help for each in fields)
    mnist = {each.name: launch_fields.default(each, "mnist-cnn") for each in fields}
    assert (mnist["steps"], mnist["batch_size"], mnist["lr"]) == ("1 epoch", "64", "1.0")
    assert launch_fields.default(fields[0], "resnet50") == "15"
    assert {each.name: launch_fields.default(each, "gcn") for each in fields}["workers"] == "0"
