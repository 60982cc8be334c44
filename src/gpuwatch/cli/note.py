"""Write a note on a session or a study; an empty one takes it away.

Without TEXT the note is printed; - reads it from standard input.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from gpuwatch.cli import find
from gpuwatch.cli.record import say
from gpuwatch.session import labels


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION|STUDY")
    parser.add_argument("text", nargs="*", metavar="TEXT")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    words = [*arguments.text, *command]
    folder, key = find.target(arguments.session)
    if not words:
        note = labels.read(folder).get(key, labels.NONE).note
        if note:
            print(note)
        return 0
    text = sys.stdin.read(_MOST) if words == ["-"] else " ".join(words)
    note = labels.noted(text)
    labels.change(folder, key, lambda label: replace(label, note=note))
    say(f"{key or folder.name}: noted" if note else f"{key or folder.name}: no note")
    return 0


_MOST = 8 * labels.LONGEST_NOTE
"""Characters that are read of standard input: more than a note may have is refused."""
