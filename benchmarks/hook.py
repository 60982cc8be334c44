"""What the hook costs a training step, `import torch` and a program without torch.

    python -m benchmarks.hook [--steps 10000] [--pairs 20] [--starts 40] [--only shares]

Steps: in one process the hook is taken out and put back, block by block, in pairs whose order is
turned each time; a pair's difference is the cost. The programs are the worst there can be: steps
of well under a millisecond, of one module or 200, with and without a DataLoader. Shares: the same
for steps of 0.3 to 300 ms, with the phases timed by events: on a GPU, where there is one, by the
wall clock; else by a stand-in of which each call takes 20 us. Starts: a process with the hook and
one without, by turns. All but shares on a GPU in processor time, which other programs on the
machine disturb less, with 95 % intervals of the mean. Then a compiled program runs with the hook
and without: it must compile as often. Exit code 1 where an upper bound is above its target.
"""

from __future__ import annotations

import argparse
import json
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
LENGTHS, SHARE_TARGET = (0.3e-3, 2e-3, 30e-3, 300e-3), 0.005
"""Seconds of a step, and the share of it that the hook may take."""
EVENT_CALL = 20e-6
"""Seconds of a call of the stand-in for events."""
LONGEST_BLOCK = 0.5
"""Seconds of a block of short steps: the hook chooses anew several times within it."""
_ROOT = Path(__file__).resolve().parents[1]


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
    from scipy.stats import ttest_1samp  # not in the hooked process

    within = ttest_1samp(values, 0).confidence_interval()
    return Interval(statistics.fmean(values), within.low, within.high)


# In the hooked process.


class Switch:
    """Takes the hook out of torch and puts it back."""

    def __init__(self) -> None:
        from importlib import import_module

        from torch import autograd
        from torch.utils.data import dataloader

        self._tracking = import_module("gpuwatch_hook.tracking")
        self.tracker = self._tracking.tracker
        self._off_since = time.monotonic()
        hooks = import_module("torch.optim.optimizer")
        self._hooks = (hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks)
        self._patched = (autograd, "backward"), (dataloader._BaseDataLoaderIter, "__next__")
        self._on: Any = self._in_place()  # what the hook took out itself stays out
        assert self._on[0][1], "the hook is not in this process"

    def _in_place(self) -> Any:
        return [dict(each) for each in self._hooks], [getattr(*each) for each in self._patched]

    def set(self, on: bool) -> None:
        if on == (self._tracking.tracker is not None):
            return
        if on:  # it took no time while it was out
            self.tracker._told += time.monotonic() - self._off_since
        else:
            self._off_since = time.monotonic()
            self._on = self._in_place()
        self._tracking.tracker = self.tracker if on else None
        for each, given in zip(self._hooks, self._on[0], strict=True):
            each.clear()
            each.update(given if on else {})
        for (owner, name), given in zip(self._patched, self._on[1], strict=True):
            setattr(owner, name, given if on else getattr(given, "__wrapped__", given))


def training(modules: int, loader: bool, device: str = "cpu") -> Any:
    """A function that takes one step of a model of so many modules."""
    import torch
    from torch import nn

    class Endless(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
        def __iter__(self) -> Any:
            while True:
                yield batch

    torch.set_num_threads(1)
    batch = torch.randn(8, 8, device=device), torch.randn(8, 8, device=device)
    model = nn.Sequential(nn.Linear(8, 8), *(nn.Tanh() for _ in range(modules - 1))).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batches = iter(torch.utils.data.DataLoader(Endless(), batch_size=None)) if loader else None

    def step() -> None:
        inputs, wanted = batch if batches is None else next(batches)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(inputs), wanted).backward()
        optimizer.step()

    return step


def step_costs(
    step: Any, set_hook: Any, steps: int, block: int = BLOCK, clock: Any = time.process_time
) -> list[float]:
    """Seconds a step that the hook costs, by pair of blocks, of ``steps`` steps with it."""
    for on in (False, True):
        set_hook(on)
        for _ in range(block):
            step()
    costs = []
    for pair in range(steps // block):
        taken = {}
        for on in (True, False) if pair % 2 else (False, True):
            set_hook(on)
            begin = clock()
            for _ in range(block):
                step()
            taken[on] = (clock() - begin) / block
        costs.append(taken[True] - taken[False])
    set_hook(True)
    return costs


def spin(seconds: float) -> None:
    """Take so much processor time, also where other programs take some of the processor."""
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


class StandIn:
    """Takes the place of ``torch.cuda`` for the hook's clock; all work is done when it returns."""

    def __init__(self) -> None:
        spin(EVENT_CALL)
        self.at = 0.0

    current_stream = staticmethod(lambda device: spin(EVENT_CALL))
    is_current_stream_capturing = staticmethod(lambda: False)
    Event = staticmethod(lambda enable_timing: StandIn())

    def record(self, stream: Any) -> None:
        spin(EVENT_CALL)
        self.at = time.perf_counter()

    def query(self) -> bool:
        spin(EVENT_CALL)
        return True

    def elapsed_time(self, later: StandIn) -> float:
        spin(EVENT_CALL)
        return (later.at - self.at) * 1e3


def wall_clock() -> float:
    """Seconds, once the GPU has done what it was given."""
    import torch

    torch.cuda.synchronize()
    return time.perf_counter()


def share(seconds: float, pairs: int) -> dict[str, Any]:
    """What the hook costs steps of about ``seconds``: the step without it, the cost by pair, what
    the hook says of itself, and the steps that it sampled."""
    from importlib import import_module

    import torch

    gpu = torch.cuda.is_available()
    clock = wall_clock if gpu else time.process_time
    train = training(8, True, "cuda" if gpu else "cpu")
    for _ in range(50):  # past the warm-up and what is counted
        train()
    switch = Switch()
    if not gpu:
        clocks = import_module("gpuwatch_hook.clocks")
        phases = switch.tracker._phases
        phases.clock = clocks.CudaClock(StandIn(), None, phases.clock)
    square = torch.randn(2048, 2048, device="cuda") if gpu else None

    def mean(step: Any, steps: int) -> float:
        begin = clock()
        for _ in range(steps):
            step()
        return (clock() - begin) / steps

    switch.set(False)
    left = max(0.0, seconds - mean(train, 200))
    repeats = 0 if square is None else round(left / mean(lambda: square @ square, 200))

    def step() -> None:
        train()
        if square is None:
            spin(left)
        for _ in range(repeats):
            square @ square

    block = max(BLOCK, round(LONGEST_BLOCK / seconds))
    without = mean(step, block)
    switch.set(True)
    for _ in range(3 * block):  # the hook learns what it costs
        step()
    sampling = switch.tracker.sampling
    before = sampling._cost, sampling._ns
    costs = step_costs(step, switch.set, pairs * block, block, clock)
    told = (sampling._cost - before[0]) / (sampling._ns - before[1])
    return {
        "without": without,
        "costs": costs,
        "told": told,
        "sampled": sampling._share,
        "events": switch.tracker._phases.clock.ends,
    }


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


def print_shares(hooked: dict[str, str], pairs: int) -> bool:
    """Print what the hook costs steps of several lengths; whether one is above the target."""
    missed = False
    print("| step, ms | cost, % of it | as the hook says | sampled | event at each end |")
    print("| --- | --- | --- | --- | --- |")
    for seconds in LENGTHS:
        found = inside(f"hook.share({seconds}, {pairs})", hooked)
        cost = interval(found["costs"]).times(1 / found["without"])
        missed |= cost.high > SHARE_TARGET
        print(
            f"| {found['without'] * 1e3:.2f} | {cost.times(100)} | {found['told']:.2%} "
            f"| {found['sampled']:.2%} | {'yes' if found['events'] else 'no'} |",
            flush=True,
        )
    return missed


def main() -> int:
    """Measure, print the tables, compare with the targets."""
    parser = argparse.ArgumentParser(description="What the hook costs.")
    parser.add_argument("--steps", type=int, default=10_000, help="steps with the hook, by program")
    parser.add_argument("--pairs", type=int, default=20, help="pairs of blocks, by length of step")
    parser.add_argument("--starts", type=int, default=40, help="pairs of processes")
    parser.add_argument("--only", choices=("shares",), help="leave the other tables out")
    given = parser.parse_args()
    from gpuwatch.hook.archive import build

    missed = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "hook"
        folder.mkdir()
        archive = Path(name) / "hook.pyz"
        build(archive)
        hooked = variables(archive, folder)
        missed |= print_shares(hooked, given.pairs)
        if given.only:
            return int(missed)
        print("\n| program | cost of a step, us |\n| --- | --- |")
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
        plainly = inside("hook.compilations()", variables(None, folder))
        under_it = inside("hook.compilations()", hooked)
        print(f"| without the hook | {plainly} |\n| with the hook | {under_it} |")
        missed |= under_it != plainly
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
