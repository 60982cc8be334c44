"""``python -m tests.fuzz [FILES]``: hostile sessions by a fresh seed, which is printed."""

from __future__ import annotations

import argparse
import os
import secrets
import sys

from tests.fuzz.campaign import corpus, run, tasks


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("files", nargs="?", type=int, default=10_000)
    parser.add_argument("--seed", default=secrets.token_hex(4))
    parser.add_argument("--only", help="the number of a single file of that seed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    made = tasks(asked.seed, asked.files)
    if asked.only is not None:
        made = [each for each in made if each.name == f"{asked.seed}-{asked.only}"]
    tally = run([*corpus(), *made], asked.processes)
    for name, complaints in tally.complaints.items():
        print(f"\n{name}")
        for each in complaints[:5]:
            print(f"  {each}")
    print(tally.text())
    return 1 if tally.complaints else 0


if __name__ == "__main__":
    sys.exit(main())
