"""The cases of a study that a command line names: workloads of ours, a command, or the machine."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import Workload
from gpuwatch.core.text import shell
from gpuwatch.workloads import names, options

_STEPS = 100
_LONG_ENOUGH = ("imagenet", "gcn")
"""Modules of workloads whose own default, 15 batches and 200 epochs, reaches a steady state."""

_RUNNERS = re.compile(
    r"(python|pypy|ruby|perl|node|bash|dash|zsh|sh)[\d.]*|torchrun|accelerate",
)


def command_name(command: Sequence[str]) -> str:
    """What tells a command of the user's from others: the script rather than its interpreter."""
    name = Path(command[0]).name
    if not _RUNNERS.fullmatch(name):
        return name
    rest = iter(command[1:])
    for argument in rest:
        if argument == "-m":
            return next(rest, name)
        if argument == "-c":
            return name
        flag = argument.startswith("-") or "=" in argument
        if not flag and argument != "launch":
            return Path(argument).name or name
    return name


def _own_program(words: Sequence[str]) -> str | None:
    """The hint for a program that was named like a workload."""
    first = words[0]
    if shutil.which(first) or Path(first).exists() or Path(first).suffix in (".py", ".sh"):
        return f"a program of your own stands behind --: -- {' '.join(map(shell, words))}"
    return None


def workloads(arguments: argparse.Namespace, command: tuple[str, ...]) -> tuple[Workload, ...]:
    """The cases that the command line names: workloads of ours, a command, or the machine.

    Raises:
        UsageError: it names something unknown, or flags that do not go together.
    """
    clash = options.conflict(arguments)
    if clash:
        raise UsageError(*clash)
    given = {
        name: value
        for name in options.FLAGS
        if (value := getattr(arguments, name)) is not None and value is not False
    }
    if command:
        if arguments.workload:
            raise UsageError(
                f"both a workload ({arguments.workload[0]}) and a command behind --",
                "give one of them",
            )
        if given:
            flag = "--" + next(iter(given)).replace("_", "-")
            raise UsageError(
                f"{flag} is a flag of gpuwatch's own workloads",
                f"write it behind -- for {command[0]}",
            )
        return (Workload(command_name(command), "command", command),)
    if not arguments.workload:
        if given:
            flag = "--" + next(iter(given)).replace("_", "-")
            raise UsageError(f"{flag} without a workload", f"name one: {', '.join(names.known())}")
        if arguments.env:
            raise UsageError(
                "--env without a workload: the machine alone is recorded outside of containers",
                "name a workload, or a command of your own behind --",
            )
        return (Workload("machine", "machine"),)
    if given.get("data"):
        given["data"] = arguments.data = str(Path(arguments.data).absolute())
    found = []
    for name in arguments.workload:
        try:
            found.append(names.check(name))
        except ValueError as error:
            raise UsageError(str(error), _own_program(arguments.workload)) from None
    flags = tuple(options.to_argv(arguments))
    return tuple(Workload(name, "workload", flags, given) for name in found)


def long_enough(cases: Sequence[Workload]) -> tuple[Workload, ...]:
    """The cases as they run in blocks: a length that was left open reaches a steady state.

    An epoch of a small workload does not.
    """
    found = []
    for case in cases:
        small = case.kind == "workload" and names.module_of(case.name) not in _LONG_ENOUGH
        if small and not {"steps", "epochs"} & case.parameters.keys():
            parameters = {**case.parameters, "steps": _STEPS}
            flags = tuple(options.parameters_to_argv(parameters))
            case = replace(case, arguments=flags, parameters=parameters)
        found.append(case)
    return tuple(found)
