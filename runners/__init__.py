"""Ways to launch a workload: bare, and whatever the entry points of ``gpuwatch.runners`` name."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points

from gpuwatch.errors import UsageError
from gpuwatch.runners.base import Runner

GROUP = "gpuwatch.runners"


def kinds() -> tuple[str, ...]:
    """The kinds of environment that ``--env`` accepts here."""
    return tuple(sorted(_found()))


def load(kind: str) -> Runner:
    """The runner of that kind; only its own module is imported.

    Raises:
        UsageError: there is no such kind.
    """
    try:
        entry = _found()[kind]
    except KeyError:
        raise UsageError(
            f"unknown environment {kind!r}", f"choose from: {', '.join(kinds())}"
        ) from None
    runner: Runner = entry.load()()
    return runner


def _found() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}
