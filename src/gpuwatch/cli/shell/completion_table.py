"""What a shell completes, as one table: commands, their flags, and what each takes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.cli.dispatch import COMMANDS, HOME, parser_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.workloads import names

_SESSION = re.compile(r"SESSION|STUDY")
_FILE = re.compile(r"FILE|PATH")
_BY_NAME = {
    "workload": ("workload", ""),
    "env": ("env", ""),
    "device": ("word", "auto cpu cuda"),
    "gpus": ("word", "none"),
    "duration": ("word", "30s 90s 5m 1h"),
    "margin": ("word", "0.5% 1% 2%"),
}
"""By destination: what cannot be told from the way in which the parser was filled."""


@dataclass(frozen=True)
class Row:
    """A command, a flag of one, or a word that it takes without a flag."""

    command: str
    flag: str
    """Of a word its place, from 1 on, or ``*`` for it and all behind it; empty of a command."""
    kind: str
    """``none`` (it takes no value), ``word`` (one of ``words``, or anything), ``file``, ``folder``,
    ``session``, ``study``, ``workload``, ``env``."""
    words: str
    help: str

    def __str__(self) -> str:
        return "|".join((self.command, self.flag, self.kind, self.words, self.help))


def rows() -> Iterator[Row]:
    """Everything that is completed, commands first."""
    for name, (_, what) in COMMANDS.items():
        yield Row(name, "", "", "", _plain(what))
    yield Row(HOME, "--version", "none", "", "print the version")
    for name in (HOME, *COMMANDS):
        actions = [a for a in parser_of(name)._actions if a.help is not argparse.SUPPRESS]
        for action in actions:
            for flag in [each for each in action.option_strings if each.startswith("--")]:
                yield Row(name, flag, *_value(name, action), _plain(help_of(action, name)))
        for place, action in enumerate((a for a in actions if not a.option_strings), 1):
            flag = "*" if action.nargs in ("*", "+") else str(place)
            yield Row(name, flag, *_value(name, action), _plain(help_of(action, name)))


def help_of(action: argparse.Action, command: str) -> str:
    """What ``--help`` says of a flag or a word, in one line."""
    known = {**vars(action), "prog": f"gpuwatch {command}".rstrip()}
    return clean(" ".join((action.help or "").split()) % known)


def workloads() -> str:
    """The names of workloads, with blanks between."""
    return " ".join([*names.known(), names.TORCHVISION])


def environments() -> str:
    """The kinds of environment, alone and with the sign behind which an image stands."""
    from gpuwatch.runners import kinds

    return " ".join([*kinds(), *(f"{kind}=" for kind in kinds() if kind != "bare")])


def _value(command: str, action: argparse.Action) -> tuple[str, str]:
    if action.nargs == 0 or (action.option_strings and action.nargs == "?"):
        return "none", ""
    if action.choices is not None:
        return "word", " ".join(map(str, action.choices))
    if command == "study" and action.dest in ("study", "show"):
        from gpuwatch.studies import presets

        return "study" if action.dest == "study" else "word", " ".join(presets())
    if action.dest in _BY_NAME:
        return _BY_NAME[action.dest]
    metavar = action.metavar if isinstance(action.metavar, str) else ""
    if _SESSION.search(metavar):
        return "session", ""
    if metavar == "DIR":
        return "folder", ""
    return ("file", "") if _FILE.search(metavar) or action.type is Path else ("word", "")


def _plain(text: str) -> str:
    """Without what splits a row."""
    return clean(text).replace("|", "/")
