"""The interfaces of runners and runs; a runner for another engine implements both."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from gpuwatch.core.models import JSON, LaunchSpec, Output, Prepared, Problem, Result, RunState


class Run(Protocol):
    """A started workload, possibly started by an earlier process that has died."""

    def handle(self) -> dict[str, JSON]:
        """JSON stored in the session, from which the run is found again after a crash.

        ``kind`` names the runner; ``holder`` (a ``ProcessId`` as a dict) is the process that lives
        as long as the run.
        """
        ...

    def spawned_ns(self) -> int | None:
        """``CLOCK_MONOTONIC`` at the start of the launch; ``None`` before it."""
        ...

    def state(self) -> RunState:
        """State of the run; cheap, called ten times a second."""
        ...

    def pids(self) -> Sequence[int]:
        """Host PIDs at the top of the workload's process tree; empty once it ended."""
        ...

    def read(self) -> list[Output]:
        """Output since the last call; never blocks. Its end does not imply the process's exit."""
        ...

    def cursor(self) -> str:
        """Read position, for ``Runner.attach``."""
        ...

    def release(self, cursor: str) -> None:
        """Allow everything before ``cursor``, which the session has saved, to be deleted."""
        ...

    def result(self) -> Result | None:
        """How the run ended; ``None`` while it runs or may still come back.

        With ``lost`` set the run is given up: its end was not and cannot be observed.
        """
        ...

    def stop(self) -> None:
        """Ask the process tree to end; kill it after the grace period. A second call kills at once.

        Idempotent after the end.
        """
        ...

    def forget(self) -> None:
        """Delete the run's data outside the session, once its result is saved."""
        ...


class Runner(Protocol):
    """One kind of environment."""

    kind: str
    contained: bool
    """Whether a run's processes have their own control group, whose counters cover the run."""

    def engine(self) -> str | None:
        """Product and version that would run it, such as ``Docker 28.1``; ``None`` if missing.

        Never raises.
        """
        ...

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        """Why the run could not start here; empty if it can. Never raises, changes nothing.

        ``spec.archive`` may still be ``None``. Also checks access to ``spec.gpus``.
        """
        ...

    def prepare(self, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        """The exact command, and the facts known about the environment before the start.

        Fetches the image if that is allowed. ``say`` gets progress and notes; a line is shown only
        once for all runs of a study.

        Raises:
            NotAvailable: the image could not be fetched.
        """
        ...

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        """Start the run; ``folder`` is private to it, and its name is the run's identifier.

        Raises:
            GpuwatchError: it could not be started, and nothing of it is left.
        """
        ...

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        """The run for a handle from :meth:`Run.handle`, whether it still runs or has ended."""
        ...


@runtime_checkable
class Sweeper(Protocol):
    """A runner whose engine may hold leftovers of a dead gpuwatch that no session refers to."""

    def sweep(self) -> list[str]:
        """Stop and remove the leftovers; returns one line for each. Never raises."""
        ...
