"""Stands in for gpuwatch's commands, so that screens act on something that answers at once.

``FAKE_FOLDER`` holds what it says (``sessions.json``, ``record.txt``, ``record.err``,
``doctor.json``, ``plan.json``), what waits (``held.txt``), and where it notes what it was asked
(``asked.txt``), where it started a run (``folder.txt``) and what of that waited and has ended
(``done.txt``).
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

FOLDER = Path(os.environ["FAKE_FOLDER"])


def main(arguments: list[str]) -> int:
    with (FOLDER / "asked.txt").open("a") as asked:
        asked.write("\x1f".join(arguments) + "\n")
    if held(arguments):
        wait(arguments)
    if arguments[0] == "doctor" or "--plan" in arguments:
        print((FOLDER / ("doctor.json" if arguments[0] == "doctor" else "plan.json")).read_text())
        return 0
    if arguments[0] == "signal":
        from gpuwatch.cli import main as gpuwatch

        return gpuwatch(arguments)
    if arguments[0] == "sessions":
        print((FOLDER / "sessions.json").read_text())
        return 0
    if arguments[:2] == ["--record", "--detach"]:
        error = FOLDER / "record.err"
        if error.exists():
            print(error.read_text(), file=sys.stderr)
            return 2
        print((FOLDER / "record.txt").read_text())
        (FOLDER / "folder.txt").write_text(os.getcwd())
        return 0
    if arguments[0] == "--record":
        return record_machine(Path(arguments[arguments.index("--out") + 1]))
    return 0


def held(arguments: list[str]) -> bool:
    """Whether the test lets it wait."""
    file = FOLDER / "held.txt"
    if "--dry-run" in arguments or "--while-pid" in arguments or "--plan" in arguments:
        return False
    return file.exists() and arguments[0] == file.read_text()


def wait(arguments: list[str]) -> None:
    """Until the test lets it go on, or a minute."""
    deadline = time.monotonic() + 60
    while (FOLDER / "held.txt").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    print("it was held", file=sys.stderr)
    with (FOLDER / "done.txt").open("a") as done:
        done.write(" ".join(arguments) + "\n")


def record_machine(out: Path) -> int:
    """A machine session, until SIGTERM."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    from tests.tui.sessions import Script, write

    gpus = int(os.environ.get("FAKE_GPUS", "1"))
    write(out / "study" / "01-bare.gpuwatch", Script(kind="machine", gpus=gpus, seconds=10))
    signal.pause()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
