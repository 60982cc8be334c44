"""The file that a Python runs is found among its options, or not guessed."""

from __future__ import annotations

import pytest

from gpuwatch.core.interpreter import script


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("python train.py --steps 5", "train.py"),
        ("/opt/venv/bin/python3.11 -u -X dev -Wdefault -W ignore -OO a/train.py -c", "a/train.py"),
        ("python -m package train.py", None),
        ("python -um package", None),
        ("python -c pass", None),
        ("python -", None),
        ("python --check-hash-based-pycs default train.py", None),
        ("python", None),
        ("torchrun train.py", "train.py"),
        ("/v/bin/torchrun --standalone --nproc-per-node 2 a/train.py b.py", "a/train.py"),
        ("python -u -m torch.distributed.run --nnodes=1 train.py", "train.py"),
        ("accelerate launch --multi_gpu train.py", "train.py"),
        ("accelerate config train.py", None),
        ("torchrun --nproc-per-node 2 -m package train.py", None),
        ("torchrun --no-python ./train.sh train.py", None),
        ("torchrun --nproc-per-node 2 train settings.py", None),
        ("torchrun train settings.py", None),
        ("torchrun --nproc-per-node=2 train settings.py", None),
        ("torchrun --rdzv_endpoint h:1 --nnodes 2 --max-restarts 1 train.py", "train.py"),
        ("torchrun --standalone run_it --out gen.py", None),
        ("torchrun -m=a b.py", None),
        ("accelerate launch --multi_gpu ./train --config new.py", None),
        ("accelerate launch --num_processes 2 --config_file a.yaml train.py", "train.py"),
        ("python-config train.py", None),
    ],
)
def test_the_file_that_a_python_runs(line: str, file: str | None) -> None:
    assert script(line.split()) == file
