"""A request with everything decided: which runs in which order, and how each is launched."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from gpuwatch import runners
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import GPUS_OFF, Allocation, Hook, LaunchSpec, Problem, Workload
from gpuwatch.recorder.allocation import limits, resolve
from gpuwatch.recorder.programs import with_programs
from gpuwatch.recorder.recording import HOOK_CHANNEL
from gpuwatch.recorder.request import Request
from gpuwatch.recorder.sources import Sources
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.outcomes import first_block, missing
from gpuwatch.session.study.plan import Plan, PlannedRun, read


@dataclass(frozen=True)
class ResolvedPlan:
    """What a recorder executes and ``--dry-run`` prints."""

    request: Request
    plan: Plan
    todo: tuple[PlannedRun, ...]
    """The runs of the plan that are still to be done, in order."""
    launches: Mapping[int, LaunchSpec]
    """By index of the run; a recording of the machine launches nothing."""
    problems: Mapping[int, tuple[Problem, ...]]
    """Why runs cannot be started here, by index; those that can are not in it."""
    refused: GpuwatchError | None = None
    """Why none can be started: the requested GPUs are missing, or not the caller's."""
    notice: str | None = None
    """As in :class:`Allocation`."""


def planned(request: Request) -> tuple[Plan, tuple[PlannedRun, ...]]:
    """The plan of ``request`` and the runs that are still to be done, in order."""
    if request.resume is not None and (plan := read(request.resume)) is not None:
        rest = missing(request.resume, plan)
        if request.only is not None:
            rest = tuple(run for run in rest if run.index in request.only)
        if request.one_block:
            rest = first_block(rest)
        return plan, rest
    plan = request.plan()
    return plan, plan.runs


def resolve_plan(request: Request) -> ResolvedPlan:
    """Decide everything for ``request``, here and now; changes nothing. How runs are launched at
    another place is decided there."""
    plan, todo = planned(request)
    if request.resume is None:
        plan = with_programs(plan, request.build_archive)
    if request.on is not None:
        return ResolvedPlan(request, plan, todo, {}, {})
    runs = [run for run in todo if run.workload.kind != "machine"]
    try:
        allocation = _allocation(request)
    except GpuwatchError as error:
        problem = Problem("gpus", error.message, error.hint)
        nowhere = {run.index: (problem,) for run in todo}
        return ResolvedPlan(request, plan, todo, {}, nowhere, refused=error)
    launches = {run.index: _launch(run, allocation, request) for run in runs}
    problems = _preflight(request, runs, launches)
    specs = MappingProxyType(launches)
    return ResolvedPlan(request, plan, todo, specs, problems, notice=allocation.notice)


def _allocation(request: Request) -> Allocation:
    """The resources of the runs; recordings of the machine and CPU runs use no GPU.

    Raises:
        NotAvailable: requested GPUs are missing, or not the caller's.
    """
    cases = [case for part in request.parts for case in part.workloads]
    if cases and all(case.kind == "machine" for case in cases):
        if request.gpus and request.gpus != GPUS_OFF:
            Sources.gpu_uuids(request.gpus)
        return Allocation()
    if request.gpus is None and cases and all(map(_on_cpu, cases)):
        return Allocation(limits=limits())
    environments = [each for part in request.parts for each in part.environments]
    # A container gets its GPUs by UUID; the bare machine has them anyway.
    patient = any(each.kind != "bare" for each in environments)
    return resolve(request.gpus, os.environ, patient=patient)


def _launch(run: PlannedRun, allocation: Allocation, request: Request) -> LaunchSpec:
    return LaunchSpec(
        workload=run.workload,
        environment=run.environment,
        archive=None,
        working_directory=os.getcwd(),
        variables=dict(os.environ),
        gpus=() if _on_cpu(run.workload) else allocation.gpus,
        gpus_chosen=allocation.gpus_chosen,
        limits=allocation.limits,
        keeps_children=request.keeps_children,
        takes_input=request.takes_input,
    )


def hook_of(request: Request, workload: Workload, folder: Path) -> Hook | None:
    """How the processes of a run with this ``folder`` report, beside their standard output.

    Commands get the hook. gpuwatch's own workloads report by themselves, those of several processes
    through the same channel.
    """
    channel = str(folder / HOOK_CHANNEL)
    if workload.kind == "command":
        if request.hook is None or request.build_hook is None:
            return None
        return Hook(channel, str(folder / "hook.pyz"), request.hook)
    return Hook(channel, None) if (workload.parameters.get("nproc") or 1) > 1 else None


def _preflight(
    request: Request, runs: list[PlannedRun], launches: Mapping[int, LaunchSpec]
) -> dict[int, tuple[Problem, ...]]:
    """The problems of ``runs``; runs of the same in the same environment are checked once."""
    checked: dict[object, tuple[Problem, ...]] = {}
    problems = {}
    for run in runs:
        key = (cell(run), run.environment)
        if key not in checked:
            spec = launches[run.index]
            checked[key] = tuple(runners.check(spec))
            if not checked[key] and request.obstacles is not None:
                checked[key] = tuple(request.obstacles(spec))
        if checked[key]:
            problems[run.index] = checked[key]
    return problems


def _on_cpu(case: Workload) -> bool:
    return case.parameters.get("device") == "cpu"
