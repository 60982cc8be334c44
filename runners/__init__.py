"""Ways to launch a workload: bare, and whatever the entry points of ``gpuwatch.runners`` name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from gpuwatch.errors import GpuwatchError, NotAvailable, UsageError
from gpuwatch.models import LaunchSpec, Problem
from gpuwatch.runners.base import Runner

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "gpuwatch.runners"


def kinds(*, aliases: bool = True) -> tuple[str, ...]:
    """The kinds of environment that ``--env`` accepts here; else one name for each runner."""
    found = _found()
    if aliases:
        return tuple(sorted(found))
    firsts = {found[kind].value: kind for kind in sorted(found, reverse=True)}
    return tuple(sorted(firsts.values()))


def load(kind: str) -> Runner:
    """The runner of that kind; only its own module is imported.

    Raises:
        UsageError: there is no such kind.
        NotAvailable: it is a broken one: its package cannot be imported.
    """
    try:
        entry = _found()[kind]
    except KeyError:
        raise UsageError(
            f"unknown environment {kind!r}", f"choose from: {', '.join(kinds())}"
        ) from None
    try:
        runner: Runner = entry.load()()
    except (Exception, SystemExit) as error:
        package = entry.dist.name if entry.dist is not None else entry.module.partition(".")[0]
        raise NotAvailable(
            f"the environment {kind!r} cannot be loaded: {entry.value} of the package {package}: "
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
        return [Problem("runner-broken", error.message, error.mend)]
    except (Exception, SystemExit) as error:
        return [broken(spec.environment.kind, error)]


def engine(kind: str) -> str | None:
    """Product and version that would run that kind; ``None``: not here, or broken. Never raises."""
    with suppress(Exception, SystemExit):
        return load(kind).engine()
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
        raise NotAvailable(problem.text, problem.fix) from error


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


def _found() -> dict[str, EntryPoint]:
    """By name; gpuwatch's own kinds cannot be taken over by another package."""
    # Here: it brings modules for e-mail and archives, which a recording of the machine needs not.
    from importlib.metadata import entry_points

    listed = entry_points(group=GROUP)
    own = [entry for entry in listed if entry.dist is not None and entry.dist.name == "gpuwatch"]
    return {entry.name: entry for entry in (*listed, *own)}
