"""Tag a session or a study: `gpuwatch tag last +fast -old`.

+TAG or TAG adds, -TAG removes; without any the tags are printed, one per line. `tag:fast` stands
for all sessions with that tag: `gpuwatch compare tag:fast`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.session.study import labels
from gpuwatch.session.study.label import NONE, clean_tag, with_tags


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", metavar="SESSION|STUDY")
    parser.add_argument("tags", nargs="*", default=[], metavar="+TAG|-TAG")


_REMOVE = "\0-"
"""Marks a tag to remove, so that argparse does not take its dash for an option; a NUL cannot occur
in an argument."""


def words(given: Sequence[str]) -> list[str]:
    """The arguments for argparse, with the dashes of tags masked."""
    dashed = (text.startswith("-") and text not in ("-h", "--help") for text in given)
    return [f"\0{text}" if dash else text for text, dash in zip(given, dashed, strict=True)]


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    texts = [*arguments.tags, *words(command)]
    add = [clean_tag(text.removeprefix("+")) for text in texts if not text.startswith(_REMOVE)]
    remove = [clean_tag(text.removeprefix(_REMOVE)) for text in texts if text.startswith(_REMOVE)]
    if both := sorted(set(add) & set(remove)):
        raise UsageError(f"{both[0]} is both added and removed", "name it once")
    folder, key = session_lookup.target(arguments.session)
    if not texts:
        for tag in labels.read(folder).get(key, NONE).tags:
            print(tag)
        return 0
    changed = labels.change(folder, key, lambda label: with_tags(label, add, remove))
    say(f"{session_lookup.called(folder, key)}: {' '.join(changed.tags) or 'no tags'}")
    return 0
