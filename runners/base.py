"""What every runner and every run can do. A runner for another engine implements these two."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from gpuwatch.core.models import JSON, LaunchSpec, Output, Prepared, Problem, Result, RunState


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

    def state(self) -> RunState:
        """Where the run stands; cheap, asked ten times a second."""
        ...

    def pids(self) -> Sequence[int]:
        """Host numbers of the processes at the top of the workload's tree; none once it ended."""
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
        """How the run ended; ``None`` while it goes on or may still come back.

        With ``lost`` set the run is given up: its end was not seen and never will be.
        """
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
    contained: bool
    """Whether a run's processes have a control group of their own, whose counters are the run's."""

    def engine(self) -> str | None:
        """Product and version that would run it, such as ``Docker 28.1``; ``None``: not here.

        Never raises.
        """
        ...

    def preflight(self, spec: LaunchSpec) -> list[Problem]:
        """Why the run could not start here; empty when it can. Never raises, changes nothing.

        ``spec.archive`` may still be ``None``. With ``spec.gpus`` the question is whether it can
        run with these GPUs.
        """
        ...

    def prepare(self, spec: LaunchSpec, say: Callable[[str], None]) -> Prepared:
        """The exact command, and what is known of the environment before the start.

        An image that may be fetched is fetched here; ``say`` hears of its progress.

        Raises:
            NotAvailable: the image could not be had.
        """
        ...

    def start(self, spec: LaunchSpec, prepared: Prepared, folder: Path) -> Run:
        """Start it; ``folder`` is the run's own and private, its name the run's identifier.

        Raises:
            GpuwatchError: it could not be started; nothing is left of it then.
        """
        ...

    def attach(self, handle: dict[str, JSON], cursor: str | None) -> Run:
        """The run behind a handle of :meth:`Run.handle`, whether it goes on or has ended."""
        ...


@runtime_checkable
class Sweeper(Protocol):
    """A runner whose engine may hold what a dead gpuwatch left, known to no session any more."""

    def sweep(self) -> list[str]:
        """End and remove it; one line for each thing. Never raises."""
        ...
