"""How much slower a workload runs because it is recorded.

    python -m benchmarks.overhead [--hz 2,10,100] [--gpus 1,8] [--minutes 10] [--pool FILE]
                                  [--write]

Runs differ by more than a recorder costs, so nothing is compared between runs: within one run of a
workload the recorder is stopped and let go on in windows of two seconds, in pairs whose order is by
chance. The workload notes with each step how much processor time the recorder has used, and what is
compared is the work done in the moments in which that rose, each against the moments around it, in
the window in which the recorder ran and at the same places of the other. Beside it stands the same
by all steps, which assumes nothing of when a recorder costs anything and takes a quiet machine;
pairs in which the machine itself changed its pace are left out of that, by a rule that cannot see
the recorder. Intervals are of a bootstrap over blocks of neighbouring pairs. Controls switch a
stand-in instead: one that does nothing must show no slowdown, one that uses 2 % of a core must.

With ``--pool FILE`` rows are kept there, and the pairs of earlier runs on the same machine count
too: hours can be put together from times in which it is quiet.

The recorder is the real one; it samples the stand-in driver's GPUs, whose calls sleep
``--latency-us``, and the workload's processes. ``--own-driver`` takes this machine's GPUs, and
``--device cuda`` runs the workload there. Exit code 1 where at 2 Hz an upper bound is 0.5 % or
more, or a control does not show what it must.
"""

from __future__ import annotations

import argparse
import secrets
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from benchmarks.overhead import pool
from benchmarks.overhead.measure import Case, NoRun, environment, measure
from benchmarks.overhead.table import LOADS, about, markdown, row, verdict, write
from benchmarks.tui.driver import build

_BURNT = 0.02
"""The share of a core that the second control uses: on all cores, of which there are N, a slowdown
of about 2 % over N, or of 2 % where a step waits for the slowest core."""


def cases(loads: Sequence[str], hz: Sequence[float], gpus: Sequence[int]) -> list[Case]:
    """All rows: for each workload its controls, then the recorder."""
    found = []
    for load in loads:
        found.append(Case(load, hz[0], gpus[0], instead=0.0))
        if load == "matmul":
            found.append(Case(load, hz[0], gpus[0], instead=_BURNT))
        found += [Case(load, rate, count) for count in gpus for rate in hz]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--hz", default="2,10,100", help="samples a second, by commas")
    parser.add_argument("--gpus", default="1,8", help="of the stand-in driver, by commas")
    parser.add_argument("--minutes", type=float, default=10.0, help="of each row")
    parser.add_argument("--window", type=float, default=2.0, help="seconds")
    parser.add_argument("--latency-us", type=int, default=300, help="of the driver's calls")
    parser.add_argument("--own-driver", action="store_true", help="this machine's own GPUs")
    parser.add_argument("--device", default="cpu", help="of the workload: cpu or cuda")
    parser.add_argument("--only", default="", help="workloads, by commas: " + ", ".join(LOADS))
    parser.add_argument("--pool", type=Path, help="keep rows here, and count those that are")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    arguments = parser.parse_args()
    loads = [each for each in LOADS if not arguments.only or each in arguments.only.split(",")]
    hz = [float(each) for each in arguments.hz.split(",")]
    gpus = [0] if arguments.own_driver else [int(each) for each in arguments.gpus.split(",")]
    latency = None if arguments.own_driver else arguments.latency_us
    at = pool.setting(arguments.device, latency, arguments.window)
    with tempfile.TemporaryDirectory(prefix="gpuwatch-overhead-") as temporary:
        kept = arguments.pool or Path(temporary, "pool")
        folder = None if arguments.own_driver else build(Path(temporary))
        env = environment(folder, arguments.latency_us)
        for case in cases(loads, hz, gpus):
            try:
                measured = measure(
                    case,
                    seconds=arguments.minutes * 60,
                    window_s=arguments.window,
                    device=arguments.device,
                    env=env,
                    seed=secrets.randbits(32),
                )
            except NoRun as error:
                print(f"{case}: a run that does not count: {error}", file=sys.stderr)
                return 1
            print(" | ".join(row(measured)), file=sys.stderr, flush=True)
            pool.add(kept, at, measured)
        rows, days = pool.read(kept, at)
    text = markdown(rows, about(arguments.device, latency, days))
    print(text)
    if arguments.write:
        write(text)
    return 0 if verdict(rows)[0] else 1


if __name__ == "__main__":
    raise SystemExit(main())
