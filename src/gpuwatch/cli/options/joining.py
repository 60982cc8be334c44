"""``--on slurm,job=ID``: what is recorded of a job that runs already."""

from __future__ import annotations

from dataclasses import replace

from gpuwatch.core import paths
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import JOINED_JOB, Environment, Workload
from gpuwatch.core.text import shell
from gpuwatch.places import spec
from gpuwatch.places.slurm import options
from gpuwatch.recorder.request import Request, plan_of
from gpuwatch.session.study.plan import Part, Plan


def job_of(place: str) -> str | None:
    """The number of the job that is joined at the ``place``; ``None``: none is.

    Raises:
        UsageError: an option is reserved or misspelt.
    """
    found = spec.parse(place)
    return options.parse(found).job if found.kind == "slurm" else None


def at(request: Request, place: str) -> Request:
    """``request`` at the ``place`` alone: of a job that is joined there, the machine as the job has
    it.

    Raises:
        UsageError: the job would run a workload, or an option is reserved or misspelt.
    """
    job = job_of(place)
    plan = request.plan if job is None else joined(request.plan, job)
    return replace(request, on=(place,), plan=plan)


def joined(plan: Plan, job: str) -> Plan:
    """``plan``, which records the machine, for a job.

    Raises:
        UsageError: it runs a workload.
    """
    if not plan.of_machine:
        raise UsageError(
            f"job={job} runs already, and is watched without a workload",
            f"gpuwatch attach --on {shell(f'slurm,job={job}')}; "
            "or leave out job= to run a workload in a job",
        )
    workload = Workload(f"slurm-job-{job}", "machine", parameters={JOINED_JOB: job})
    parts = [replace(part, name=workload.name, workloads=(workload,)) for part in plan.parts]
    return plan_of(parts, plan.settings)


def request(on: str) -> Request:
    """The request of ``attach --on``.

    Raises:
        UsageError: the place joins no job.
    """
    if job_of(on) is None:
        raise UsageError(
            f"attach --on {on} names no job that runs already",
            "write --on slurm,job=ID; to record a machine: gpuwatch --record --on PLACE",
        )
    part = Part("machine", (Workload("machine", "machine"),), (Environment("bare", "bare"),))
    return at(Request(plan_of([part]), paths.data_home().absolute()), on)
