"""Runs programs with the hook, as the recorder does, and reads what they report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from gpuwatch.hook.archive import build
from tests.forks import Forks

TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

def train(steps=6, workers=0, context=None, after=lambda step: None):
    torch.manual_seed(0)
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = TensorDataset(torch.randn(4 * steps, 8), torch.randn(4 * steps, 4))
    loader = DataLoader(data, batch_size=4, num_workers=workers, multiprocessing_context=context)
    for step, (inputs, wanted) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), wanted)
        loss.backward()
        optimizer.step()
        after(step)
    return loss.item().hex()
"""
"""A module of programs: four samples of 8 numbers a step."""


class Hooked:
    """Processes in a folder of their own; ``channel`` is where they report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.channel = folder / "hook"
        self.channel.mkdir()
        self.archive = folder / "hook.pyz"
        build(self.archive)
        self.variables = {
            "PYTHONPATH": str(self.archive),
            "GPUWATCH_HOOK": str(self.channel),
            "PYTHONDONTWRITEBYTECODE": "",
        }
        (folder / "training.py").write_text(TRAIN)

    def start(
        self, program: str, *flags: str, python: str = sys.executable, hook: bool = True
    ) -> subprocess.Popen[str]:
        script = self.folder / "program.py"
        script.write_text(program)
        return subprocess.Popen(
            [python, *flags, str(script)],
            env={**os.environ, **(self.variables if hook else {})},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=self.folder,
        )

    def run(
        self,
        program: str,
        *flags: str,
        python: str = sys.executable,
        hook: bool = True,
        code: int = 0,
    ) -> str:
        """What the program printed; it must end with ``code``, and print no error of the hook."""
        process = self.start(program, *flags, python=python, hook=hook)
        out, errors = process.communicate(timeout=150)
        assert process.returncode == code, errors
        assert "gpuwatch" not in errors, errors
        return out

    def plain(self, program: str, plainly: Forks) -> str:
        """What the program prints without the hook."""
        script = self.folder / "program.py"
        script.write_text(program)
        done = plainly.run(str(script), folder=self.folder, variables=os.environ)
        assert done.returncode == 0, done.stderr
        return done.stdout

    @property
    def reports(self) -> list[list[dict[str, Any]]]:
        """The lines of each process that has a file."""
        files = sorted(self.channel.iterdir())
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    def lines(self, event: str) -> list[dict[str, Any]]:
        """Of all processes."""
        return [line for report in self.reports for line in report if line["event"] == event]

    @property
    def steps(self) -> int:
        return sum(line["count"] for line in self.lines("step"))
