"""The completion table: commands, their flags, and the values that each takes."""

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
"""Destination -> (kind, words), for arguments whose values the parser does not reveal."""


@dataclass(frozen=True)
class Row:
    """A command, one of its flags, or one of its positional arguments."""

    command: str
    flag: str
    """The flag; for a positional argument its place, from 1, or ``*`` for that and all later ones;
    empty for a command."""
    kind: str
    """Kind of value: ``none``, ``word`` (one of ``words``, or anything), ``file``, ``folder``,
    ``session``, ``study``, ``workload``, ``env``."""
    words: str
    help: str

    def __str__(self) -> str:
        return "|".join((self.command, self.flag, self.kind, self.words, self.help))


def rows() -> Iterator[Row]:
    """All rows of the table, commands first."""
    for name, (_, what) in COMMANDS.items():
        yield Row(name, "", "", "", _plain(what))
    yield Row(HOME, "--version", "none", "", "print the version")
    for name in (HOME, *COMMANDS):
        actions = [a for a in parser_of(name).arguments if a.help is not argparse.SUPPRESS]
        for action in actions:
            for flag in [option for option in action.option_strings if option.startswith("--")]:
                yield Row(name, flag, *_value(name, action), _plain(help_of(action, name)))
        for place, action in enumerate((a for a in actions if not a.option_strings), 1):
            flag = "*" if action.nargs in ("*", "+") else str(place)
            yield Row(name, flag, *_value(name, action), _plain(help_of(action, name)))


def help_of(action: argparse.Action, command: str) -> str:
    """The ``--help`` text of a flag or positional argument, in one line."""
    known = {**vars(action), "prog": f"gpuwatch {command}".rstrip()}
    return clean(" ".join((action.help or "").split()) % known)


def workloads() -> str:
    """The names of workloads, separated by spaces."""
    return " ".join([*names.known(), names.TORCHVISION])


def environments() -> str:
    """The kinds of environment, alone and followed by ``=`` for an image; separated by spaces."""
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
    """``text`` on one line, without the column separator."""
    return clean(text).replace("|", "/")
