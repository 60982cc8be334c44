"""How files, commands and memory grow with a session, its GPUs, sessions, and runs of a study.

    python -m benchmarks.scale [--folder DIR] [--repeat 3] [--hours 1,6,24] [--write]

Sessions of 10 Hz are made by a simulated clock through the program's own store, as
``benchmarks.opening`` makes them: nine metrics of each GPU, 200 steps a second, 200,000 log lines
(DIR, up to 3 GB, kept and used again). Each command is a fresh process; medians. The recorder's
memory is that of its own writer, fed with the ticks of so many hours, at its end. ``--write`` puts
the table into benchmarks/RESULTS.md and the picture into docs/images/.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from benchmarks import page
from benchmarks.compiled import compile_gpuwatch
from benchmarks.opening import Long, made
from benchmarks.scale.measure import (
    BLOCKS,
    LISTED,
    Cost,
    Listing,
    Report,
    cost,
    listing,
    report,
)
from benchmarks.scale.picture import svg

PICTURE = Path(__file__).resolve().parents[2] / "docs/images/scale.svg"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--hours", default="1,6,24")
    parser.add_argument("--write", action="store_true", help="into benchmarks/RESULTS.md")
    arguments = parser.parse_args()
    compile_gpuwatch()
    hours = [float(each) for each in arguments.hours.split(",")]
    costs = [
        cost(made(arguments.folder, _long(gpus, each)), gpus, each, arguments.repeat)
        for gpus in (1, 8)
        for each in hours
    ]
    listings = [listing(count, arguments.repeat) for count in LISTED]
    reports = [report(count, arguments.repeat) for count in BLOCKS]
    text = markdown(costs, listings, reports)
    print(text)
    if arguments.write:
        PICTURE.write_text(svg(costs), encoding="utf-8")
        page.write("scale", text)
    return 0


def _long(gpus: int, hours: float) -> Long:
    return Long(f"scale-{gpus}-{hours:g}h", gpus, int(hours * 36_000))


def markdown(costs: Sequence[Cost], listings: Sequence[Listing], reports: Sequence[Report]) -> str:
    day = datetime.now(timezone.utc).date().isoformat()
    load = os.getloadavg()[0]
    head = (
        f"{day}, {platform.system()} {platform.release().split('-')[0]}, {os.cpu_count()} cores, "
        f"Python {platform.python_version()}, load {load:.1f} at the end. 10 Hz."
    )
    columns = (
        *("GPUs", "hours", "file, MiB", "writer's memory, MiB", "`show`, s"),
        *("`compare` of two, s", "screen: first picture, s", "memory of `compare`, MiB"),
    )
    rows = [
        (
            *(str(each.gpus), f"{each.hours:g}", f"{each.file_mib:,.0f}", f"{each.writer_mib:.1f}"),
            *(f"{each.show:.2f}", f"{each.compare:.2f}", f"{each.screen:.2f}"),
            f"{each.compare_mib:.0f}",
        )
        for each in costs
    ]
    lists = [(f"{each.count:,}", f"{each.first:.2f}", f"{each.again:.2f}") for each in listings]
    studies = [
        (f"{each.runs}", f"{each.seconds:.2f}", f"{each.seconds / reports[0].seconds:.2f}")
        for each in reports
    ]
    tables = (
        page.table(columns, rows),
        page.table(("sessions in a folder", "listed first, s", "listed again, s"), lists),
        page.table(("runs of a study", "`report`, s", "to the smallest study"), studies),
    )
    return "\n\n".join([head, *tables])


if __name__ == "__main__":
    sys.exit(main())
