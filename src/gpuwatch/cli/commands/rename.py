"""Give a session or a study a name; an empty name removes it.

The name is a label: no file is renamed. It is accepted wherever a session is: `gpuwatch show NAME`,
`gpuwatch compare NAME ...`.
"""

from __future__ import annotations

import argparse
from dataclasses import replace

from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import to_paste
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import clean_name


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION|STUDY")
    parser.add_argument("name", nargs="*", metavar="NAME")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    words = [*arguments.name, *command]
    if not words:
        raise UsageError("no name given", "gpuwatch rename SESSION NAME")
    name = clean_name(" ".join(words))
    folder, key = session_lookup.target(arguments.session)
    several = f"several share a tag: {to_paste('tag', arguments.session)} +TAG"
    session_lookup.refuse_taken(name, (folder, key), several)
    labels.change(folder, key, lambda label: replace(label, name=name))
    subject = session_lookup.called(folder, key)
    say(f"{subject} is called {name}" if name else f"{subject} has no name")
    return 0
