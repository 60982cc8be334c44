"""``gpuwatch sweep``: lists of values become the cases of one part."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest

from gpuwatch.cli.commands import sweep
from gpuwatch.cli.dispatch import dispatch
from gpuwatch.core.errors import UsageError
from gpuwatch.session.reading.status import State, status
from gpuwatch.session.study.plan import Plan, read
from gpuwatch.workloads.options import parameters_to_argv
from tests.conftest import Cli
from tests.reading import meta, sessions

from ..parsed_request import plan_asked


@pytest.fixture
def ask(monkeypatch: pytest.MonkeyPatch) -> partial[Plan]:
    """What ``gpuwatch sweep`` would start."""
    return partial(plan_asked, sweep, monkeypatch)


def test_a_list_is_an_axis_and_a_single_value_holds_for_all(ask: partial[Plan]) -> None:
    (part,) = ask("gcn", "--lr", "0.1, 0.01", "--steps", 20, "--counters").parts
    assert part.sweep == {"lr": (0.1, 0.01)}
    assert [case.parameters for case in part.workloads] == [
        {"steps": 20, "lr": 0.1, "counters": True},
        {"steps": 20, "lr": 0.01, "counters": True},
    ]
    assert part.blocks == 3 and [each.label for each in part.environments] == ["bare"]


def test_several_lists_make_every_combination(ask: partial[Plan]) -> None:
    lists = ("--batch-size", "16,32", "--dtype", "float32,bfloat16", "--workers", "0,1,2")
    (part,) = ask("mnist-cnn", *lists, "--env", "bare", "--env", "docker", "--blocks", 5).parts
    assert list(part.sweep) == ["batch_size", "dtype", "workers"]
    assert len(part.workloads) == 12 and len({case.arguments for case in part.workloads}) == 12
    assert part.blocks == 5 and len(part.environments) == 2


def test_runs_are_long_enough_for_a_steady_state_unless_asked_otherwise(ask: partial[Plan]) -> None:
    def length(name: str, *argv: object) -> dict[str, object]:
        (part,) = ask(name, "--seed", "1,2", *argv).parts
        first = part.workloads[0]
        assert list(first.arguments) == parameters_to_argv(first.parameters)
        return {**first.parameters, "seed": None}

    assert length("mnist-cnn") == {"steps": 100, "seed": None}
    assert length("mnist-cnn", "--epochs", 3) == {"epochs": 3, "seed": None}
    assert length("mnist-cnn", "--steps", "5,6") == {"steps": 5, "seed": None}
    assert length("gcn") == {"seed": None}, "200 epochs of its own"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["mnist-cnn"], "no flag has several values"),
        (["mnist-cnn", "--batch-size", "16"], "no flag has several values"),
        (["--batch-size", "16,32"], "sweep takes one workload, and none was named"),
        (["gcn", "mnist-cnn", "--lr", "1,2"], "sweep takes one workload, not 2"),
        (["mnist", "--batch-size", "16,32"], "did you mean mnist-cnn"),
        (["mnist-cnn", "--batch-size", "16,16"], "batch_size has 16 twice"),
        (["mnist-cnn", "--lr", "1e-1,0.1"], "lr has 0.1 twice"),
        (["mnist-cnn", "--batch-size", "16,,32"], "--batch-size: must be an integer"),
        (["mnist-cnn", "--batch-size", "16,0"], "--batch-size: must be an integer of at least 1"),
        (["mnist-cnn", "--dtype", "float32,int8"], "--dtype: invalid choice: 'int8'"),
        (["mnist-cnn", "--dtype", "float32,tf32", "--device", "cpu"], "tensor cores"),
        (["mnist-cnn", "--device", "cpu,cuda"], "--device: must be auto, cpu, cuda"),
        (["gcn", "--lr", ",".join(map(str, range(1, 2002)))], "2,001 combinations"),
        (["gcn", "--lr", "1,2", "--blocks", "1000"], "2002 runs"),
        (["gcn", "--lr", "1,2", "--", "true"], "not those of a command; of a program of your own"),
        (["--lr", "1,2", "--", "true"], "not those of a command; of a program of your own"),
    ],
)
def test_what_is_no_sweep_is_one_error(argv: list[str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        dispatch(["sweep", *argv])
    assert said in str(caught.value)


TELLS_ITS_BATCH_SIZE = f"""\
#!/bin/sh
[ "$1" = -c ] && exec {sys.executable} "$@"
while [ "$1" != --batch-size ]; do shift; done
echo ":::GPUWATCH {{\\"event\\": \\"run\\", \\"batch_size\\": $2}}"
echo ':::GPUWATCH {{"event": "step", "step": 1, "samples": 1, "seconds": 0.1}}'
"""
"""An interpreter that tells what the workload was given, in place of training it."""


@pytest.mark.torch
def test_a_sweep_runs_each_value_in_each_block(cli: Cli, tmp_path: Path) -> None:
    python = cli.home / "python"
    python.write_text(TELLS_ITS_BATCH_SIZE)
    python.chmod(0o755)
    cli(
        "sweep", "sentiment-rnn", "--batch-size", "32,64", "--device", "cpu", "--blocks", 1,
        "--cool-down", 0, "--python", python, "--out", tmp_path, "--quiet",
    )  # fmt: skip
    found = read(next(tmp_path.glob("sentiment-rnn-*")))
    assert found is not None and found.parts[0].sweep == {"batch_size": (32, 64)}
    ran = [(run.block, run.workload.parameters["batch_size"]) for run in found.runs]
    assert ran[:2] == [(0, 32), (0, 64)] and sorted(ran[2:]) == [(1, 32), (1, 64)]
    paths = sessions(tmp_path)
    assert [path.name for path in paths] == [run.file for run in found.runs]
    for path, run in zip(paths, found.runs, strict=True):
        told = meta(path)
        assert status(told, path).state is State.FINISHED
        assert told["run"]["batch_size"] == run.workload.parameters["batch_size"]
