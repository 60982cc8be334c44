"""Prints a few figures of each run of a study, for whoever cannot fetch its sessions any more."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from gpuwatch.analysis.summary.listing import listing
from gpuwatch.core.errors import GpuwatchError, UsageError
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON
from gpuwatch.session.in_part import STATUSES, message
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.plan import PlannedRun, read


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the study's folder")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    plan = read(arguments.folder)
    if plan is None:
        raise UsageError(f"{arguments.folder} is not a study", "name the folder of a study")
    rows = [_row(arguments.folder, run) for run in plan.runs]
    sys.stdout.write(message([row for row in rows if row is not None]))
    return 0


def _row(folder: Path, run: PlannedRun) -> dict[str, JSON] | None:
    """``None``: the run is not over, or has no session that can be read."""
    try:
        with SessionReader(folder / run.file) as reader:
            found = listing(reader)
    except GpuwatchError:
        return None
    if found.status not in STATUSES:
        return None
    row = {**found.document(), "run": run.index}
    if found.peak_gpu_memory_method != Method.MEASURED.value:
        row["peak_gpu_memory_bytes"] = None
    return row
