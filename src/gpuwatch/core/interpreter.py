"""Commands that a Python runs: what ``python=`` chooses the interpreter of, and their file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from gpuwatch.core.models import Workload

_PYTHON = re.compile(r"python[\d.]*")
_NO_FILE = re.compile(r"-(-|$|[A-VYZa-z]*[cm])")
"""Options after which no file is named, or where it is not known."""


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


def script(command: Sequence[str]) -> str | None:
    """The file that ``python [OPTIONS] FILE ...`` runs; ``None`` where ``command`` is not so, as
    with ``-m`` and ``-c``."""
    if not _PYTHON.fullmatch(PurePath(command[0]).name):
        return None
    before = ""
    for word in command[1:]:
        if before in ("-W", "-X"):
            before = ""
        elif not word.startswith("-"):
            return word
        elif _NO_FILE.match(word):
            return None
        else:
            before = word
    return None
