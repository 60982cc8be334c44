"""Workload launchers: gpuwatch's own, and those of the entry point group ``gpuwatch.runners``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gpuwatch.core.errors import GpuwatchError, NotAvailable
from gpuwatch.core.models import LaunchSpec, Problem
from gpuwatch.core.plugins import Plugins, error_text
from gpuwatch.runners.base import Runner

_RUNNERS = Plugins(
    "gpuwatch.runners",
    "environment",
    {
        "bare": "gpuwatch.runners.bare:BareRunner",
        "docker": "gpuwatch.runners.docker.runner:DockerRunner",
        "apptainer": "gpuwatch.runners.apptainer.runner:ApptainerRunner",
        "singularity": "gpuwatch.runners.apptainer.runner:ApptainerRunner",
        "charliecloud": "gpuwatch.runners.charliecloud:CharliecloudRunner",
    },
)


def kinds(*, aliases: bool = True) -> tuple[str, ...]:
    """The kinds of environment that ``--env`` accepts here; without aliases, one per runner."""
    entries = {kind: entry.value for kind, entry in _RUNNERS.others().items()} | {**_RUNNERS.own}
    if aliases:
        return tuple(sorted(entries))
    firsts = {entries[kind]: kind for kind in sorted(entries, reverse=True)}
    return tuple(sorted(firsts.values()))


def known(kind: str) -> bool:
    """Whether this kind exists."""
    return kind in _RUNNERS.own or kind in _RUNNERS.others()


def load(kind: str) -> Runner:
    """The runner of this kind; imports only its own module.

    Raises:
        UsageError: the kind does not exist.
        NotAvailable: the package of the runner cannot be imported.
    """
    runner: Runner = _RUNNERS.make(kind)
    return runner


def check(spec: LaunchSpec) -> list[Problem]:
    """Preflight: why the run could not start here. Never raises.

    An exception from the runner, which breaks its contract, counts as a problem too.
    """
    try:
        return list(load(spec.environment.kind).preflight(spec))
    except GpuwatchError as error:
        return [Problem("runner-broken", error.message, error.hint)]
    except (Exception, SystemExit) as error:
        return [broken(spec.environment.kind, error)]


def engine(kind: str, runner: Runner | None = None) -> str | None:
    """Product and version that would run this kind; ``None`` if missing or broken. Never raises.

    ``runner`` is the kind's runner, if it is already loaded."""
    with suppress(Exception, SystemExit):
        return (runner or load(kind)).engine()
    return None


@contextmanager
def guarded(kind: str) -> Iterator[None]:
    """Turn an exception that breaks a runner's contract into an error of this run.

    Raises:
        NotAvailable: the runner raised neither a ``GpuwatchError`` nor an ``OSError``.
    """
    try:
        yield
    except (GpuwatchError, OSError):
        raise
    except (Exception, SystemExit) as error:
        problem = broken(kind, error)
        raise NotAvailable(problem.text, problem.hint) from error


def broken(kind: str, error: BaseException) -> Problem:
    """A runner's own failure as a problem for its user."""
    return Problem(
        "runner-broken",
        f"the runner of {kind!r} failed: {error_text(error)}",
        "report this to its author, or choose another --env",
    )
