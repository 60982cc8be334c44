"""Parts of the result that :mod:`tests.report.results` makes by hand: one function for each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.hardware.profile import KERNELS
from gpuwatch.analysis.results import (
    Cell,
    ComparisonRow,
    NoiseFloor,
    Overall,
    Sweep,
    SweepPoint,
    Verdict,
)
from gpuwatch.analysis.statistics.intervals import Interval, middle
from gpuwatch.analysis.statistics.power import DetectableChange
from gpuwatch.core.models import Environment, Workload
from gpuwatch.session.study.plan import Part, Plan, PlannedRun


def overall(hostile: str) -> tuple[Overall, ...]:
    return (
        Overall(
            f"apptainer{hostile}",
            f"bare{hostile}",
            Interval(0.031, 0.028, 0.034, 0.95),
            2,
            f"apptainer{hostile} over 2 cases: +3.1 % (+2.8 to +3.4), geometric mean",
        ),
    )


def sweep(cells: Sequence[Cell], hostile: str) -> Sweep:
    return Sweep(
        label=f"resnet50 in bare: batch size{hostile}",
        parameter="batch_size",
        environment=f"bare{hostile}",
        points=(
            SweepPoint(32, cells[1], 114.0, 0.281, Interval(-0.11, -0.13, -0.09, 0.95), False),
            SweepPoint(64, cells[0], 128.0, 0.5, None, True),
            SweepPoint(128, None, None, None, None, False, f"out of memory{hostile}"),
        ),
        best=1,
        sentence="batch size 64 is best: 128 images/s; 32 has 11 % fewer samples/s (9 to 13)"
        + hostile,
    )


def noise(verdict: Verdict, hostile: str) -> NoiseFloor:
    assert verdict.change is not None and verdict.noise is not None
    return NoiseFloor(
        label=f"resnet50 in bare{hostile}",
        noise=verdict.noise,
        change=verdict.change,
        resolves=(
            DetectableChange(7, 0.005, 0.016, True),
            DetectableChange(20, 0.002, 0.013, True),
        ),
        sentence=f"bare#2 against bare#1: one run varies by 0.3 %, drift taken out.{hostile}",
    )


def plan(order: Sequence[tuple[str, int, str]], blocks: int, hostile: str) -> Plan:
    workloads = {name: Workload(name, "workload") for name, _, _ in order}
    environments = {
        name: Environment(name, name + hostile)
        for name in dict.fromkeys(each for _, _, each in order)
    }
    part = Part(
        name=f"resnet50{hostile}",
        workloads=tuple(workloads.values()),
        environments=tuple(environments.values()),
        blocks=blocks,
        warmup_blocks=1,
    )
    return Plan(
        study="resnet50-20261121-120000",
        parts=(part,),
        runs=tuple(
            PlannedRun(
                index,
                f"{index:02d}-{environment}.gpuwatch",
                workloads[workload],
                environments[environment],
                0,
                block,
            )
            for index, (workload, block, environment) in enumerate(order, 1)
        ),
        seed=7,
        title=f"What do containers cost?{hostile}",
        question=f"Does an image slow the steps down?{hostile}",
    )


def profile(environment: str) -> dict[str, Any]:
    name = "winograd_nonfused" if environment == "bare" else "implicit_convolve_sgemm"
    return {
        "tool": "torch.profiler",
        "version": "2.6.0",
        "device": "cuda",
        "steps": 4,
        "step_seconds": 0.5,
        "reason": None,
        "notes": [],
        "tables": {
            KERNELS: {
                "columns": ["Time (%)", "Total Time (ns)", "Instances", "Name"],
                "rows": [[60.0, 600_000_000, 40, name], [40.0, 400_000_000, 80, "relu"]],
                "rows_left_out": 0,
            }
        },
    }


def table(cells: Sequence[Cell]) -> tuple[ComparisonRow, ...]:
    """The rows of the comparison, each cell's median over its judged runs."""
    judged = [run.session for cell in cells for run in cell.judged]
    rows = []
    for row in compare(judged).rows:
        at = iter(zip(row.values, row.methods, strict=True))
        of = [[next(at) for _ in cell.judged] for cell in cells]
        known = [[value for value, _ in each if value is not None] for each in of]
        means = [middle(each) for each in known]
        rows.append(
            ComparisonRow(
                group=row.group,
                name=row.name,
                unit=row.unit,
                values=tuple(means),
                lows=tuple(min(each, default=None) for each in known),
                highs=tuple(max(each, default=None) for each in known),
                methods=tuple(each[0][1] for each in of),
                ratios=tuple(
                    mean / means[0] if mean is not None and means[0] else None for mean in means
                ),
                at_most=row.at_most,
            )
        )
    return tuple(rows)
