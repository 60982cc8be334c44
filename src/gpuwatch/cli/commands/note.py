"""Write a note on a session or a study; an empty note removes it.

Without TEXT the note is printed; - reads it from standard input.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace

from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import NONE, clean_note


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION|STUDY")
    parser.add_argument("text", nargs="*", default=[], metavar="TEXT")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    words = [*arguments.text, *command]
    folder, key = session_lookup.target(arguments.session)
    if not words:
        note = labels.read(folder).get(key, NONE).note
        if note:
            print(note)
        return 0
    note = clean_note(sys.stdin.read() if words == ["-"] else " ".join(words))
    labels.change(folder, key, lambda label: replace(label, note=note))
    say(f"{session_lookup.called(folder, key)}: {'noted' if note else 'no note'}")
    return 0
