"""``--on slurm,job=ID``: what is recorded of a job that runs already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from gpuwatch.core import paths
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import JOINED_JOB, Environment, Workload
from gpuwatch.core.text import shell
from gpuwatch.places import spec
from gpuwatch.places.slurm import options
from gpuwatch.recorder.request import Request
from gpuwatch.session.study.plan import Part


def job_of(places: Sequence[str]) -> str | None:
    """The number of the job that is joined at one of the ``places``; ``None``: none is.

    Raises:
        UsageError: an option is reserved or misspelt, or there are other places, too.
    """
    found = [place for place in map(spec.parse, places) if place.kind == "slurm"]
    job = next((job for place in found if (job := options.parse(place).job)), None)
    if job is not None and len(places) > 1:
        raise UsageError(f"job={job} stands beside other places", "join one job at a time")
    return job


def part_of(job: str, part: Part) -> Part:
    """``part``, which records the machine, for a job.

    Raises:
        UsageError: it runs a workload.
    """
    if any(case.kind != "machine" for case in part.workloads):
        raise UsageError(
            f"job={job} runs already, and is watched without a workload",
            f"gpuwatch attach --on {shell(f'slurm,job={job}')}; "
            "or leave out job= to run a workload in a job",
        )
    workload = Workload(f"slurm-job-{job}", "machine", parameters={JOINED_JOB: job})
    return replace(part, name=workload.name, workloads=(workload,))


def request(on: str) -> Request:
    """The request of ``attach --on``.

    Raises:
        UsageError: the place joins no job.
    """
    job = job_of([on])
    if job is None:
        raise UsageError(
            f"attach --on {on} names no job that runs already",
            "write --on slurm,job=ID; to record a machine: gpuwatch --record --on PLACE",
        )
    part = Part("machine", (Workload("machine", "machine"),), (Environment("bare", "bare"),))
    return Request(parts=(part_of(job, part),), out=paths.data_home().absolute(), on=on)
