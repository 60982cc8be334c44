"""What the hook costs a training step, `import torch` and a program without torch.

    python -m benchmarks.hook [--steps 10000] [--starts 40]

Steps: in one process the hook is taken out and put back, block by block, in pairs whose order is
turned each time; a pair's difference is the cost. The programs are the worst there can be: steps
of well under a millisecond, of one module or 200, with and without a DataLoader. Starts: a process
with the hook and one without, by turns. Both in processor time, which other programs on the
machine disturb less, with 95 % intervals of the mean. Then a compiled program runs with the hook
and without: it must compile as often. Exit code 1 where an upper bound is above its target.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

BLOCK = 10
"""Steps between two switches."""
STEP_TARGET, START_TARGET, IMPORT_TARGET = 20e-6, 5e-3, 0.01
"""Seconds a step; seconds of a program without torch; share of ``import torch``."""
_ROOT = Path(__file__).resolve().parents[1]
_T_975 = 1.98
"""Student's t of 95 % with a hundred pairs; with 40 it is 2.02."""


class Interval(NamedTuple):
    """A mean and its 95 % interval."""

    mean: float
    low: float
    high: float

    def times(self, scale: float) -> Interval:
        return Interval(*(value * scale for value in self))

    def __str__(self) -> str:
        return f"{self.mean:.2f} ({self.low:.2f} to {self.high:.2f})"


def interval(values: Sequence[float]) -> Interval:
    """Of at least two values."""
    error = statistics.stdev(values) / math.sqrt(len(values))
    mean = statistics.fmean(values)
    return Interval(mean, mean - _T_975 * error, mean + _T_975 * error)


# In the hooked process.


class Switch:
    """Takes the hook out of torch and puts it back."""

    def __init__(self) -> None:
        from importlib import import_module

        from torch import autograd
        from torch.utils.data import dataloader

        hooks = import_module("torch.optim.optimizer")
        self._hooks = [
            (each, dict(each))
            for each in (hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks)
        ]
        self._patched: list[tuple[Any, str, Any]] = [
            (autograd, "backward", autograd.backward),
            (dataloader._BaseDataLoaderIter, "__next__", dataloader._BaseDataLoaderIter.__next__),
        ]
        assert all(given for _, given in self._hooks), "the hook is not in this process"

    def set(self, on: bool) -> None:
        for hooks, given in self._hooks:
            hooks.clear()
            hooks.update(given if on else {})
        for owner, name, patched in self._patched:
            setattr(owner, name, patched if on else patched.__wrapped__)


def training(modules: int, loader: bool) -> Any:
    """A function that takes one step of a model of so many modules."""
    import torch
    from torch import nn

    class Endless(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            while True:
                yield batch

    torch.set_num_threads(1)
    batch = torch.randn(8, 8), torch.randn(8, 8)
    model = nn.Sequential(nn.Linear(8, 8), *(nn.Tanh() for _ in range(modules - 1)))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = iter(torch.utils.data.DataLoader(Endless(), batch_size=None)) if loader else None

    def step() -> None:
        inputs, wanted = batch if batches is None else next(batches)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()

    return step


def step_costs(step: Any, set_hook: Any, steps: int) -> list[float]:
    """Seconds a step that the hook costs, by pair of blocks, of ``steps`` steps with it."""
    for on in (False, True):
        set_hook(on)
        for _ in range(BLOCK):
            step()
    costs = []
    for pair in range(steps // BLOCK):
        taken = {}
        for on in (True, False) if pair % 2 else (False, True):
            set_hook(on)
            begin = time.process_time()
            for _ in range(BLOCK):
                step()
            taken[on] = (time.process_time() - begin) / BLOCK
        costs.append(taken[True] - taken[False])
    set_hook(True)
    return costs


def compilations() -> dict[str, int]:
    """How often a compiled program is compiled, in its first steps and after 50 more."""
    import torch
    from torch._dynamo.utils import counters

    model = torch.compile(torch.nn.Linear(8, 8), backend="aot_eager")
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    update = torch.compile(optimizer.step, backend="aot_eager")

    def steps(count: int, update: Any) -> None:
        for _ in range(count):
            optimizer.zero_grad()
            model(torch.randn(8, 8)).sum().backward()
            update()

    found = {}
    for name, taken in (("optimizer.step", optimizer.step), ("compiled step", update)):
        for when, count in (("first", 5), ("later", 50)):
            steps(count, taken)
            found[f"{name}, {when}"] = counters["stats"]["unique_graphs"]
    return found


# Outside.


def variables(archive: Path | None, folder: Path) -> dict[str, str]:
    """The environment of a process with the hook, or without."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    path = [str(_ROOT)] if archive is None else [str(archive), str(_ROOT)]
    kept["PYTHONPATH"] = os.pathsep.join(path)
    if archive is not None:
        kept |= {"GPUWATCH_HOOK": str(folder), "GPUWATCH_HOOK_OPTIONS": ""}
    return kept


def inside(what: str, environment: dict[str, str]) -> Any:
    """What ``what`` finds in a process of its own."""
    program = f"import json\nfrom benchmarks import hook\nprint(json.dumps({what}))"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout)


def started(program: str, environment: dict[str, str]) -> float:
    """Processor seconds of a whole process."""
    process = subprocess.Popen([sys.executable, "-c", program], env=environment)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    return usage.ru_utime + usage.ru_stime


def start_costs(program: str, archive: Path, folder: Path, pairs: int) -> tuple[Interval, float]:
    """Seconds that the hook costs a process, and the process without it (median)."""
    costs, plain = [], []
    for pair in range(-1, pairs):
        taken = {}
        for on in (True, False) if pair % 2 else (False, True):
            taken[on] = started(program, variables(archive if on else None, folder))
        if pair >= 0:  # the first warms the caches
            costs.append(taken[True] - taken[False])
            plain.append(taken[False])
    return interval(costs), statistics.median(plain)


def main() -> int:
    """Measure, print the tables, compare with the targets."""
    parser = argparse.ArgumentParser(description="What the hook costs.")
    parser.add_argument("--steps", type=int, default=10_000, help="steps with the hook, by program")
    parser.add_argument("--starts", type=int, default=40, help="pairs of processes")
    given = parser.parse_args()
    from gpuwatch.hook.archive import build

    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "hook"
        folder.mkdir()
        archive = Path(name) / "hook.pyz"
        build(archive)
        hooked = variables(archive, folder)
        print("| program | cost of a step, us |\n| --- | --- |")
        for modules in (1, 200):
            for loader in (False, True):
                step = f"hook.training({modules}, {loader})"
                costs = inside(f"hook.step_costs({step}, hook.Switch().set, {given.steps})", hooked)
                found = interval(costs)
                missed |= found.high > STEP_TARGET
                batches = "a DataLoader" if loader else "no loader"
                print(f"| {modules} modules, {batches} | {found.times(1e6)} |", flush=True)
        print("\n| start | without the hook, ms | cost, ms |\n| --- | --- | --- |")
        for program, target in (("pass", START_TARGET), ("import torch", None)):
            found, plain = start_costs(program, archive, folder, given.starts)
            missed |= found.high > (target or IMPORT_TARGET * plain)
            print(f"| `{program}` | {plain * 1e3:.0f} | {found.times(1e3)} |", flush=True)
        print("\n| compiled program | graphs compiled so far |\n| --- | --- |")
        counts = {
            label: inside("hook.compilations()", environment)
            for label, environment in (
                ("without the hook", variables(None, folder)),
                ("with the hook", hooked),
            )
        }
        for label, count in counts.items():
            print(f"| {label} | {count} |")
        missed |= counts["with the hook"] != counts["without the hook"]
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
