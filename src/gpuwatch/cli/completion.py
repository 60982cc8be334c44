"""What a shell is told when Tab is pressed: argcomplete asks the parsers of ``--help``.

The shell starts gpuwatch with the line typed so far. argcomplete escapes what it answers, for names
of sessions may come from elsewhere.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from argcomplete import autocomplete
from argcomplete.completers import ChoicesCompleter, DirectoriesCompleter, FilesCompleter
from argcomplete.lexers import split_line

from gpuwatch.cli.dispatch import COMMANDS, HOME, parser_of
from gpuwatch.cli.selection.session_lookup import known_sessions
from gpuwatch.core import paths
from gpuwatch.core.models import HOOK_OPTIONS
from gpuwatch.core.text import clean
from gpuwatch.session.study.labels import LABELS, read
from gpuwatch.workloads import names

_LARGEST_CACHE = 8 << 20
"""Size in bytes above which the cache is too slow to read; then no ids are offered."""


def session_names() -> list[str]:
    """Names, tags, ``last``, study folders, and the ids of finished sessions that were listed
    before."""
    sessions = known_sessions()[::-1]
    folders = dict.fromkeys(path.parent for path in sessions)
    labelled = (read(folder) for folder in folders if os.path.lexists(folder / LABELS))
    known = [label for labels in labelled for label in labels.values()]
    ids = _listed()
    names = (
        *(label.name for label in known),
        *(f"tag:{tag}" for label in known for tag in label.tags),
        *(["last"] if sessions else []),
        *(folder.name for folder in folders),
        *(ids.get(str(path), "") for path in sessions),
    )
    # One that fits on no line unchanged is left out: a cleaned name matches no session.
    return [name for name in dict.fromkeys(names) if name and clean(name) == name]


def _listed() -> Mapping[str, str]:
    """The ids of the cached session list, by path: see
    :mod:`gpuwatch.cli.selection.session_index`."""
    try:
        file = paths.cache_home() / "sessions.json"
        content = file.read_bytes() if file.stat().st_size <= _LARGEST_CACHE else b"{}"
        known = json.loads(content)["files"].items()
        return {path: value["id"] for path, (_, value) in known if "id" in value}
    except (OSError, ValueError, TypeError, LookupError):
        return {}


_ASKED = "_ARGCOMPLETE"
"""Variable that a shell sets: which word of the line, from 1, is the program's name."""
_WORDS = {
    "device": ("auto", "cpu", "cuda"),
    "gpus": ("none", "off"),
    "hook": HOOK_OPTIONS,
    "margin": ("0.5%", "1%", "2%"),
}
"""Destination -> values that the parser does not tell."""


def complete() -> None:
    """Answer the shell, and end the process."""
    point = int(os.environ["COMP_POINT"])
    typed = split_line(os.environ["COMP_LINE"], point)[3]
    first, parser = 0, argparse.ArgumentParser()
    named = next((at for at, word in enumerate(typed) if word in COMMANDS), None)
    if "--" in typed:
        first = typed.index("--")
        words: Any = parser.add_argument("words", nargs="*")
        files = FilesCompleter()
        words.completer = files if typed[first + 1 :] else _or(_programs, files)
    elif named is not None:
        first, parser = named, _asking(typed[named])
    else:
        parser = _asking(HOME)
        parser.add_argument("--version", action="store_true")
        parser.add_argument("--record", action="store_true")
        command: Any = parser.add_argument("command", nargs="?")
        command.completer = ChoicesCompleter(COMMANDS)
    os.environ[_ASKED] = str(first + 1)
    autocomplete(parser, always_complete_options=False)


def _asking(command: str) -> argparse.ArgumentParser:
    """The parser of a command, its arguments with what completes them."""
    parser = parser_of(command)
    argument: Any
    for argument in parser.arguments:
        if argument.choices is None and argument.nargs != 0:
            argument.completer = _completer(command, argument)
    return parser


def _completer(command: str, argument: argparse.Action) -> Callable[..., Iterable[str]]:
    named = argument.metavar if isinstance(argument.metavar, str) else ""
    if command == "study" and argument.dest in ("study", "show"):
        from gpuwatch.studies import presets

        return _or(presets, FilesCompleter("toml"))
    if argument.dest == "workload":
        return ChoicesCompleter({**names.known(), names.TORCHVISION: "a model of torchvision"})
    if argument.dest == "env":
        return _environments
    if argument.dest in _WORDS:
        return ChoicesCompleter(dict.fromkeys(_WORDS[argument.dest], ""))
    if re.search("SESSION|STUDY", named):
        return _or(session_names, FilesCompleter("gpuwatch"))
    return DirectoriesCompleter() if named == "DIR" else FilesCompleter()


def _or(known: Callable[[], Iterable[str]], files: FilesCompleter) -> Callable[..., Iterable[str]]:
    """What ``known`` names, and files; behind a slash files alone."""

    def complete(prefix: str, **_: Any) -> list[str]:
        return [*(() if "/" in prefix else known()), *files(prefix=prefix)]

    return complete


def _environments(prefix: str, **_: Any) -> list[str]:
    """The kinds of environment, and a file as the image."""
    from gpuwatch.runners import kinds

    kind, given, image = prefix.partition("=")
    if given:
        return [f"{kind}={file}" for file in FilesCompleter()(prefix=image)]
    return [*kinds(), *(f"{each}=" for each in kinds() if each != "bare")]


def _programs() -> list[str]:
    return [file.name for path in os.get_exec_path() for file in Path(path).glob("*")]
