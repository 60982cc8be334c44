"""``label=``, ``set=`` and ``python=`` of ``--env``, for programs of the user's own."""

from __future__ import annotations

import sys
import venv
from pathlib import Path

import pytest

from gpuwatch.cli.options.environments import environments
from gpuwatch.core.errors import UsageError
from tests.conftest import Cli
from tests.reading import log, meta, sessions

TELLS = "import os, sys; print(os.environ.get('GREETING'), os.environ.get('NOT_PASSED_ON'))"


def refused(*texts: str) -> tuple[str, str]:
    with pytest.raises(UsageError) as error:
        environments(texts)
    return error.value.message, str(error.value.hint)


def test_a_label_names_the_environment() -> None:
    found = environments(["bare,label=old", "bare,label=new,set=X=1", "bare"])
    assert [each.label for each in found] == ["old", "new", "bare"]


def test_variables_are_in_the_label_where_there_is_no_other() -> None:
    found = environments(["bare", "bare,set=OMP_NUM_THREADS=1,set=X="])
    assert [each.label for each in found] == ["bare", "bare,set=OMP_NUM_THREADS=1+X="]
    assert [dict(each.variables) for each in found] == [{}, {"OMP_NUM_THREADS": "1", "X": ""}]


def test_the_value_of_a_variable_may_hold_equals_signs_and_blanks() -> None:
    (found,) = environments(["docker=x,set=FLAGS=--a=b --c"])
    assert found.variables == {"FLAGS": "--a=b --c"}


def test_the_same_environment_twice_is_numbered_with_a_label_too() -> None:
    found = environments(["bare,label=a", "bare,label=a"])
    assert [each.label for each in found] == ["a#1", "a#2"]


@pytest.mark.parametrize(
    ("texts", "says", "hint"),
    [
        (["bare,label=a", "bare,label=a,set=X=1"], "two different environments", "its own label="),
        (["docker=x,label=bare", "bare"], "are labelled bare", "its own label="),
        (["bare,label=Old"], "invalid label=Old in --env", "small letter"),
        (["bare,set=X"], "set=X in --env sets no variable", "set=NAME=VALUE"),
        (["bare,set=1X=2"], "sets no variable", "set=NAME=VALUE"),
        (["bare,set=X=1,set=X=2"], "--env sets X twice", "once"),
        (["bare,set=CUDA_VISIBLE_DEVICES=0"], "gpuwatch sets it", "--gpus"),
        (["bare,set=X=1,2"], "unknown option '2'", "a comma ends set=X=1"),
    ],
)
def test_what_cannot_be_is_refused_with_the_way_out(texts: list[str], says: str, hint: str) -> None:
    message, way_out = refused(*texts)
    assert says in message and hint in way_out


def test_bare_runs_get_the_variables_of_their_environment_and_the_session_has_them(
    cli: Cli, tmp_path: Path
) -> None:
    cli.variables["GREETING"] = "the caller's"
    cli(
        "--record", "--env", "bare", "--env", "bare,label=own,set=GREETING=hello  there",
        "--out", tmp_path, "--", sys.executable, "-c", TELLS,
    )  # fmt: skip
    assert [
        (path.name, *log(path), meta(path)["environment"].get("variables"))
        for path in sessions(tmp_path)
    ] == [
        ("01-bare.gpuwatch", "the caller's None", None),
        ("02-own.gpuwatch", "hello  there None", {"GREETING": "hello  there"}),
    ]


@pytest.mark.apptainer
def test_apptainer_sets_them_and_no_others(cli: Cli, tmp_path: Path, small_root: Path) -> None:
    in_container(cli, tmp_path, f"apptainer={small_root}", tmp_path)


@pytest.mark.charliecloud
def test_charliecloud_sets_them_and_no_others(cli: Cli, tmp_path: Path, small_root: Path) -> None:
    in_container(cli, tmp_path, f"charliecloud={small_root}", Path("/usr"))  # which the image has


@pytest.mark.docker
def test_docker_sets_them_and_no_others(cli: Cli, tmp_path: Path, small_image: str) -> None:
    in_container(cli, tmp_path, f"docker={small_image}", tmp_path)


def in_container(cli: Cli, tmp_path: Path, environment: str, folder: Path) -> None:
    cli.variables["NOT_PASSED_ON"] = "the caller's"
    cli(
        "--record", "--env", f"{environment},label=own,set=GREETING=$HOME: it's me",
        "--out", tmp_path, "--", "python3", "-c", TELLS, folder=folder,
    )  # fmt: skip
    (path,) = sessions(tmp_path)
    assert log(path) == ["$HOME: it's me None"]
    assert meta(path)["environment"]["variables"] == {"GREETING": "$HOME: it's me"}


def test_python_replaces_the_python_that_a_command_begins_with(cli: Cli, tmp_path: Path) -> None:
    venv.create(tmp_path / "new", symlinks=True, with_pip=False)
    cli(
        "--record", "--env", f"bare,label=own,python={tmp_path / 'new'}", "--out", tmp_path / "out",
        "--", "python3", "-c", "import os, sys; print(sys.prefix, os.environ['VIRTUAL_ENV'])",
    )  # fmt: skip
    (path,) = sessions(tmp_path / "out")
    assert log(path) == [f"{tmp_path / 'new'} {tmp_path / 'new'}"]
    assert meta(path)["workload"]["arguments"][0] == "python3", "as it was typed"
    assert meta(path)["environment"]["python"] == str(tmp_path / "new/bin/python")


def test_an_interpreter_that_is_not_there_is_told_before_anything_is_made(
    cli: Cli, tmp_path: Path
) -> None:
    done = cli(
        "--record", "--env", "bare,python=/no/python", "--out", tmp_path / "out",
        "--", "python", "train.py", code=3,
    )  # fmt: skip
    assert "there is no command '/no/python'" in done.stderr
    assert not (tmp_path / "out").exists()
