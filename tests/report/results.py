"""A study's result made by hand: three environments, seven blocks and a warm-up, two cases.

Steps take 500 ms in bare, 0.2 % more in docker, 3.1 % more in apptainer; block by block they drift
and wobble by factors that are written down here, so that every figure can be worked out.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuwatch.analysis.hardware.kernels import KernelRow
from gpuwatch.analysis.hardware.profile import KERNELS
from gpuwatch.analysis.results import (
    Cell,
    Contrast,
    Difference,
    Evidence,
    Explanation,
    Kind,
    Question,
    Run,
    StartUp,
    StudyResult,
    Verdict,
)
from gpuwatch.analysis.samples.steady_state import Steady
from gpuwatch.analysis.statistics.intervals import Interval, middle
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import Problem
from gpuwatch.session.study.study_folder import NotRun
from tests.analysis import sessions

from . import result_parts

ENVIRONMENTS = ("bare", "docker", "apptainer")
EFFECTS = {"bare": 1.0, "docker": 1.002, "apptainer": 1.031}
BLOCKS = 7
WOBBLE = (1.004, 0.998, 1.001, 0.997, 1.003, 0.999, 1.002)
"""What a run adds of its own, taken in turn with another start in each environment."""
T95, T90 = 2.446912, 1.943180
"""Quantiles 0.975 and 0.95 of Student's t with six degrees of freedom."""
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
    workload: str = "resnet50",
    batch: int = 64,
    torch: str = "2.6.0",
    label: str | None = None,
) -> Summary:
    """One run's session ``NN-ENV.gpuwatch``, with a GPU, its gauges and phases."""
    session = f"{index:012x}"
    shown = label or environment
    return sessions.summary(
        folder / f"{index:02d}-{environment}.gpuwatch",
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
                "arguments": ["--batch-size", str(batch)],
                "parameters": {"batch_size": batch},
            },
            "environment": {"kind": environment, "label": shown},
            "clock": {"unix_ns": (1_790_000_000 + 60 * index) * sessions.SECOND, "monotonic_ns": 0},
            "profile": result_parts.profile(environment),
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
    order = [
        (workload, block, environment)
        for workload in workloads
        for block in range(blocks + 1)
        for environment in ENVIRONMENTS[block % 3 :] + ENVIRONMENTS[: block % 3]
    ]
    summaries = {
        each: summary(
            folder,
            index,
            each[2],
            step_seconds(each[2], each[1]),
            workload=each[0],
            torch="2.6.0" if each[2] == "bare" else f"2.7.1{hostile}",
            label=each[2] + hostile,
        )
        for index, each in enumerate(order, 1)
    }
    questions = tuple(_question(name, summaries, blocks, hostile) for name in workloads)
    sweep = result_parts.sweep(questions[0].cells, hostile)
    return StudyResult(
        title=f"resnet50-20261121-120000{hostile}",
        plan=result_parts.plan(order, blocks, hostile),
        questions=questions,
        overall=result_parts.overall(hostile) if len(workloads) > 1 else (),
        sweeps=(sweep,),
        noise=(result_parts.noise(questions[0].contrasts[0].verdict, hostile),),
        not_run=(
            NotRun(
                f"charliecloud{hostile}",
                (Problem("engine-missing", "ch-run is not on the PATH", "install charliecloud"),),
            ),
        ),
        to_come=0,
        notes=(f"the order within the blocks is random, seed 7{hostile}",),
        sessions=tuple(summaries.values()),
    )


def one_run_each(folder: Path, environments: Sequence[str] = ("bare", "docker")) -> StudyResult:
    """Two sessions put together by hand: never judged."""
    summaries = [
        summary(folder, index, environment, step_seconds(environment, 1))
        for index, environment in enumerate(environments, 1)
    ]
    cells = tuple(_cell(each.environment["label"], [(None, each)]) for each in summaries)
    sentence = "one run each"
    return StudyResult(
        title="two runs",
        plan=None,
        questions=(
            Question(
                label="resnet50",
                part=0,
                workload=summaries[0].workload,
                metric="step time",
                cells=cells,
                contrasts=tuple(
                    Contrast(
                        0,
                        other,
                        Verdict(Kind.DESCRIBED, None, None, 0.01, 1, False, None),
                        (),
                        Explanation((), (), (), None),
                        f"{cells[other].environment}: {sentence}",
                    )
                    for other in range(1, len(cells))
                ),
                table=result_parts.table(cells),
            ),
        ),
        overall=(),
        sweeps=(),
        noise=(),
        not_run=(),
        to_come=0,
        notes=(sentence,),
        sessions=tuple(summaries),
    )


def _question(
    name: str, summaries: Mapping[tuple[str, int, str], Summary], blocks: int, hostile: str
) -> Question:
    cells = tuple(
        _cell(
            environment + hostile,
            [(block, summaries[name, block, environment]) for block in range(blocks + 1)],
        )
        for environment in ENVIRONMENTS
    )
    first = cells[0].runs[0].session
    return Question(
        label=name + hostile,
        part=0,
        workload=first.workload,
        metric="step time",
        cells=cells,
        contrasts=tuple(_contrast(cells, other, hostile) for other in (1, 2)),
        table=result_parts.table(cells),
        notes=(f"timed over 20 steps of each run{hostile}",),
    )


def _cell(label: str, runs: Sequence[tuple[int | None, Summary]]) -> Cell:
    made = tuple(
        Run(
            session=each,
            block=block,
            steady=Steady(each.steps.median_seconds, 0, sessions.STEPS, 0.001),
            value=each.steps.median_seconds,
        )
        for block, each in runs
    )
    judged = [run.value for run in made if not run.warm_up and run.value is not None]
    return Cell(
        label=label,
        environment=label,
        runs=made,
        mean=middle(judged),
        spread=statistics.stdev(judged) / statistics.mean(judged) if len(judged) > 1 else None,
    )


def _ratios(cells: Sequence[Cell], other: int) -> tuple[float, ...]:
    return tuple(
        run.value / base.value
        for base, run in zip(cells[0].judged, cells[other].judged, strict=True)
        if run.value is not None and base.value is not None
    )


def _interval(ratios: Sequence[float], quantile: float, level: float) -> Interval:
    logs = [math.log(each) for each in ratios]
    mean = statistics.mean(logs)
    half = quantile * statistics.stdev(logs) / math.sqrt(len(logs))
    return Interval(math.exp(mean) - 1, math.exp(mean - half) - 1, math.exp(mean + half) - 1, level)


WINOGRAD, IMPLICIT = "Winograd convolution", "implicit GEMM convolution"


def _kernels(family: str, name: str | None, ran: tuple[int, int]) -> KernelRow:
    """A kernel, or the only one of its family, with 60 % of the time of the cell that ran it."""
    launches, flop, shares = (tuple(each * figure for each in ran) for figure in (8.0, 4e9, 0.6))
    return KernelRow(KERNELS, family, name, ran, launches, flop, shares, per_step=True)


def _contrast(cells: Sequence[Cell], other: int, hostile: str) -> Contrast:
    ratios = _ratios(cells, other)
    logs = [math.log(each) for each in ratios]
    change, equivalence = _interval(ratios, T95, 0.95), _interval(ratios, T90, 0.90)
    kind = Kind.SAME if other == 1 else Kind.SLOWER
    label = cells[other].environment
    estimate, low, high = (100 * each for each in (change.estimate, change.low, change.high))
    told = f"{estimate:+.1f} % ({low:+.1f} to {high:+.1f})"
    sentence = {
        Kind.SAME: f"{label} costs less than 1 % here: {told}. "
        f"{len(ratios)} paired blocks, noise 0.3 %.",
        Kind.SLOWER: f"{label} is slower: {told}. GPU kernel time unchanged; host wait accounts "
        "for 2.9 points.",
    }[kind]
    return Contrast(
        baseline=0,
        other=other,
        verdict=Verdict(
            kind=kind,
            change=change,
            equivalence=equivalence,
            margin=0.01,
            pairs=len(ratios),
            paired=True,
            noise=statistics.stdev(logs) / math.sqrt(2),
            p_zero=0.3 if other == 1 else 1e-6,
            comparisons=2,
            estimate=change.estimate,
        ),
        ratios=ratios,
        explanation=Explanation(
            evidence=(
                Evidence(
                    "host",
                    f"host wait 250 ms against 265 ms a step: +2.9 points (+2.7 to +3.1){hostile}",
                    Interval(0.029, 0.027, 0.031, 0.95),
                    Method.MEASURED,
                    "step lines less the profile's kernels",
                ),
                Evidence("versions", f"torch 2.6.0 against 2.7.1{hostile}"),
                Evidence("start-up", f"start-up 4.70 s against 6.10 s: 1.40 s more{hostile}"),
            ),
            differences=(Difference("workload", "torch", ("2.6.0", f"2.7.1{hostile}")),),
            kernels=(
                _kernels(WINOGRAD, f"winograd_nonfused{hostile}", (1, 0)),
                _kernels(IMPLICIT, f"implicit_convolve_sgemm{hostile}", (0, 1)),
            ),
            start_up=StartUp(6.1, 1.4, 281),
            families=(_kernels(WINOGRAD, None, (1, 0)), _kernels(IMPLICIT, None, (0, 1))),
        ),
        sentence=sentence,
    )
