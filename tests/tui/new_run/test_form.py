"""What the form of a new run turns into."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.cli.options.environments import environments
from gpuwatch.tui.new_run import parameters
from gpuwatch.tui.new_run.parameters import (
    OF_TORCHVISION,
    OWN_COMMAND,
    Form,
    arguments,
    command_line,
    problems,
)
from gpuwatch.workloads import options
from gpuwatch.workloads.names import BUILT_IN


def test_a_new_form_lacks_a_command_alone() -> None:
    assert problems(Form()) == {"command": "enter a command, such as python train.py"}
    form = Form(command="python train.py --lr 3e-4")
    assert problems(form) == {}
    assert command_line(form) == "gpuwatch run -- python train.py --lr 3e-4"
    assert command_line(Form("mnist-cnn")) == "gpuwatch run mnist-cnn"


def test_environments_are_checked_for_the_first_word_of_a_command() -> None:
    programs = [Form().program, Form(command="'a b' c").program, Form("gcn").program]
    assert programs == ["sh", "a b", None]


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("python -c 'print(1)", "a quotation mark is not closed"),
        ('python "train.py', "a quotation mark is not closed"),
        ("python train.py \\", "nothing follows the backslash at the end"),
        ("train.py | tee log", "| needs a shell"),
        ("make && ./train", "&& needs a shell"),
    ],
)
def test_a_command_that_a_shell_would_not_run_as_it_is_says_why(command: str, problem: str) -> None:
    assert problems(Form(command=command))["command"].startswith(problem)


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
        "--blocks 10 --order-seed 7"
    )


def test_no_gpu_ticked_is_none_and_all_of_them_is_no_flag() -> None:
    assert arguments(Form("gcn", gpus=()))[-2:] == ("--gpus", "none")
    assert "--gpus" not in arguments(Form("gcn", gpus=None))
    assert not Form("gcn", gpus=()).on_gpus and not Form("gcn", values={"device": "cpu"}).on_gpus
    assert Form(values={"device": "cpu"}).on_gpus, "a command has no device"


def test_a_command_keeps_its_quotes_and_has_no_parameters() -> None:
    form = Form(OWN_COMMAND, command="sh -c 'echo \"a b\"'", values={"steps": "no number"})
    assert arguments(form) == ("--", "sh", "-c", 'echo "a b"')
    assert command_line(form).endswith("""-- sh -c 'echo "a b"'""")


def test_a_command_runs_in_its_folder_with_its_variables(tmp_path: Path) -> None:
    words = """A=1 'B=two words' C=a,b D='"'x"""
    form = Form(command="ls", folder=f" {tmp_path} ", variables=words, other="docker=i")
    assert problems(form) == {} and form.runs_in == str(tmp_path)
    given = """,set=A=1,set=B="two words",set=C="a,b",set=D='"x'"""
    assert arguments(form) == ("--env", f"bare{given}", "--env", f"docker=i{given}", "--", "ls")
    parsed = environments(arguments(form)[1:2])[0].variables
    assert parsed == {"A": "1", "B": "two words", "C": "a,b", "D": '"x'}
    assert command_line(form).startswith(f"cd {tmp_path} && gpuwatch run --env ")
    assert arguments(replace(form, workload="gcn", other="")) == ("gcn",)


def test_a_model_of_torchvision_is_part_of_the_workloads_name() -> None:
    assert arguments(Form(OF_TORCHVISION, model=" vit_b_16 ")) == ("torchvision:vit_b_16",)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        (Form(OF_TORCHVISION), "model"),
        (Form(OF_TORCHVISION, model="a b"), "model"),
        (Form(OWN_COMMAND), "command"),
        (Form(OWN_COMMAND, command="'"), "command"),
        (Form(OWN_COMMAND, command="ls", folder="/no/such"), "folder"),
        (Form(OWN_COMMAND, command="ls", variables="A"), "variables"),
        (Form(OWN_COMMAND, command="ls", variables="A='"), "variables"),
        (Form(OWN_COMMAND, command="ls", variables="""A='"'\\'"""), "variables"),
        (Form("gcn", ticked=()), "environments"),
        (Form("gcn", other="docker="), "other"),
        (Form("gcn", other="docker=a,set=X=[1"), "other"),
        (Form("gcn", other="=x"), "other"),
        (Form("gcn", other="pytorch/pytorch"), "other"),
        (Form("gcn", other="'bare"), "other"),
        (Form("gcn", on="ssh=a slurm,nodelist=n[1"), "on"),
        (Form("mnist-cnn", values={"steps": "0"}), "steps"),
        (Form("mnist-cnn", values={"steps": "-3"}), "steps"),
        (Form("mnist-cnn", values={"steps": "²"}), "steps"),
        (Form("mnist-cnn", values={"batch_size": "1.5"}), "batch_size"),
        (Form("mnist-cnn", values={"lr": "nan"}), "lr"),
        (Form("mnist-cnn", values={"seed": "99999999999"}), "seed"),
        (Form("mnist-cnn", values={"download": "yes"}), "download"),
        (Form("mnist-cnn", values={"dtype": "float16", "device": "cpu"}), "dtype"),
    ],
)
def test_what_cannot_be_meant_is_a_problem_of_its_field(form: Form, field: str) -> None:
    found = problems(form)
    assert list(found) == [field] and found[field]


def test_each_place_is_one_of_its_own_and_blanks_in_quotes_belong_to_it() -> None:
    form = Form("gcn", on=' ssh=a  slurm,comment="a b",nodelist=n[1-2] ')
    wanted = ("gcn", "--on", "ssh=a", "--on", 'slurm,comment="a b",nodelist=n[1-2]')
    assert arguments(form) == wanted and problems(form) == {}


def test_a_flag_that_a_workload_refuses_is_not_asked_for() -> None:
    form = Form("gcn", values={"batch_size": "7", "image_size": "9", "steps": "3"})
    assert arguments(form) == ("gcn", "--steps", "3")
    assert "--batch-size" in arguments(replace(form, workload="resnet18"))


def test_every_flag_of_a_workload_is_a_field_with_its_default() -> None:
    fields = parameters.parameters()
    assert {each.name for each in fields} == {*options.FLAGS}
    for name in BUILT_IN:
        defaults = {each.name: parameters.default(each, name) for each in fields}
        assert (defaults["dtype"], defaults["seed"], defaults["device"]) == ("float32", "0", "auto")
        assert "default" not in "".join(each.help for each in fields)
    mnist = {each.name: parameters.default(each, "mnist-cnn") for each in fields}
    assert (mnist["steps"], mnist["batch_size"], mnist["lr"]) == ("1 epoch", "64", "1.0")
    assert parameters.default(fields[0], "resnet50") == "15"
    assert {each.name: parameters.default(each, "gcn") for each in fields}["workers"] == "0"


@pytest.mark.parametrize(
    ("name", "typed", "kept"),
    [
        ("steps", "500", True),
        ("steps", "5x", False),
        ("lr", "3e-4", True),
        ("lr", "one", False),
        ("warmup", "-1", False),
    ],
)
def test_a_number_takes_the_characters_of_a_number(name: str, typed: str, kept: bool) -> None:
    restrict = {each.name: each.restrict for each in parameters.parameters()}[name]
    assert restrict is not None and bool(re.fullmatch(restrict, typed)) is kept


def test_a_text_and_a_choice_take_any_characters() -> None:
    unrestricted = {each.name for each in parameters.parameters() if each.restrict is None}
    assert unrestricted == {
        *("size", "mode", "dtype", "memory_format", "attention", "compile", "checkpointing"),
        *("device", "data", "download", "counters"),
    }
