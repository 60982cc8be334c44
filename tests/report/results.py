"""A study on disk and its result: three environments, seven blocks and a warm-up, two cases.

Steps take 500 ms in bare, 0.2 % more in docker, 3.1 % more in apptainer; block by block they drift
and wobble by factors that are written down here, so that every figure can be worked out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.results import Cell, NoiseFloor, StudyResult, Sweep, SweepPoint
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.analysis.statistics.power import DetectableChange
from gpuwatch.analysis.study.read import read_sessions, read_study
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.models import Environment, Problem, Workload
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import Part, Plan
from gpuwatch.session.study.study_folder import NotRun
from tests.analysis import sessions
from tests.analysis.cells import profile

ENVIRONMENTS = ("bare", "docker", "apptainer")
EFFECTS = {"bare": 1.0, "docker": 1.002, "apptainer": 1.031}
BLOCKS = 7
WOBBLE = (1.004, 0.998, 1.001, 0.997, 1.003, 0.999, 1.002)
"""What a run adds of its own, taken in turn with another start in each environment."""
SECONDS = 0.5
HOSTILE = "x\x1b[31m|<script>alert(1)</script>=1+1 @someone #12 [a](javascript:b) `c` \u202e"


def step_seconds(environment: str, block: int) -> float:
    """Drift of 0.1 % a block, the environment's effect, and a wobble."""
    place = ENVIRONMENTS.index(environment)
    return (
        SECONDS
        * EFFECTS[environment]
        * (1 + 0.001 * block)
        * WOBBLE[(block * (place + 1) + 2 * place) % len(WOBBLE)]
    )


def summary(
    folder: Path,
    index: int,
    environment: str,
    seconds: float,
    *,
    file: str | None = None,
    workload: str = "resnet50",
    torch: str = "2.6.0",
    label: str | None = None,
) -> Summary:
    """One run's session ``NN-ENV.gpuwatch``, with a GPU, its gauges and phases."""
    session = f"{index:012x}"
    shown = label or environment
    kernel = "winograd_nonfused" if environment == "bare" else "implicit_convolve_sgemm"
    return sessions.summary(
        folder / (file or f"{index:02d}-{environment}.gpuwatch"),
        step_seconds=seconds,
        gauges={
            ("gpu0", "hw.gpu.utilization"): 0.8,
            ("gpu0", "hw.gpu.power"): 310.0,
            ("gpu0", "hw.gpu.memory.usage"): 6e9,
            ("gpu0", "hw.gpu.memory.bandwidth"): 8e11,
            ("cpu", "hw.cpu.utilization"): [0.20, 0.30],
        },
        facts={"torch": torch},
        phases={"data": seconds * 0.1, "forward": seconds * 0.4, "backward": seconds * 0.5},
        extra={
            "session": {"id": session, "label": f"{workload} ({shown})"},
            "workload": {
                "name": workload,
                "kind": "workload",
                "arguments": ["--batch-size", "64"],
                "parameters": {"batch_size": 64},
            },
            "environment": {"kind": environment, "label": shown},
            "clock": {"unix_ns": (1_790_000_000 + 60 * index) * sessions.SECOND, "monotonic_ns": 0},
            "profile": profile({kernel: 0.15, "relu": 0.1}),
            "launch": {"t": 0},
            "started": {"monotonic_ns": (1.5 if environment == "apptainer" else 0.1) * 1e9},
            "startup": {"import_seconds": 3.0, "model_seconds": 1.1, "first_step_seconds": 0.5},
        },
        label=environment,
    )


def study_result(
    folder: Path,
    *,
    blocks: int = BLOCKS,
    hostile: str = "",
    workloads: Sequence[str] = ("resnet50",),
) -> StudyResult:
    """The whole of it; ``hostile`` is added to whatever comes from outside.

    With another workload there is a second question and an ``overall``.
    """
    part = Part(
        name=f"resnet50{hostile}",
        workloads=tuple(Workload(name, "workload") for name in workloads),
        environments=tuple(Environment(name, name + hostile) for name in ENVIRONMENTS),
        blocks=blocks,
        warmup_blocks=1,
    )
    plan = Plan(
        study="resnet50-20261121-120000",
        parts=(part,),
        runs=plan_runs([part], 7),
        seed=7,
        title=f"What do containers cost?{hostile}",
        question=f"Does an image slow the steps down?{hostile}",
    )
    study_folder.write(folder, plan)
    for run in plan.runs:
        environment = run.environment.kind
        summary(
            folder,
            run.index,
            environment,
            step_seconds(environment, run.block or 0),
            file=run.file,
            workload=run.workload.name,
            torch="2.6.0" if environment == "bare" else f"2.7.1{hostile}",
            label=run.environment.label,
        )
    result = read_study(folder)
    first = result.questions[0]
    missing = Problem("engine-missing", "ch-run is not on the PATH", "install charliecloud")
    return replace(
        result,
        title=f"resnet50-20261121-120000{hostile}",
        sweeps=(_sweep(first.cells, hostile),),
        noise=(_noise(hostile),),
        not_run=(NotRun(f"charliecloud{hostile}", (missing,)),),
    )


def one_run_each(folder: Path, environments: Sequence[str] = ("bare", "docker")) -> StudyResult:
    """Sessions put together by hand: never judged."""
    for index, environment in enumerate(environments, 1):
        summary(folder, index, environment, step_seconds(environment, 1))
    return read_sessions(sorted(folder.glob("*.gpuwatch")))


def _sweep(cells: Sequence[Cell], hostile: str) -> Sweep:
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


def _noise(hostile: str) -> NoiseFloor:
    return NoiseFloor(
        label=f"resnet50 in bare{hostile}",
        noise=0.003,
        change=Interval(0.002, -0.002, 0.007, 0.95),
        resolves=(
            DetectableChange(7, 0.005, 0.016, True),
            DetectableChange(20, 0.002, 0.013, True),
        ),
        sentence=f"bare#2 against bare#1: one run varies by 0.3 %, drift taken out.{hostile}",
    )
