"""What a command asks for, and with everything decided: which runs, and how each is launched."""

from __future__ import annotations

import functools
import os
import socket
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch import runners
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import GPUS_OFF, Allocation, Hook, LaunchSpec, Problem, Workload
from gpuwatch.recorder import programs, torch_builds
from gpuwatch.recorder.allocation import PATIENCE_S, limits, resolve
from gpuwatch.recorder.recording import HOOK_CHANNEL
from gpuwatch.recorder.sources import Sources
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.estimate import cell
from gpuwatch.session.study.outcomes import first_block, missing
from gpuwatch.session.study.plan import Part, Plan, PlannedRun, Settings
from gpuwatch.telemetry.nvml.start import gpu_facts
from gpuwatch.workloads import options
from gpuwatch.workloads.nvidia import find_driver


@dataclass(frozen=True)
class Request:
    """What to record, and where it goes; the same for a study that begins and one that goes on."""

    plan: Plan
    out: Path
    drawn: bool = False
    """The seed of its order was drawn, so that the next command draws another one."""
    on: tuple[str, ...] = ()
    """The places that record it, as ``--on`` names them, a study at each; empty: this machine."""
    while_pid: int | None = None
    """Record until this process ends, and keep nothing then."""
    takes_input: bool = False
    """The workload of the only run reads this process's standard input."""
    resume: Path | None = None
    """Folder of a study to resume."""
    trusted: bool = False
    """Resume it even if somebody else started it."""
    attempt: str | None = None
    """The attempt of a study that was sent here from elsewhere, and is resumed: a scheduler may
    start a job again, but runs are never repeated unasked."""
    only: frozenset[int] | None = None
    """The runs of the study that is resumed that are missing, by index; ``None``: as its folder
    says, which at a place may lack what was recorded before."""
    one_block: bool = False
    """Execute only the next block of the study that is resumed."""

    @property
    def todo(self) -> tuple[PlannedRun, ...]:
        """The runs that are still to be done, in order."""
        if self.resume is None:
            return self.plan.runs
        rest = missing(self.resume, self.plan)
        if self.only is not None:
            rest = tuple(run for run in rest if run.index in self.only)
        return first_block(rest) if self.one_block else rest


def plan_of(
    parts: Sequence[Part], settings: Settings | None = None, *, seed: int | None = None
) -> Plan:
    """The plan of a study of ``parts`` that starts here and now; its folder gives it its name.

    ``seed``: of the order within blocks; needed if a part has blocks.
    """
    runs = plan_runs(parts, seed or 0)
    return Plan(
        study="",
        parts=tuple(parts),
        runs=runs,
        seed=seed,
        settings=replace(
            settings or Settings(),
            working_directory=os.getcwd(),
            host=socket.gethostname(),
            programs=programs.of_runs(runs),
        ),
    )


@dataclass(frozen=True)
class ResolvedPlan:
    """What a recorder executes and ``--dry-run`` prints."""

    request: Request
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


def resolve_plan(request: Request) -> ResolvedPlan:
    """Decide everything for ``request``, here and now; changes nothing. How runs are launched at
    another place is decided there."""
    todo = request.todo
    if request.on:
        return ResolvedPlan(request, todo, {}, {})
    runs = [run for run in todo if run.workload.kind != "machine"]
    try:
        allocation = _allocation(request.plan)
    except GpuwatchError as error:
        problem = Problem("gpus", error.message, error.hint)
        nowhere = {run.index: (problem,) for run in todo}
        return ResolvedPlan(request, todo, {}, nowhere, refused=error)
    launches = {run.index: _launch(run, allocation, request) for run in runs}
    problems = _preflight(runs, launches)
    return ResolvedPlan(request, todo, launches, problems, notice=allocation.notice)


def _allocation(plan: Plan) -> Allocation:
    """The resources of the runs; recordings of the machine and CPU runs use no GPU.

    Raises:
        NotAvailable: requested GPUs are missing, or not the caller's.
    """
    cases = [case for part in plan.parts for case in part.workloads]
    gpus = plan.settings.gpus
    if cases and all(case.kind == "machine" for case in cases):
        if gpus and gpus != GPUS_OFF:
            Sources.gpu_uuids(gpus)
        return Allocation()
    if gpus is None and cases and all(map(_on_cpu, cases)):
        return Allocation(limits=limits())
    # A container gets its GPUs by UUID; the bare machine has them anyway.
    patient = any(each.kind != "bare" for part in plan.parts for each in part.environments)
    return resolve(gpus, os.environ, patient=patient)


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
        keeps_children=request.plan.settings.keep_children,
        takes_input=request.takes_input,
    )


def _preflight(
    runs: Sequence[PlannedRun], launches: Mapping[int, LaunchSpec]
) -> dict[int, tuple[Problem, ...]]:
    """The problems of ``runs``; runs of the same in the same environment are checked once."""
    checked: dict[object, tuple[Problem, ...]] = {}
    look = functools.cache(lambda gpus: gpu_facts(gpus, PATIENCE_S))
    for run in runs:
        key, spec = (cell(run), run.environment), launches[run.index]
        if key not in checked:
            problems = runners.check(spec) or _refusals(spec) or torch_builds.obstacles(spec, look)
            checked[key] = tuple(problems)
    found = {run.index: checked[cell(run), run.environment] for run in runs}
    return {index: problems for index, problems in found.items() if problems}


def _refusals(spec: LaunchSpec) -> list[Problem]:
    """Why one of gpuwatch's own workloads cannot run here with its parameters."""
    own = dict(spec.workload.parameters)
    if spec.workload.kind != "workload":
        return []
    if own.get("data") and not own.get("download") and not os.path.exists(own["data"]):
        hint = "name data that is there, or leave --data out for synthetic data"
        return [Problem("data-missing", f"there is no {own['data']}", hint)]
    if own.get("device", "auto") == "auto" and not spec.gpus:
        own["device"] = "cpu" if spec.gpus_chosen or find_driver() is None else "auto"
    refusal = options.refusal(spec.workload.word, own)
    return [Problem("workload-flags", *refusal)] if refusal else []


def _on_cpu(case: Workload) -> bool:
    return case.parameters.get("device") == "cpu"


def with_files(spec: LaunchSpec, folder: Path, options: Sequence[str] | None) -> LaunchSpec:
    """``spec`` with what a run of its own ``folder`` needs there: the archive of gpuwatch's own
    workloads, and how its processes report beside their standard output.

    ``options``: of the hook, ``None`` without it. Commands get the hook; gpuwatch's own workloads
    report by themselves, those of several processes through the same channel.
    """
    channel, hook = str(folder / HOOK_CHANNEL), None
    if spec.workload.kind == "command":
        if options is not None:
            hook = Hook(channel, str(folder / "hook.pyz"), tuple(options))
        return replace(spec, hook=hook)
    if (spec.workload.parameters.get("nproc") or 1) > 1:
        hook = Hook(channel, None)
    return replace(spec, archive=str(folder / programs.ARCHIVE), hook=hook)
