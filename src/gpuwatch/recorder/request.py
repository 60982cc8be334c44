"""The request to a recorder, and whether this machine can fulfil it."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from gpuwatch import runners
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import Allocation, LaunchSpec, Problem, Workload
from gpuwatch.recorder.given import limits, resolve
from gpuwatch.recorder.sources import Dcgm, Sources
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.plan import Part, Plan, PlannedRun


@dataclass(frozen=True)
class Request:
    """What to record: the options of ``gpuwatch --record``."""

    parts: tuple[Part, ...]
    out: Path
    interval: float = 0.5
    gpus: tuple[str, ...] | None = None
    """By index or UUID; ``()``: none; ``None``: all."""
    duration: float | None = None
    """Seconds after which each run is stopped."""
    while_pid: int | None = None
    build_archive: Callable[[Path], str] | None = None
    """Writes ``workloads.pyz`` and returns its SHA-256; needed for built-in workloads."""
    dcgm: Dcgm | None = None
    """Read GPUs through DCGM where GPM cannot; ``None``: without DCGM."""
    seed: int | None = None
    """Seed of the order within blocks; needed if a part has blocks."""
    title: str | None = None
    question: str | None = None
    preset: str | None = None
    afterwards: str | None = None
    """A message for the end of all runs."""
    resume: Path | None = None
    """Folder of a study to resume, whose plan is the rest of this request."""
    trusted: bool = False
    """Resume it even if somebody else started it."""

    def plan(self) -> Plan:
        """The plan of the request; the study's folder gives it its name."""
        return Plan(
            study="" if self.resume is None else self.resume.name,
            parts=self.parts,
            runs=plan_runs(self.parts, self.seed or 0),
            seed=self.seed,
            title=self.title,
            question=self.question,
            preset=self.preset,
            settings={
                "interval_seconds": self.interval,
                "duration_seconds": self.duration,
                "gpus": None if self.gpus is None else list(self.gpus),
                "dcgm": None if self.dcgm is None else self.dcgm.host,
                "afterwards": self.afterwards,
                "working_directory": os.getcwd(),
                "host": socket.gethostname(),
            },
        )


def given_to(request: Request) -> Allocation:
    """The resources of the runs; recordings of the machine and CPU runs use no GPU.

    Raises:
        NotAvailable: requested GPUs are missing, or not the caller's.
    """
    cases = [case for part in request.parts for case in part.workloads]
    if cases and all(case.kind == "machine" for case in cases):
        if request.gpus:
            Sources.gpu_uuids(request.gpus)
        return Allocation()
    if request.gpus is None and cases and all(map(_on_cpu, cases)):
        return Allocation(limits=limits())
    return resolve(request.gpus, os.environ)


def preflight(
    request: Request, runs: Sequence[PlannedRun], given: Allocation
) -> dict[int, list[Problem]]:
    """Why runs cannot be started here, by index; empty if all can."""
    by_case: dict[object, list[Problem]] = {}
    problems = {}
    for run in runs:
        if run.workload.kind == "machine":
            continue
        key = (cell(run), run.environment)
        if key not in by_case:
            by_case[key] = runners.check(spec(request, run, None, given))
        if by_case[key]:
            problems[run.index] = by_case[key]
    return problems


def spec(request: Request, run: PlannedRun, archive: str | None, given: Allocation) -> LaunchSpec:
    """The launch data for the runner of ``run``."""
    return LaunchSpec(
        workload=run.workload,
        environment=run.environment,
        archive=archive,
        working_directory=os.getcwd(),
        variables=dict(os.environ),
        gpus=() if _on_cpu(run.workload) else given.gpus,
        gpus_chosen=given.gpus_chosen,
        limits=given.limits,
    )


def _on_cpu(case: Workload) -> bool:
    return case.parameters.get("device") == "cpu"
