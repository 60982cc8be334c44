"""The cases of a study named on the command line: our workloads, a command, or the machine."""

from __future__ import annotations

import argparse
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from difflib import get_close_matches
from pathlib import Path

from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import JSON, LABEL, Workload
from gpuwatch.core.shell_line import words
from gpuwatch.core.text import shell, to_paste
from gpuwatch.workloads import names, options

_STEPS = 100
_LONG_ENOUGH = ("imagenet", "gcn", "transformer_lm", "bert", "unet_diffusion")
"""Workload modules whose default length (15 batches, 200 epochs) reaches a steady state."""

_INTERPRETERS = re.compile(r"(python|pypy|ruby|perl|node|bash|dash|zsh|sh)[\d.]*")
_TAKE_VALUE = ("-W", "-X", "-o")
"""Options of interpreters whose value is the next word."""
_WRAPPERS = re.compile(r"env|nice|ionice|nohup|numactl|setsid|stdbuf|taskset|time|timeout")
_NO_PROGRAM = re.compile(r"-.*|.*=.*|[\d.,-]+[smhd]?")
"""Words between a wrapper and its program: options, variables, numbers, times."""
_OF_WRAPPERS = ("-u", "-C", "-s")
"""Options of wrappers whose value is the next word, where it is no number."""
_LAUNCHERS = re.compile(
    r"torchrun|accelerate|deepspeed|torch\.distributed\.(run|launch)|accelerate\.commands\.launch"
)
_PROGRAMS = ("python", "python3", "torchrun", "accelerate", "deepspeed")
"""What a misspelt word before a Python file may have been."""
_TAKE_NONE = ("--standalone", "--no-python", "--no_python", "--multi_gpu", "--cpu", "launch")
"""Words before a program that a launcher starts; other options of launchers mostly take a value."""


def command_name(command: Sequence[str]) -> str:
    """Short name of a user's command: the script rather than its interpreter or launcher."""
    name = Path(command[0]).name
    if _WRAPPERS.fullmatch(name):
        for at, word in enumerate(command[1:], 1):
            if not (_NO_PROGRAM.fullmatch(word) or command[at - 1] in _OF_WRAPPERS):
                return command_name(command[at:])
    if _LAUNCHERS.fullmatch(name):
        return _launched(command[1:]) or name
    if not _INTERPRETERS.fullmatch(name):
        return name
    before = ""
    for at, word in enumerate(command[1:], 2):
        if before == "-c":
            return next((Path(each).name for each in word.split() if each.endswith(".py")), name)
        if before == "-m":
            return (_LAUNCHERS.fullmatch(word) and _launched(command[at:])) or word
        if not (word.startswith("-") or "=" in word or before in _TAKE_VALUE):
            return Path(word).name or name
        before = word
    return name


def _launched(words: Sequence[str]) -> str | None:
    """The program that a launcher starts: after ``-m``, or the first Python file; otherwise the
    first word that is no option and no value of one."""
    first = None
    for before, word in zip(("", *words), words, strict=False):
        if word.startswith("-") or word == "launch":
            continue
        if before in ("-m", "--module") or word.endswith(".py"):
            return Path(word).name
        if first is None and (not before.startswith("-") or before in _TAKE_NONE):
            first = Path(word).name
    return first


def program_at(parser: argparse.ArgumentParser, words: Sequence[str]) -> int | None:
    """Index of a program of the user's own among ``words``: the first word that is no option and
    no value of one, if no workload has that name; ``None`` if there is none.

    ``parser`` is that of the command, which raises ``UsageError``.

    Raises:
        UsageError: the word is no program, but is followed by a Python file.
    """
    for at, word in enumerate(words):
        if word.startswith("-"):
            continue
        try:
            parser.parse_args(words[:at])
        except UsageError as error:
            if "expected" in error.message:  # an option before it lacks its value: this word
                continue
            raise
        found = shutil.which(word) or (Path(word).exists() and not word.endswith(".py"))
        if not found and not _is_workload(word) and any(e.endswith(".py") for e in words[at + 1 :]):
            close = next(iter(get_close_matches(word, _PROGRAMS, n=1)), None)
            right = f"did you mean {close}?" if close else "check its name"
            if close == word:
                right = "it is not on the PATH: activate the environment that it is in"
            raise UsageError(f"no program is named {word!r}", right)
        return None if _is_workload(word) or not found else at
    return None


def _is_workload(name: str) -> bool:
    try:
        names.check(name)
    except ValueError:
        return False
    return True


def labelled(
    texts: Sequence[str], arguments: argparse.Namespace, command: tuple[str, ...]
) -> tuple[Workload, ...]:
    """The commands that ``--command`` names, ``LABEL=COMMAND`` each, to be compared.

    Raises:
        UsageError: a label is missing, wrong or given twice, a command cannot be used, or another
            workload, its flags or a command is named too.
    """
    if command or arguments.workload:
        other = command[0] if command else arguments.workload[0]
        raise UsageError(
            f"both --command and {other}", f"write it as a command: --command b={shell(other)}"
        )
    if flag := _flag_given(arguments, but="profile"):
        raise UsageError(
            f"{flag} is a flag of gpuwatch's own workloads", "write it into the commands"
        )
    found = [_labelled(text) for text in texts]
    labels = [case.label for case in found]
    if twice := next((label for label in labels if labels.count(label) > 1), None):
        raise UsageError(f"two commands are labelled {twice}", "label them differently")
    return tuple(found)


def _labelled(text: str) -> Workload:
    label, equals, line = text.partition("=")
    if not equals or not LABEL.fullmatch(label):
        if equals and label.isidentifier():
            raise UsageError(
                f"{label}= before a command is not a label (small letters), and sets no variable",
                f"write --env bare,set={text.partition(' ')[0]}, or {_option('a', f'env {text}')}",
            )
        raise UsageError(f"--command {shell(text)} has no label", f"write {_option('a', text)}")
    found = words(line, f"--command {label}", lambda line: _option(label, line))
    return Workload(command_name(found), "command", found, label=label)


def _option(label: str, line: str) -> str:
    return f"--command {shell(f'{label}={line}')}"


def workloads(arguments: argparse.Namespace, command: tuple[str, ...]) -> tuple[Workload, ...]:
    """The cases that the command line names: our workloads, a command, or the machine.

    Raises:
        UsageError: a name is unknown, or flags conflict.
    """
    clash = options.conflict(arguments)
    if clash:
        raise UsageError(*clash)
    given = given_flags(arguments)
    if command:
        if arguments.workload:
            raise UsageError(
                f"both a workload ({arguments.workload[0]}) and a command after --",
                "give one of them",
            )
        if flag := _flag_given(arguments, but="profile"):
            raise UsageError(
                f"{flag} is a flag of gpuwatch's own workloads",
                f"to pass it to {command[0]}, write it after --",
            )
        return (Workload(command_name(command), "command", command),)
    if not arguments.workload:
        if flag := _flag_given(arguments):
            raise UsageError(f"{flag} without a workload", f"name one: {', '.join(names.known())}")
        if arguments.env:
            raise UsageError(
                "--env without a workload: the machine alone is recorded outside containers",
                "name a workload, or a program of your own",
            )
        return (Workload("machine", "machine"),)
    if given.get("data"):
        given["data"] = str(Path(arguments.data).absolute())
    checked = []
    for name in arguments.workload:
        try:
            checked.append(names.check(name))
        except ValueError as error:
            python = name.endswith(".py")
            hint = to_paste("run python" if python else "run --", *arguments.workload)
            if Path(name).is_file():
                raise UsageError(f"{name} is no workload but a program", hint) from None
            if python:
                raise UsageError(f"there is no file {name}", f"when it is there: {hint}") from None
            raise UsageError(str(error), f"a program of your own: {hint}") from None
        if clash := options.unsupported(name, arguments):
            raise UsageError(*clash)
    flags = tuple(options.parameters_to_argv(given))
    return tuple(
        Workload(names.short(name), "workload", flags, given, program=names.program(name))
        for name in checked
    )


def given_flags(arguments: argparse.Namespace) -> dict[str, JSON]:
    """The flags of gpuwatch's own workloads that were given, by name."""
    return {
        name: value
        for name in options.FLAGS
        if (value := getattr(arguments, name)) is not None and value is not False
    }


def _flag_given(arguments: argparse.Namespace, but: str = "") -> str | None:
    """The first of them, as it was typed; ``but`` is none of them."""
    given = (name for name in given_flags(arguments) if name != but)
    return next((f"--{name.replace('_', '-')}" for name in given), None)


def long_enough(cases: Sequence[Workload]) -> tuple[Workload, ...]:
    """The cases for runs in blocks, with a default length that reaches a steady state.

    Small workloads without ``--steps`` or ``--epochs`` get 100 steps: an epoch is too short.
    """
    extended = []
    for case in cases:
        small = case.kind == "workload" and names.module_of(case.name) not in _LONG_ENOUGH
        if small and not {"steps", "epochs"} & case.parameters.keys():
            parameters = {**case.parameters, "steps": _STEPS}
            flags = tuple(options.parameters_to_argv(parameters))
            case = replace(case, arguments=flags, parameters=parameters)
        extended.append(case)
    return tuple(extended)
