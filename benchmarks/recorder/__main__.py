"""What recording costs: processor time, memory, calls, bytes; whether 100 Hz is held; the start.

    python -m benchmarks.recorder [--rounds 3] [--seconds 10] [--rates 1,2,10,100] [--gpus 1,8]
        [--peers FOLDER] [--only costs,jitter,start] [--write]

All programs read the same stand-in driver (tests/fake_nvml), whose GPUs change once a second, and
run in a terminal each. The logger (logger.c) stands for ``nvidia-smi --query-gpu``. Each round runs
every program once, every other round in reverse order, so that what else the machine does falls on
all alike. ``--write`` puts the tables into benchmarks/RESULTS.md. Programs that are not installed,
and rates that one does not take, are left out.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import nullcontext
from itertools import product
from pathlib import Path

from benchmarks import page
from benchmarks.compiled import compile_gpuwatch
from benchmarks.recorder import table
from benchmarks.recorder.cost import Cost, cost
from benchmarks.recorder.jitter import Beat, beat, first_sample
from benchmarks.recorder.programs import GPUWATCH, Program, programs
from benchmarks.recorder.start import ARGPARSE, first_question, seconds_of
from benchmarks.recorder.surroundings import busy_cores, place
from benchmarks.tui.driver import build

_STARTS = 5
"""Starts in each round: each takes little time and varies much."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=10.0, help="of steady state in each run")
    parser.add_argument("--settle", type=float, default=3.0, help="seconds of start left out")
    parser.add_argument("--rates", default="1,2,10,100", help="in Hz, by commas")
    parser.add_argument("--gpus", default="1,8")
    parser.add_argument("--peers", type=Path, help="folder of nvitop, nvtop, gpustat")
    parser.add_argument("--only", default="costs,jitter,start", help="which tables, by commas")
    parser.add_argument("--write", action="store_true", help="into benchmarks/RESULTS.md")
    arguments = parser.parse_args()
    compile_gpuwatch()
    makers = {"costs": _costs, "jitter": _jitter, "start": _start}
    with tempfile.TemporaryDirectory(prefix="gpuwatch-bench-driver-") as folder:
        library = build(Path(folder))
        found = programs(arguments.peers, library)
        made = [makers[name](arguments, library, found) for name in arguments.only.split(",")]
    text = "\n".join([table.about(arguments.rounds, arguments.seconds) + "\n", *made])
    print(text)
    if arguments.write:
        page.write("recorder", text)
    return 0


def _costs(arguments: argparse.Namespace, library: Path, found: list[Program]) -> str:
    kinds = [(1 / float(rate), 0, False) for rate in arguments.rates.split(",")]
    kinds += [(0.5, 300, False), (0.5, 0, True)]
    tables = []
    for gpus, kind in product(map(int, arguments.gpus.split(",")), kinds):
        interval, latency_us, gpm = kind
        title = f"{1 / interval:g} Hz, {gpus} GPU{'s' if gpus > 1 else ''}"
        title += f", calls that take {latency_us} µs" if latency_us else ""
        title += ", which offer GPM" if gpm else ""
        fitting = [program for program in found if program.fastest <= interval]
        results: dict[str, list[Cost]] = {program.name: [] for program in fitting}
        for round_ in range(arguments.rounds):
            for program in fitting if round_ % 2 == 0 else reversed(fitting):
                with place(library, gpus, latency_us, gpm=gpm) as where:
                    run = cost(program, where, interval, arguments.settle, arguments.seconds)
                results[program.name].append(run)
                print(f"{title}, {program.name}: {run}", file=sys.stderr)
        tables.append(table.costs(title, results))
    return "\n".join(tables)


def _jitter(arguments: argparse.Namespace, library: Path, found: list[Program]) -> str:
    results: dict[str, list[Beat]] = defaultdict(list)
    for _ in range(arguments.rounds):
        for gpus, latency_us in ((1, 0), (1, 300), (8, 0), (8, 300)):
            for busy in (False, True):
                name = f"{gpus} GPU{'s' if gpus > 1 else ''}, calls of {latency_us} µs"
                name += ", beside a workload on all cores" if busy else ""
                with (
                    place(library, gpus, latency_us) as where,
                    busy_cores() if busy else nullcontext(),
                ):
                    run = beat(where, 0.01, arguments.seconds)
                results[name].append(run)
                told = f"{run.missed} of {run.due} missed, p99 {run.quantile(0.99):.2f} intervals"
                print(f"{name}: {told}; {run.said}", file=sys.stderr)
    return table.beats(results)


def _start(arguments: argparse.Namespace, library: Path, found: list[Program]) -> str:
    results: dict[str, list[float]] = defaultdict(list)
    for _ in range(arguments.rounds * _STARTS):
        results["python -c 'import argparse'"].append(seconds_of(ARGPARSE))
        results["gpuwatch --version"].append(seconds_of((GPUWATCH, "--version")))
        for gpus in (1, 8):
            with place(library, gpus, 0) as where:
                name = f"gpuwatch --record, first sample of {gpus} GPU{'s' if gpus > 1 else ''}"
                results[name].append(first_sample(where))
        for program in found:
            with place(library, 1, 0) as where:
                asked = first_question(program, where)
            results[f"{program.name}, first question to a GPU"].append(asked)
    for name, runs in results.items():
        print(f"{name}: {statistics.median(runs) * 1e3:.0f} ms", file=sys.stderr)
    return table.starts(results)


if __name__ == "__main__":
    raise SystemExit(main())
