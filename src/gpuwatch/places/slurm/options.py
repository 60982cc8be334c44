"""What ``--on slurm,KEY=VALUE...`` accepts: long options of sbatch, and keys of gpuwatch."""

from __future__ import annotations

import re
from pathlib import Path

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.places.base import PlaceSpec

_FORM = "write --on slurm[,OPTION=VALUE...] with sbatch's long options: partition=gpu,gres=gpu:1"
_KEY = re.compile(r"[a-z][a-z0-9-]+")
_OWN = ("setup", "python", "jobs")
_RESERVED = {
    "job-name": "gpuwatch finds its job by its name",
    **dict.fromkeys(("output", "error", "open-mode"), "what a job prints is in the study's folder"),
    **dict.fromkeys(
        ("requeue", "no-requeue"),
        "a run that is started again is another run: gpuwatch resume starts what is missing",
    ),
    "signal": "with it gpuwatch closes the sessions before the time limit",
    "array": "one job holds the whole study",
    **dict.fromkeys(("wrap", "input"), "the recorder is the batch script"),
    **dict.fromkeys(
        ("export", "export-file"), "the job has the environment in which it is submitted"
    ),
    "chdir": "the job runs in the folder in which it is submitted",
    **dict.fromkeys(
        ("wait", "parsable", "test-only", "help", "usage", "version"),
        "gpuwatch reads what sbatch prints",
    ),
    **dict.fromkeys(("uid", "gid"), "the job runs as you"),
}
"""sbatch's options that are not the user's to set, with the reason."""
NOTICE_SECONDS = 60
"""How long before its time limit a job is told."""
_JOB = re.compile(r"[1-9]\d{0,9}", re.ASCII)
_TIME = re.compile(r"(?:(\d+)-)?(\d+)(?::(\d+))?(?::(\d+))?")


_OF_A_STEP = ("python", "setup", "clusters")
"""Keys that may stand beside ``job``."""


@dataclass(frozen=True)
class Options:
    """What is asked of Slurm and of the batch script."""

    words: tuple[str, ...] = ()
    """Options for sbatch, each one word."""
    clusters: str | None = None
    """The cluster, for the other commands."""
    partition: str | None = None
    """One or several partitions, separated by commas; ``None``: the default one."""
    notice: int = NOTICE_SECONDS
    """How long before its time limit the job is told, in seconds."""
    setup: Path | None = None
    """A file that the batch script reads first."""
    python: str | None = None
    """The Python there."""
    job_per_block: bool = False
    """``jobs=block``: not the whole study is one job, but each of its blocks."""
    job: str | None = None
    """The id of a job that is there already, in which a step records."""
    limit: int | None = None
    """Seconds that the job may take; ``None``: as the partition says."""


def parse(spec: PlaceSpec) -> Options:
    """The options of a place.

    Raises:
        UsageError: one is reserved or misspelt.
    """
    if spec.target is not None:
        raise UsageError(f"--on slurm takes options, not the name {spec.target!r}", _FORM)
    if "job" in spec.options:
        return _of_a_step(spec)
    words = []
    for key, value in spec.options.items():
        if not _KEY.fullmatch(key):
            raise UsageError(f"{key!r} is not a long option of sbatch", _FORM)
        if not value.isprintable() or value.startswith("-"):
            raise UsageError(f"invalid value {key}={value!r} for an option of sbatch", _FORM)
        if key in _OWN:
            continue
        # sbatch takes abbreviations as well: `outpu` is `output`.
        reserved = next((name for name in _RESERVED if name.startswith(key)), None)
        if reserved is not None:
            raise UsageError(
                f"{key!r} cannot be given in --on slurm: {_RESERVED[reserved]}", "leave it out"
            )
        words.append(f"--{key}={value}" if value else f"--{key}")
    limit = seconds(spec.options.get("time", ""))
    return Options(
        tuple(words),
        spec.options.get("clusters"),
        spec.options.get("partition"),
        NOTICE_SECONDS if limit is None else max(1, min(NOTICE_SECONDS, limit // 4)),
        _setup(spec.options.get("setup")),
        spec.options.get("python") or None,
        _job_per_block(spec.options.get("jobs", "study")),
        limit=limit,
    )


def _job_per_block(text: str) -> bool:
    if text not in ("study", "block"):
        raise UsageError(
            f"jobs={text} is unknown", "jobs=study (the default) is one job, jobs=block one a block"
        )
    return text == "block"


def _of_a_step(spec: PlaceSpec) -> Options:
    job = spec.options["job"]
    if not _JOB.fullmatch(job):
        raise UsageError(
            f"invalid job number {job!r}", "squeue --me lists yours: --on slurm,job=NUMBER"
        )
    for key in spec.options:
        if key not in ("job", *_OF_A_STEP):
            raise UsageError(
                f"{key!r} cannot be given beside job={job}: that job has its resources already",
                f"leave it out; {', '.join(_OF_A_STEP)} may stand there",
            )
    return Options(
        clusters=spec.options.get("clusters"),
        setup=_setup(spec.options.get("setup")),
        python=spec.options.get("python") or None,
        job=job,
    )


def _setup(text: str | None) -> Path | None:
    if text is None:
        return None
    path = Path(text).expanduser().absolute()
    if not path.is_file():
        raise UsageError(f"there is no file {path}", "setup=FILE names a shell script of yours")
    return path


def seconds(time: str) -> int | None:
    """A time limit as sbatch takes it: ``MINUTES[:SECONDS]``, ``HOURS:MINUTES:SECONDS``,
    ``DAYS-HOURS[:MINUTES[:SECONDS]]``; ``None`` for anything else."""
    found = _TIME.fullmatch(time)
    if found is None:
        return None
    days, *rest = (int(part) if part is not None else None for part in found.groups())
    first, second, third = rest
    if days is not None or third is not None:
        hours, minutes, last = first, second, third
    else:
        hours, minutes, last = 0, first, second
    return (((days or 0) * 24 + (hours or 0)) * 60 + (minutes or 0)) * 60 + (last or 0)
