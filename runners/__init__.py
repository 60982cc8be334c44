"""Ways to launch a workload: gpuwatch's own, and those of the entry points ``gpuwatch.runners``."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING

from gpuwatch.core.errors import GpuwatchError, NotAvailable, UsageError
from gpuwatch.core.models import LaunchSpec, Problem
from gpuwatch.runners.base import Runner

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "gpuwatch.runners"

OWN = {
    "bare": "gpuwatch.runners.bare:BareRunner",
    "docker": "gpuwatch.runners.docker.runner:DockerRunner",
    "apptainer": "gpuwatch.runners.apptainer.runner:ApptainerRunner",
    "singularity": "gpuwatch.runners.apptainer.runner:ApptainerRunner",
    "charliecloud": "gpuwatch.runners.charliecloud:CharliecloudRunner",
}
"""By kind; other packages are not looked into for these, and cannot take them over."""


def kinds(*, aliases: bool = True) -> tuple[str, ...]:
    """The kinds of environment that ``--env`` accepts here; else one name for each runner."""
    found = {kind: entry.value for kind, entry in _others().items()} | OWN
    if aliases:
        return tuple(sorted(found))
    firsts = {found[kind]: kind for kind in sorted(found, reverse=True)}
    return tuple(sorted(firsts.values()))


def known(kind: str) -> bool:
    """Whether there is such a kind."""
    return kind in OWN or kind in _others()


def load(kind: str) -> Runner:
    """The runner of that kind; only its own module is imported.

    Raises:
        UsageError: there is no such kind.
        NotAvailable: it is a broken one: its package cannot be imported.
    """
    if kind in OWN:
        value, package = OWN[kind], "gpuwatch"
    elif (entry := _others().get(kind)) is not None:
        value = entry.value
        package = entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]
    else:
        raise UsageError(f"unknown environment {kind!r}", f"choose from: {', '.join(kinds())}")
    try:
        module, _, name = value.partition(":")
        runner: Runner = getattr(import_module(module), name)()
    except (Exception, SystemExit) as error:
        raise NotAvailable(
            f"the environment {kind!r} cannot be loaded: {value} of the package {package}: "
            f"{told(error)}",
            f"update or remove the package: pip install --upgrade {package}, "
            f"pip uninstall {package}",
        ) from error
    return runner


def check(spec: LaunchSpec) -> list[Problem]:
    """Why the run could not start here: the runner's preflight. Never raises.

    What a runner raises although it should not is a problem as well.
    """
    try:
        return list(load(spec.environment.kind).preflight(spec))
    except GpuwatchError as error:
        return [Problem("runner-broken", error.message, error.hint)]
    except (Exception, SystemExit) as error:
        return [broken(spec.environment.kind, error)]


def engine(kind: str, runner: Runner | None = None) -> str | None:
    """Product and version that would run that kind; ``None``: not here, or broken. Never raises.

    ``runner``: that of the kind, where it is loaded already."""
    with suppress(Exception, SystemExit):
        return (runner or load(kind)).engine()
    return None


@contextmanager
def guarded(kind: str) -> Iterator[None]:
    """What a runner raises against its contract becomes an error of this one run.

    Raises:
        NotAvailable: it raised something that is neither a ``GpuwatchError`` nor an ``OSError``.
    """
    try:
        yield
    except (GpuwatchError, OSError):
        raise
    except (Exception, SystemExit) as error:
        problem = broken(kind, error)
        raise NotAvailable(problem.text, problem.hint) from error


def broken(kind: str, error: BaseException) -> Problem:
    """What a runner's own failure is to whoever wants to use it."""
    return Problem(
        "runner-broken",
        f"the runner of {kind!r} failed: {told(error)}",
        "tell its author, or choose another --env",
    )


def told(error: BaseException) -> str:
    """An exception that nobody expected, in one line."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__


def _others() -> dict[str, EntryPoint]:
    """Of other packages, by kind."""
    # Here: it brings modules for e-mail and archives, and reads what every package says of itself.
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in OWN}
