"""Study files: what they may hold, and what is said of those that hold something else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.core.errors import GpuwatchError, StorageError, UsageError
from gpuwatch.studies import Study, load, study_of, with_parameters

WHOLE = """
title = "Mine"
question = "Which?"
afterwards = "Read it."
rigorous = true
margin = 0.02
cool_down = "500ms"
order_seed = 7

[parameters]
steps = 50

[[part]]
name = "first"
environments = ["bare", "docker=my/image:1,shm=1g"]
blocks = 5
workloads = ["gcn", { name = "mnist-cnn", parameters = { batch_size = 32, steps = 10 } }]
command = "python 'my train.py' --fast"

[[part]]
workloads = "mnist-cnn"
[part.parameters]
download = false
[part.sweep]
batch_size = [16, 32]
dtype = ["float32", "bfloat16"]
"""


def read(text: str) -> Study:
    return study_of(text, "mine.toml")


def part(body: str) -> Study:
    return read(f"[[part]]\n{body}")


def test_every_key_of_a_file_is_read() -> None:
    study = read(WHOLE)
    assert (study.title, study.question, study.afterwards) == ("Mine", "Which?", "Read it.")
    assert (study.blocks, study.quick, study.rigorous) == (None, False, True)
    assert (study.margin, study.cool_down, study.order_seed) == ("0.02", "500ms", 7)
    first, second = study.parts
    assert first.environments == ("bare", "docker=my/image:1,shm=1g")
    assert first.blocks == 5
    assert first.command == ("python", "my train.py", "--fast")
    assert [(each.name, each.parameters) for each in first.workloads] == [
        ("gcn", {"steps": 50}),
        ("mnist-cnn", {"steps": 10, "batch_size": 32}),
    ]
    assert first.workloads[1].arguments == ("--batch-size", "32", "--steps", "10")
    assert second.name == "part 2" and second.environments == ("bare",)


def test_a_study_runs_at_one_place_or_at_several() -> None:
    body = "[[part]]\nworkloads = 'gcn'"
    assert read(f"on = 'ssh=a'\n{body}").on == ("ssh=a",)
    assert read(f"on = ['ssh=a', 'kubernetes,node=pool:b']\n{body}").on == (
        "ssh=a",
        "kubernetes,node=pool:b",
    )
    assert read(body).on == ()
    with pytest.raises(UsageError, match="on must be a list of strings"):
        read(f"on = 5\n{body}")


def test_commands_to_compare_have_labels_in_their_order() -> None:
    (found,) = part("[part.commands]\nz = \"python 'my train.py'\"\na = 'true'").parts
    assert list(found.commands.items()) == [("z", ("python", "my train.py")), ("a", ("true",))]
    assert not found.workloads and not found.command


def test_a_sweep_makes_a_case_of_every_combination_in_the_order_asked_for() -> None:
    _, second = read(WHOLE).parts
    assert second.sweep == {"batch_size": (16, 32), "dtype": ("float32", "bfloat16")}
    pairs = [(each.parameters["batch_size"], each.parameters["dtype"]) for each in second.workloads]
    assert pairs == [(16, "float32"), (16, "bfloat16"), (32, "float32"), (32, "bfloat16")]


GOOD = 'workloads = ["gcn"]'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", ["there is no part", "[[part]]"]),
        ("title = ", ["not TOML", "line 1"]),
        ('a = 1\nb = "', ["not TOML", "line 2"]),
        ("x = " + "[" * 5000 + "]" * 5000, ["nested too deep"]),
        (f"blocks = 0x{'f' * 9000}\n[[part]]\n{GOOD}", ["more than 64 bits"]),
        ('[[part]]\ncommand = ["a", "b\\u0000c"]', ["NUL character"]),
        (f"titel = 'x'\n[[part]]\n{GOOD}", ["unknown key 'titel'", "did you mean title"]),
        (f"xyz = 'x'\n[[part]]\n{GOOD}", ["unknown key 'xyz'", "known: "]),
        (f"environments = ['bare']\n[[part]]\n{GOOD}", ["does not belong here", "[[part]]"]),
        (f"[[part]]\n{GOOD}\nmargin = 0.1", ["part 1", "margin does not belong here"]),
        (f"[[part]]\n{GOOD}\n[[part]]\nenviroments = ['bare']\n{GOOD}",
         ["part 2", "did you mean environments"]),
        (f"title = 5\n[[part]]\n{GOOD}", ["title must be a string, not 5"]),
        (f"title = '{'x' * 500}'\n[[part]]\n{GOOD}", ["title is longer than"]),
        (f"blocks = '7'\n[[part]]\n{GOOD}", ["blocks must be an integer from 1", "not '7'"]),
        (f"blocks = true\n[[part]]\n{GOOD}", ["blocks must be an integer"]),
        (f"blocks = 0\n[[part]]\n{GOOD}", ["blocks must be an integer from 1"]),
        (f"quick = 1\n[[part]]\n{GOOD}", ["quick must be true or false"]),
        (f"blocks = 7\nquick = true\n[[part]]\n{GOOD}", ["exclude each other"]),
        (f"margin = []\n[[part]]\n{GOOD}", ["margin must be a number"]),
        (f"margin = nan\n[[part]]\n{GOOD}", ["margin must be a number"]),
        ("[part]\nworkloads = ['gcn']", ["part must be an array of tables", "[[part]]"]),
        ("[[part]]", ["part 1", "nothing to run"]),
        ("[[part]]\nworkloads = []", ["workloads must be a list that is not empty"]),
        ("[[part]]\nworkloads = [5]", ["workload 1 has no name"]),
        ("[[part]]\nworkloads = ['mnist']", ["no workload is named 'mnist'", "mnist-cnn"]),
        (f"[[part]]\n{GOOD}\nenvironments = []", ["environments is empty", '["bare", "docker"]']),
        (f"[[part]]\n{GOOD}\nenvironments = [5]", ["environments must be a list of strings"]),
        ("[[part]]\nworkloads = ['gcn', 'gcn']", ["gcn is listed twice", "blocks"]),
        (f"[[part]]\nname='a'\n{GOOD}\n[[part]]\nname='a'\n{GOOD}", ["two parts are named 'a'"]),
        ("[[part]]\ncommand = ''", ["command is empty"]),
        ("[[part]]\ncommand = []", ["command is empty"]),
        ("[[part]]\ncommand = \"a 'b\"", ["command cannot be split"]),
        ("[[part]]\ncommand = 'a | b'", ["| in command is for a shell", "pipefail -c 'a | b'"]),
        ("[[part]]\ncommand = 5", ["command must be a list of strings"]),
        ("[[part]]\ncommand = 'X=1 a'", ["X=1 in command sets a variable", "env X=1 a"]),
        ("[[part]]\ncommands = { B = 'a' }", ["invalid label 'B' in commands", "small letter"]),
        ("[[part]]\ncommands = { b = [] }", ["command b must be a string"]),
        ("[[part]]\ncommands = { b = ' ' }", ["command b is empty", '"b" = "python train.py"']),
        ("[[part]]\ncommands = { b = '\"' }", ["command b cannot be split"]),
        ("[[part]]\ncommands = { b = 'a > c' }", ["> in command b is for a shell"]),
        ("[[part]]\ncommands = { b = 'a' }\ncommand = 'c'", ["command cannot be a label"]),
        ("[[part]]\ncommands = { b = 'a' }\nworkloads = 'gcn'", ["workloads cannot be a label"]),
        ("[[part]]\ncommands = { b = 'a' }\n[part.sweep]\nlr = [1, 2]", ["not of a command"]),
        ("[[part]]\ncommand = 'true'\n[part.sweep]\nlr = [1, 2]", ["not of a command"]),
        ("[parameters]\nsteps = 5\n[[part]]\ncommand = 'true'", ["gpuwatch's own workloads"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\nstep = 5",
         ["part 1, parameters", "no parameter 'step'", "did you mean steps"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\nsteps = 0", ["steps: must be an integer of at"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\nsteps = '5'", ["a number without quotes"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\nsteps = true", ["must be one value, not True"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\nsteps = 2.5", ["steps: must be an integer"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\nlr = inf", ["lr: must be a finite number"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\nlr = [1]", ["lr: must be one value"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\ndtype = 'int8'", ["dtype: invalid choice"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\ndata = ' '", ["data: names no folder"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\ndtype = 8", ["dtype: invalid choice"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\ncounters = 1", ["counters is a switch"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\ndownload = true", ["--data DIR"]),
        (f"[[part]]\n{GOOD}\n[part.parameters]\ndevice = 'cpu'\ndtype = 'tf32'",
         ["tensor cores"]),
        (f"[[part]]\n{GOOD}\n[part.sweep]\nlr = 0.1", ["lr must be a list of two or more"]),
        (f"[[part]]\n{GOOD}\n[part.sweep]\nlr = [0.1]", ["lr must be a list of two or more"]),
        (f"[[part]]\n{GOOD}\n[part.sweep]\nlr = [0.1, 1e-1]", ["lr has 0.1 twice"]),
        (f"[[part]]\n{GOOD}\n[part.sweep]\ndevice = ['cpu', 'cuda']", ["device cannot be swept"]),
        (f"[[part]]\n{GOOD}\n[part.sweep]\nbatch = [1, 2]", ["no parameter 'batch'"]),
        (f"[[part]]\n{GOOD}\nparameters = {{ lr = 1 }}\n[part.sweep]\nlr = [1, 2]",
         ["lr is among the parameters as well"]),
        ("[[part]]\nworkloads = [{ name = 'gcn', parameters = { lr = 1 } }]\n"
         "[part.sweep]\nlr = [1, 2]", ["lr is already in the part's sweep"]),
        (f"[[part]]\n{GOOD}\n[part.sweep]\nlr = {list(range(1, 60))}\nseed = {list(range(60))}",
         ["3,540 combinations"]),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_place(text: str, said: list[str]) -> None:
    with pytest.raises(UsageError) as caught:
        read(text)
    told = str(caught.value)
    assert told.startswith("mine.toml") and caught.value.hint
    for each in said:
        assert each in told
    assert "\n" not in told and len(told) < 400


@given(st.text(max_size=200))
def test_any_text_gives_a_study_or_one_error(text: str) -> None:
    for tried in (text, f"[[part]]\n{GOOD}\n{text}", WHOLE.replace("gcn", text)):
        try:
            study = read(tried)
        except GpuwatchError:
            continue
        assert study.parts


@given(st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
))  # fmt: skip
def test_a_parameter_of_any_type_is_taken_or_refused(value: object) -> None:
    from gpuwatch.studies.parameters import checked

    for name in ("batch_size", "lr", "dtype", "data", "counters", "device"):
        try:
            found = checked(name, value, "here")
        except UsageError:
            continue
        assert isinstance(found, (int, float, str, bool))


def test_files_that_are_none_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="does not exist"):
        load(tmp_path / "none.toml")
    with pytest.raises(StorageError, match="is not a file"):
        load(tmp_path)
    big = tmp_path / "big.toml"
    big.write_bytes(b"#" * (256 * 1024 + 1))
    with pytest.raises(UsageError, match="larger than 256 KiB"):
        load(big)
    big.write_bytes(b"title = '\xff'")
    with pytest.raises(UsageError, match="not UTF-8"):
        load(big)


def test_a_data_folder_is_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    study = part(f"{GOOD}\n[part.parameters]\ndata = 'here'")
    assert study.parts[0].workloads[0].parameters["data"] == str(tmp_path / "here")


def test_a_flag_of_the_command_line_replaces_a_parameter() -> None:
    changed = with_parameters(read(WHOLE), {"steps": 5, "device": "cpu"})
    for each in (each for part in changed.parts for each in part.workloads):
        assert each.parameters["steps"] == 5
        flags = " ".join(each.arguments)
        assert "--steps 5" in flags and "--device cpu" in flags


def test_values_of_a_sweep_that_cannot_run_stay_in_it_while_two_others_are_left() -> None:
    sweep = "workloads = ['bert']\n[part.sweep]\ndtype = ['float32', 'tf32', 'bfloat16']"
    (changed,) = with_parameters(part(sweep), {"device": "cpu"}).parts
    dtypes = [each.parameters["dtype"] for each in changed.workloads]
    assert dtypes == ["float32", "tf32", "bfloat16"]
    with pytest.raises(UsageError, match="tensor cores"):
        with_parameters(part(sweep.replace(", 'bfloat16'", "")), {"device": "cpu"})


@pytest.mark.parametrize(
    ("body", "given_", "said"),
    [
        (f"{GOOD}\n[part.sweep]\nlr = [1, 2]", {"lr": 1}, "--lr is swept by part 'part 1'"),
        ("command = 'true'", {"batch_size": 1}, "--batch-size is a flag of gpuwatch's own"),
        ("workloads = ['gcn', {name='gcn', parameters={lr=1}}]", {"lr": 2}, "is listed twice"),
        ("workloads = [{name='gcn', parameters={dtype='tf32'}}]", {"device": "cpu"}, "tf32"),
    ],
)
def test_a_flag_that_does_not_go_with_the_study_is_refused(
    body: str, given_: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        with_parameters(part(body), given_)


def test_steps_of_a_studys_commands_can_be_profiled() -> None:
    study = part("command = 'true'")
    assert with_parameters(study, {"profile": 2}) == study
