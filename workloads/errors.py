"""Errors of torch and of the loader, told as failures that a person can mend."""

from __future__ import annotations

from .failures import EnvironmentFailure, Failure, RunFailure

_MEMORY = (
    "out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "can't allocate memory",
    "not enough memory",
)
_SHARED_MEMORY = ("Bus error", "shared memory", "No space left on device")


def missing(package: str, error: Exception) -> EnvironmentFailure:
    """The failure of a package that cannot be imported: it is not there, or broken."""
    packages = "torch torchvision" if package == "torch" else "torchvision"
    if isinstance(error, ModuleNotFoundError) and error.name == package:
        return EnvironmentFailure(
            f"this Python has no {package}", f"PYTHON -m pip install {packages}"
        )
    return EnvironmentFailure(
        f"{package} is there and cannot be imported: {_first_line(error)}",
        f"PYTHON -m pip install --force-reinstall {packages}",
    )


def translate(error: BaseException, batch_size: int | None) -> Failure:
    """The failure that an error of the run means, by its first cause.

    ``batch_size`` is the command line's, None where it gave none.
    """
    while isinstance(error.__cause__, Exception):
        error = error.__cause__
    text = str(error)
    size = "the default" if batch_size is None else str(batch_size)
    if isinstance(error, MemoryError) or any(sign in text for sign in _MEMORY):
        return RunFailure(
            f"out of memory: {_first_line(error)}",
            f"use a --batch-size smaller than {size}",
        )
    if any(sign in text for sign in _SHARED_MEMORY):
        return RunFailure(
            f"the loader's workers ran out of shared memory: {_first_line(error)}",
            "give the container a larger /dev/shm (docker: --shm-size 2g), or use --workers 0",
        )
    if "DataLoader worker" in text:
        return RunFailure(
            f"a worker of the loader died: {_first_line(error)}",
            "use --workers 0, which shows the worker's own error",
        )
    return RunFailure(f"{type(error).__name__}: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
