"""``python -m tests.fuzz [FILES]``: so many hostile sessions, and a fifth as many of each other
kind of file, by a fresh seed, which is printed."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from dataclasses import replace

from tests.fuzz.campaign import CORPUS, corpus, run, tasks
from tests.fuzz.uses import COMMANDS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("files", nargs="?", type=int, default=10_000)
    parser.add_argument("--seed", default=secrets.token_hex(4))
    parser.add_argument("--kind", choices=sorted(COMMANDS), help="one kind of file alone")
    parser.add_argument("--only", metavar="NAME", help="a single file of that seed")
    parser.add_argument("--keep", metavar="AS", help="that file into the corpus, by this name")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    fewer = dict.fromkeys(("folder", "study", "profile", "output"), asked.files // 5)
    made = [
        task
        for kind in COMMANDS
        if asked.kind in (kind, None)
        for task in tasks(asked.seed, fewer.get(kind, asked.files), kind)
    ]
    if asked.only is not None:
        keep = None if asked.keep is None else str(CORPUS / asked.keep)
        made = [replace(each, keep=keep) for each in made if each.name == asked.only]
    tally = run(made if asked.only else [*corpus(), *made], asked.processes)
    print(tally.text())
    return 1 if tally.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
