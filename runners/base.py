"""What every runner and every run can do. A runner for another engine implements these two."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from gpuwatch.models import JSON, LaunchSpec, Output, Prepared, Problem, Result


class Run(Protocol):
    """A workload that was started, whether by this process or by one that died since."""

    def handle(self) -> dict[str, JSON]:
        """What is needed to find the run again after a crash; JSON, kept in the session.

        ``kind`` names the runner; ``holder`` (a ``ProcessId`` as a dict) the process whose life
        shows that the run goes on.
        """
        ...

    def spawned_ns(self) -> int | None:
        """``CLOCK_MONOTONIC`` when the launch began; ``None`` while it has not."""
        ...

    def pids(self) -> Sequence[int]:
        """Host numbers of the processes at the top of the workload's tree."""
        ...

    def read(self) -> list[Output]:
        """What was written since the last call; never blocks. Its end does not mean exit."""
        ...

    def cursor(self) -> str:
        """Where reading stands, to be given to ``Runner.attach``."""
        ...

    def release(self, cursor: str) -> None:
        """Everything before ``cursor`` is safe in the session and may be forgotten."""
        ...

    def result(self) -> Result | None:
        """How the run ended; ``None`` while it goes on."""
        ...

    def lost(self) -> bool:
        """Whether the run can no longer be followed although its end was not seen."""
        ...

    def stop(self) -> None:
        """Ask the whole process tree to end; kill it after the grace. A second call kills at once.

        Idempotent after the end.
        """
        ...

    def forget(self) -> None:
        """Remove what the run kept outside the session, once its result is safe."""
        ...


class Runner(Protocol):
    """One kind of environment."""

    kind: str

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        """Why the run could not start here; empty when it can. Never raises."""
        ...

    def prepare(self, spec: LaunchSpec) -> Prepared:
        """The exact command, and what is known of the environment before the start."""
        ...

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        """Start it; ``folder`` is the run's own and private."""
        ...

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        """The run behind a handle of :meth:`Run.handle`, whether it goes on or has ended."""
        ...
