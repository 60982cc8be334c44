"""Give a session or a study a name to find it by; an empty one takes it away.

The name is a label: no file is renamed or changed. `gpuwatch show NAME`, `compare NAME ...` and all
others take it then.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import named


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION|STUDY")
    parser.add_argument("name", nargs="*", metavar="NAME")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    words = [*arguments.name, *command]
    if not words:
        raise UsageError("no name is given", "gpuwatch rename SESSION NAME")
    name = named(" ".join(words))
    folder, key = session_lookup.target(arguments.session)
    labels.change(folder, key, lambda label: replace(label, name=name))
    whose = session_lookup.called(folder, key)
    say(f"{whose} is called {name}" if name else f"{whose} has no name")
    return 0
