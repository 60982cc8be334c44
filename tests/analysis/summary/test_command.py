"""What ran, as the list of sessions says it."""

from __future__ import annotations

import pytest

from gpuwatch.analysis.summary.failure import command_of


@pytest.mark.parametrize(
    ("name", "command", "told"),
    [
        ("train.py", ["python3", "train.py", "--bs", "64"], "train.py --bs 64"),
        ("train.py", ["python3", "-u", "/a/b/train.py", "40"], "train.py 40"),
        ("train.py", ["torchrun", "--nproc-per-node=8", "train.py", "--lr=1"], "train.py --lr=1"),
        ("torch.distributed.run", ["python3", "-m", "torch.distributed.run", "t.py"],
         "torch.distributed.run t.py"),
        ("sh", ["sh", "-c", "a | b"], "sh -c 'a | b'"),
        ("mine", ["/opt/mine", "--fast"], "mine --fast"),
        ("train.py", ["env", "A=1", "B=x y", "python3", "train.py", "7"], "A=1 'B=x y' train.py 7"),
        ("train.py", ["sh", "-c", "A=1 python3 train.py 7"], "A=1 train.py 7"),
    ],
)  # fmt: skip
def test_a_program_of_ones_own_is_its_script_and_arguments(
    name: str, command: list[str], told: str
) -> None:
    assert command_of({"name": name, "kind": "command", "arguments": command}) == told


def test_a_built_in_workload_is_its_name_and_the_flags_that_were_typed() -> None:
    workload = {"name": "mnist-cnn", "kind": "workload", "arguments": ["--batch-size", "64"]}
    assert command_of(workload) == "mnist-cnn --batch-size 64"
    assert command_of({"name": "machine", "kind": "machine"}) == "machine"


def test_what_a_session_says_is_cleaned_and_cut() -> None:
    hostile = {"name": "a\x1b[31m.py", "kind": "command", "arguments": ["a.py", "x\x1b[2J" * 500]}
    told = command_of(hostile)
    assert "\x1b" not in told and len(told) == 300 and told.endswith("…")
    assert command_of({"name": "a", "kind": "command", "arguments": 7}) == "a"
