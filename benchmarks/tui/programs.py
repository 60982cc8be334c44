"""The programs that are compared, and how each is started."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.recorder.programs import GPUWATCH, installed
from tests.tui.sessions import Script, write

SAVED_SESSIONS = 12
"""What the home screen lists."""
NAME = "H100"
"""Part of the name of the stand-in driver's GPUs: who shows it has read them."""


@dataclass(frozen=True)
class Started:
    """What a program needs beside its terminal."""

    command: tuple[str, ...]
    beside: tuple[int, ...] = ()
    """Processes that belong to it and were started before it: their cost counts."""
    end: Callable[[], None] = lambda: None


@dataclass(frozen=True)
class Program:
    """One row of the table."""

    name: str
    full: tuple[str, ...]
    """Texts that stand on the full screen, all of them: the time of the last one is taken."""
    start: Callable[[Path, Mapping[str, str]], Started]
    key: str | None = "q"
    """What leaves it."""


def programs(peers: Path) -> list[Program]:
    """Those that are installed; ``peers``: the ``bin`` of an environment with nvitop, gpustat."""
    found = [_HOME, _LIVE]
    for name, full, arguments in (
        ("nvitop", ("MiB / ", "%"), ("--interval", "1")),
        ("nvtop", (NAME, "MEM"), ("-d", "10")),
        ("gpustat", (NAME,), ("-i", "1")),
    ):
        if (path := installed(name, peers)) is not None:
            key = None if name == "gpustat" else "q"
            found.append(Program(name, full, _plain((path, *arguments)), key))
    empty = (sys.executable, str(Path(__file__).with_name("empty.py")))
    found.append(Program("empty Textual app", ("emptiest app",), _plain(empty)))
    return found


def _plain(command: tuple[str, ...]) -> Callable[[Path, Mapping[str, str]], Started]:
    return lambda folder, env: Started(command)


def fill(folder: Path) -> None:
    """Saved sessions for the home screen's list, in the default place under ``folder``."""
    studies = folder / ".local/share/gpuwatch/studies"
    for number in range(SAVED_SESSIONS):
        path = studies / f"20260101-0000{number:02}-mnist-cnn" / "01-bare.gpuwatch"
        write(
            path, Script(seconds=30, alive=False, meta={"result": {"code": 0, "t": 30_000_000_000}})
        )


def _home(folder: Path, env: Mapping[str, str]) -> Started:
    return Started((GPUWATCH, "--interval", "1"))


def _live(folder: Path, env: Mapping[str, str]) -> Started:
    """A recording of the machine, already a while under way, and a screen attached to it."""
    out = folder / "machine"
    command = (GPUWATCH, "--record", "--interval", "1", "--quiet", "--out", str(out))
    recorder = subprocess.Popen(command, env=dict(env), stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 20
    while not (found := list(out.glob("*/*.gpuwatch"))):
        if time.monotonic() > deadline:
            raise RuntimeError("the recorder did not begin")
        time.sleep(0.05)
    time.sleep(2)

    def end() -> None:
        recorder.terminate()
        recorder.wait()
        shutil.rmtree(out, ignore_errors=True)

    attach = (GPUWATCH, "attach", str(found[0]), "--interval", "1")
    return Started(attach, (recorder.pid,), end)


_HOME = Program("gpuwatch, home", (NAME, "GiB", "mnist-cnn"), _home)
_LIVE = Program("gpuwatch, live", (NAME, "GiB", "utilization"), _live)
