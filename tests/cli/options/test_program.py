"""A program of the user's own among gpuwatch's options, with and without ``--``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from gpuwatch.cli.dispatch import parser_of
from gpuwatch.cli.options import joining, launch
from gpuwatch.cli.options.cases import command_name, program_at
from gpuwatch.core.errors import UsageError
from tests.conftest import Cli

from ..test_errors import one_line


@pytest.mark.parametrize(
    ("words", "at"),
    [
        (["sh", "-c", "true"], 0),
        (["--env", "bare", "sh", "train.sh"], 2),
        (["--env=bare", "--gpus", "0", "sh", "--epochs", "3"], 3),
        (["--blocks", "3", "sh"], 2),
        (["--dcgm", "sh"], 1),
        (["mnist-cnn", "--steps", "3"], None),
        (["--steps", "3", "mnist-cnn", "sh"], None),
        (["torchvision:vgg11"], None),
        (["no-such-program", "sh"], None),
        (["--out", "sh"], None),
        (["--out"], None),
        ([], None),
    ],
)
def test_a_program_begins_at_the_first_word_that_is_no_option_and_no_value(
    words: list[str], at: int | None
) -> None:
    assert program_at(parser_of("--record"), words) == at


@pytest.mark.parametrize("words", [["--quiet"], ["--hook", "count"]])
def test_a_wrong_option_before_the_program_is_told_and_none_of_the_programs(
    words: list[str],
) -> None:
    with pytest.raises(UsageError, match=words[0]):
        program_at(parser_of("run"), [*words, "sh", "--n", "5"])


def test_a_workload_wins_over_a_file_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("gcn").write_text("")
    Path("train").write_text("")
    assert program_at(parser_of("run"), ["gcn"]) is None
    assert program_at(parser_of("run"), ["train"]) == 0


def planned(cli: Cli, *words: object) -> list[str]:
    found = json.loads(cli("--record", "--plan", "--format", "json", *words).stdout)
    return list(found["parts"][0]["cases"][0]["arguments"])


def test_all_that_follows_the_program_is_its_own(cli: Cli) -> None:
    assert planned(cli, "sh", "-c", "x", "--env", "y") == ["sh", "-c", "x", "--env", "y"]
    assert planned(cli, "--env", "bare", "sh", "a", "--", "b") == ["sh", "a", "--", "b"]
    assert planned(cli, "--", "mnist-cnn", "x") == ["mnist-cnn", "x"]


def test_a_word_that_is_neither_workload_nor_program_says_where_programs_go(cli: Cli) -> None:
    said = one_line(cli("--record", "no-such-program", "x", code=2).stderr)
    assert "no workload is named 'no-such-program'" in said and "-- no-such-program x" in said


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("torchrun --nproc-per-node 2 train.py", "train.py"),
        ("torchrun --nproc_per_node=2 --rdzv-endpoint host:29500 dir/train.py --lr 1", "train.py"),
        ("torchrun --standalone --nproc-per-node 2 -m pkg.train 3", "pkg.train"),
        ("torchrun --nproc-per-node 2 --no-python ./program 3", "program"),
        ("torchrun --nproc-per-node 2", "torchrun"),
        ("env -u NAME CUDA_VISIBLE_DEVICES=0 python train.py", "train.py"),
        ("nice -n 5 timeout -s INT 30m python -u dir/train.py", "train.py"),
        ("taskset -c 0-3 torchrun --nproc-per-node 2 train.py", "train.py"),
        ("nohup ./program 3", "program"),
        ("timeout 5", "timeout"),
        ("bash -c 'cd dir && python train.py --lr 1'", "train.py"),
        ("bash -c 'sleep 1'", "bash"),
        ("accelerate launch --num_processes 1 --config_file a.yaml train.py", "train.py"),
        ("accelerate launch train", "train"),
        ("deepspeed --num_gpus 2 train.py", "train.py"),
        ("python -m torch.distributed.run --nproc-per-node 2 train.py", "train.py"),
        ("python -m pkg.train 2", "pkg.train"),
        ("python3.12 -u -W ignore -X dev dir/train --lr 1 other.py", "train"),
        ("python -c print(1) a.py", "python"),
        ("python", "python"),
        ("bash -o pipefail job.sh", "job.sh"),
        ("./train --steps 2", "train"),
    ],
)
def test_a_run_is_named_after_the_script_that_its_command_starts(command: str, name: str) -> None:
    assert command_name(shlex.split(command)) == name


def test_several_places_may_have_a_job_that_is_joined_among_them() -> None:
    arguments = parser_of("--record").parse_args(["--on", "ssh=a", "--on", "slurm,job=7"])
    request = launch.request(arguments, ())
    at = {place: joining.at(request, place).plan for place in arguments.on}
    names = {place: plan.runs[0].workload.name for place, plan in at.items()}
    assert names == {"ssh=a": "machine", "slurm,job=7": "slurm-job-7"}
    with pytest.raises(UsageError, match="job=7 runs already"):
        launch.request(arguments, ("true",))
