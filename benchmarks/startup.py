"""From the start of a workload's process to its first step line, beside a bare ``import torch``.

    python benchmarks/startup.py [--repeat 11] [--threads 1]

Each round starts every program once, in an order of its own, with the same interpreter: one that
imports torch and prints a line; one that also makes an optimizer, which every training needs; and
the smallest workload, in training and in inference, up to the line of its first step. The ratios
are medians over the rounds of two programs of one round, of elapsed time and of processor time.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

from gpuwatch.workloads.archive import build
from gpuwatch.workloads.lines import PREFIX

IMPORT = "import torch; print('ready', flush=True)"
OPTIMIZER = (
    "import torch; torch.optim.SGD(torch.nn.Linear(1, 1).parameters(), lr=1.0); "
    "print('ready', flush=True)"
)
WORKLOAD = ("sentiment-rnn", "--steps", "10", "--profile", "0", "--device", "cpu")


def programs(archive: Path) -> dict[str, list[str]]:
    """The arguments of Python, by the name of what they do."""
    return {
        "import torch": ["-c", IMPORT],
        "import torch, make an optimizer": ["-c", OPTIMIZER],
        "sentiment-rnn, first step": [str(archive), *WORKLOAD],
        "sentiment-rnn --mode infer, first step": [str(archive), *WORKLOAD, "--mode", "infer"],
    }


def seconds_to_ready(arguments: list[str], threads: int) -> tuple[float, float]:
    """Elapsed and processor seconds of a process until it is ready; it is then ended.

    Raises:
        RuntimeError: it ended before.
    """
    start = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": str(threads)},
    ) as process:
        assert process.stdout is not None
        if not any(_is_ready(line) for line in process.stdout):
            raise RuntimeError(f"no first step: python {' '.join(arguments)}")
        elapsed = time.perf_counter() - start
        used = psutil.Process(process.pid).cpu_times()
        process.kill()
    return elapsed, used.user + used.system


def _is_ready(line: str) -> bool:
    if not line.startswith(PREFIX):
        return line == "ready\n"
    return bool(json.loads(line.removeprefix(PREFIX))["event"] == "step")


def measure(repeat: int, threads: int) -> dict[str, list[tuple[float, float]]]:
    """Elapsed and processor seconds of each program in each round, after one that is dropped."""
    shuffler = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder, "workloads.pyz")
        build(archive)
        commands = programs(archive)
        found: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
        for number in range(repeat + 1):
            for name in shuffler.sample(list(commands), len(commands)):
                seconds = seconds_to_ready(commands[name], threads)
                if number:
                    found[name].append(seconds)
    return found


def ratio(found: list[tuple[float, float]], base: list[tuple[float, float]], which: int) -> str:
    """Median of the rounds' ratios, and their smallest and largest."""
    ratios = [a[which] / b[which] for a, b in zip(found, base, strict=True)]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=11, help="rounds")
    parser.add_argument("--threads", type=int, default=1, help="torch's threads")
    flags = parser.parse_args()
    found = measure(flags.repeat, flags.threads)
    base, made = list(found.values())[:2]
    ratios = ("elapsed / import", "CPU / import", "CPU / optimizer")
    titles = ("program", "elapsed s", "CPU s", *ratios)
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}")
    for name, seconds in found.items():
        elapsed, cpu = (statistics.median(each) for each in zip(*seconds, strict=True))
        of = (base, 0), (base, 1), (made, 1)
        ratios = tuple(ratio(seconds, *each) for each in of)
        print(f"| {name} | {elapsed:.2f} | {cpu:.2f} | {' | '.join(ratios)} |")


if __name__ == "__main__":
    main()
