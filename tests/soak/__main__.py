"""``python -m tests.soak``: soak, print the tables, and fail where something was left behind."""

from __future__ import annotations

import argparse
import shutil
import signal
import sys
import tempfile
import uuid
from pathlib import Path

from tests.engines import available
from tests.engines.daemon import import_root, remove_image
from tests.engines.root import make_small
from tests.soak.ground import kinds
from tests.soak.soak import soak
from tests.soak.table import markdown, write


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--write", action="store_true", help="into docs/reliability.md")
    arguments = parser.parse_args()
    # Behind nohup or & a shell ignores it for all below, and a recorder would too.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    folder = Path(tempfile.mkdtemp(prefix="gpuwatch-soak-"))
    root, ground = folder / "root", folder / "ground"
    ground.mkdir()
    make_small(root)
    # Charliecloud mounts only onto folders that the image has.
    (root / (ground / "project").relative_to("/")).mkdir(parents=True)
    image = None
    try:
        if available.why_not("docker") is None:
            image = import_root(None, root, f"gpuwatch-soak-{uuid.uuid4().hex[:8]}")
        environments = kinds(image, root)
        _say(f"environments: {', '.join(environments)}")
        outcome = soak(
            ground,
            environments,
            arguments.minutes,
            arguments.seed,
            lambda text: print(text, file=sys.stderr, flush=True),
        )
    finally:
        if image is not None:
            remove_image(None, image)
    print(markdown(outcome))
    if arguments.write:
        write(outcome)
    faults = outcome.faults()
    for fault in faults:
        print(f"error: {fault}", file=sys.stderr)
    if faults:
        print(f"kept to look at: {folder}", file=sys.stderr)
    else:
        shutil.rmtree(folder)
    return bool(faults)


if __name__ == "__main__":
    sys.exit(main())
