"""What gpuwatch's screens cost beside nvitop, nvtop, gpustat and the emptiest Textual app.

    python -m benchmarks.tui [--rounds 5] [--seconds 20] [--gpus 1,8] [--latency-us card]
        [--peers VENV/bin] [--only X]

All run in a terminal of 120x40, refresh once a second, and read the same stand-in driver
(tests/fake_nvml), whose GPUs change once a second; its calls take the processor time that an H200's
take, or with a number as ``--latency-us`` each that asks a device sleeps so long. Each round runs
every program once, every other round in reverse order, so that what else the machine does falls on
all alike. The result is a Markdown table of medians for each number of GPUs and each latency, with
the range behind them. Programs that are not installed are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from benchmarks.compiled import compile_gpuwatch
from benchmarks.recorder.surroundings import place
from benchmarks.tui.driver import build
from benchmarks.tui.measure import Measured, measure
from benchmarks.tui.programs import Program, fill, programs
from benchmarks.tui.table import about, tables

_PEERS = Path(tempfile.gettempdir()) / "peers" / "bin"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=20.0, help="of steady state in each run")
    parser.add_argument("--settle", type=float, default=6.0, help="seconds of start left out")
    parser.add_argument("--gpus", default="1,8")
    parser.add_argument("--latency-us", default="card", help="of the driver's calls, by commas")
    parser.add_argument("--peers", type=Path, default=_PEERS, help="bin of nvitop and gpustat")
    parser.add_argument("--only", help="programs whose name holds one of these, by commas")
    arguments = parser.parse_args()
    compile_gpuwatch()
    wanted = [
        program
        for program in programs(arguments.peers)
        if not arguments.only or any(name in program.name for name in arguments.only.split(","))
    ]
    print(about(arguments.peers))
    with tempfile.TemporaryDirectory(prefix="gpuwatch-bench-driver-") as folder:
        library = build(Path(folder))
        for gpus in map(int, arguments.gpus.split(",")):
            for latency in arguments.latency_us.split(","):
                print(tables(gpus, latency, _rounds(arguments, wanted, library, gpus, latency)))
    return 0


def _rounds(
    arguments: argparse.Namespace,
    wanted: list[Program],
    library: Path,
    gpus: int,
    latency_us: str,
) -> dict[str, list[Measured | None]]:
    """What each program cost in each round; ``None`` for a run that does not count."""
    results: dict[str, list[Measured | None]] = {program.name: [] for program in wanted}
    for round_ in range(arguments.rounds):
        for program in wanted if round_ % 2 == 0 else reversed(wanted):
            with place(library, gpus, latency_us, gpm=True) as where:
                fill(where.folder)
                try:
                    result = measure(program, where, arguments.settle, arguments.seconds)
                    results[program.name].append(result)
                    print(f"{gpus} GPU, {latency_us} us, {program.name}: {result}", file=sys.stderr)
                except RuntimeError as error:
                    results[program.name].append(None)
                    print(f"{gpus} GPU, {program.name}, a run that does not count: {error}")
    return results


if __name__ == "__main__":
    raise SystemExit(main())
