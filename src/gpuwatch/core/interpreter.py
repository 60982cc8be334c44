"""Commands that a Python runs: what ``python=`` chooses the interpreter of, and their file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePath

from gpuwatch.core.models import Workload

_PYTHON = re.compile(r"python[\d.]*")
_NO_FILE = re.compile(r"-(-|$|[A-VYZa-z]*[cm])")
"""Options after which no file is named, or where it is not known."""
_LAUNCHERS = ("torch.distributed.run", "torch.distributed.launch", "accelerate.commands.launch")
_OF_LAUNCHERS = ("-m", "--module", "--no-python", "--no_python")
"""Options of launchers with which they start no file of Python."""
_TAKES_VALUE = re.compile(
    r"--(?:(?:nproc|node|num|rdzv|master|machine|main|max|log)[-_][^=]+"
    r"|nnodes|role|mixed_precision|config_file|gpu_ids)"
)
"""Options of launchers whose value surely is the next word."""


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
    """The file that ``python [OPTIONS] FILE ...`` runs, also by ``torchrun`` or ``accelerate``;
    ``None`` where ``command`` is not so, as with ``-m`` and ``-c``."""
    name = PurePath(command[0]).name
    if name == "torchrun":
        return _launched(command[1:])
    if name == "accelerate" and command[1:] and command[1] == "launch":
        return _launched(command[2:])
    if not _PYTHON.fullmatch(name):
        return None
    before = ""
    for at, word in enumerate(command[1:], 2):
        if before in ("-W", "-X"):
            before = ""
        elif not word.startswith("-"):
            return word
        elif _NO_FILE.match(word):
            of_launcher = word.endswith("m") and "".join(command[at : at + 1]) in _LAUNCHERS
            return _launched(command[at + 1 :]) if of_launcher else None
        else:
            before = word
    return None


def _launched(words: Sequence[str]) -> str | None:
    """The first word that is no option or value, if it is a Python file."""
    for before, word in zip(("", *words), words, strict=False):
        if word.partition("=")[0] in _OF_LAUNCHERS:
            return None
        if not word.startswith("-") and not _TAKES_VALUE.fullmatch(before):
            return word if word.endswith(".py") else None
    return None
