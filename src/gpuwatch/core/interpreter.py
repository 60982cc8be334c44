"""What ``python=`` chooses the interpreter of."""

from __future__ import annotations

import re

from gpuwatch.core.models import Workload

_PYTHON = re.compile(r"python[\d.]*")


def takes_interpreter(workload: Workload) -> bool:
    """Whether ``python=`` applies: to gpuwatch's own workloads, and to commands that begin with
    ``python``, ``python3`` ... without a folder."""
    return workload.kind == "workload" or bool(
        workload.kind == "command" and _PYTHON.fullmatch(workload.arguments[0])
    )


def users_command(workload: Workload, python: str | None) -> tuple[str, ...]:
    """The user's command, with the interpreter ``python`` in place of the ``python`` that it begins
    with, if it does."""
    if python is None or not takes_interpreter(workload):
        return workload.arguments
    return (python, *workload.arguments[1:])
