"""Why a workload stops: one class for each kind of fix, and what errors of torch become."""

from __future__ import annotations

import os
import shlex
import sys

IN_CONTAINERS = {
    "/gpuwatch/workloads.pyz": "gpuwatch build {0} makes that of --env {0}",
    "/tmp/gpuwatch/workloads.pyz": "docker export unpacks that of gpuwatch build docker",  # noqa: S108
}
"""Where gpuwatch puts the program in a container, whose packages are those of the image, and how
another image is had. The second is Charliecloud's."""


class Failure(Exception):
    """A stop with a reason, reported as an ``error`` event and one line on stderr.

    ``kind`` is the event's kind, ``exit_code`` the process's exit code, ``hint`` the fix; message
    and hint are one line each.
    """

    kind = "run"
    exit_code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        self.message = " ".join(message.split())
        self.hint = " ".join(hint.split())
        super().__init__(self.message)


class UsageFailure(Failure):
    """The command asks for something that does not exist or is impossible."""

    kind = "usage"
    exit_code = 2


class EnvironmentFailure(Failure):
    """The environment lacks what the command needs: torch, a driver, a device."""

    kind = "environment"
    exit_code = 3


class RunFailure(Failure):
    """The run began but could not continue: out of memory, a loader's worker died."""


_MEMORY = (
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "can't allocate memory",
    "not enough memory",
)
_SHARED_MEMORY = ("Bus error", "shared memory", "No space left on device")


def missing(package: str, error: Exception) -> EnvironmentFailure:
    """The failure for a package that cannot be imported, because it is missing or broken."""
    packages = "torch torchvision" if package == "torch" else "torchvision"
    if isinstance(error, ModuleNotFoundError) and error.name == package:
        return EnvironmentFailure(f"this Python has no {package}", install(packages))
    return EnvironmentFailure(
        f"{package} is installed but cannot be imported: {_one_line(error)}",
        install(f"--force-reinstall {packages}"),
    )


def install(packages: str) -> str:
    """How to get ``packages``, with pip's options in front."""
    if sys.argv[0] in IN_CONTAINERS:
        engine = "apptainer" if "SINGULARITY_CONTAINER" in os.environ else "docker"
        return f"choose another image: {IN_CONTAINERS[sys.argv[0]].format(engine)}"
    return f"{shlex.quote(sys.executable)} -m pip install {packages}"


def translate(error: BaseException, batch_size: int | None) -> Failure:
    """The failure behind an error of the run, judged by its first cause.

    ``batch_size`` is the run's; None if the run has not begun.
    """
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    text = str(error)
    if isinstance(error, MemoryError) or any(sign in text for sign in _MEMORY):
        return RunFailure(
            f"out of memory: {_one_line(error)}",
            f"use a --batch-size smaller than {batch_size}"
            if batch_size
            else "use a smaller --batch-size",
        )
    if any(sign in text for sign in _SHARED_MEMORY):
        return RunFailure(
            f"the loader's workers ran out of shared memory: {_one_line(error)}",
            "give the container a larger /dev/shm (docker: --shm-size 2g), or use --workers 0",
        )
    if text.startswith("Caught "):
        return RunFailure(f"a worker of the loader failed: {_one_line(error)}")
    if "DataLoader worker" in text:
        return RunFailure(
            f"a worker of the loader died: {_one_line(error)}",
            "use --workers 0, which shows the worker's own error",
        )
    return RunFailure(f"{type(error).__name__}: {_one_line(error)}")


def _one_line(error: BaseException) -> str:
    """An error's message on one line; for an error of a loader's worker, its last line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    if not lines:
        return type(error).__name__
    return lines[-1] if lines[0].startswith("Caught ") else lines[0]
