"""The programs that are compared, and where each leaves what it has read."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

GPUWATCH = str(Path(sys.executable).with_name("gpuwatch"))
RECORDER = "gpuwatch --record"
LOGGER = "logger in C"


@dataclass(frozen=True)
class Program:
    """One row of a table."""

    name: str
    command: Callable[[float, Path], Sequence[str]]
    """What to start, for an interval in seconds and a folder to write into."""
    fastest: float = 0.0
    """The shortest interval that it takes, in seconds."""
    key: str | None = None
    """What leaves it; ``None``: a signal."""


def programs(peers: Path | None, folder: Path) -> list[Program]:
    """Those that are installed, ``peers`` (a folder of programs) first; the logger is compiled."""
    found = [Program(RECORDER, _record), Program(LOGGER, _logger(folder))]
    for name, arguments, fastest, key in (
        ("nvitop", lambda interval: ("--interval", f"{interval:g}"), 0.25, "q"),
        ("nvtop", lambda interval: ("-d", f"{interval * 10:.0f}"), 0.1, "q"),
        ("gpustat", lambda interval: ("-i", f"{interval:g}"), 0.1, None),
    ):
        if (program := installed(name, peers)) is not None:
            found.append(Program(name, _peer(program, arguments), fastest, key))
    return found


def installed(name: str, peers: Path | None) -> str | None:
    """Where the program of this name is, in the folder ``peers`` first; says if it is nowhere."""
    path = os.pathsep.join([*([str(peers)] if peers else []), os.environ["PATH"]])
    program = shutil.which(name, path=path)
    if program is None:
        print(f"{name} is not installed: left out", file=sys.stderr)
    return program


def _record(interval: float, folder: Path) -> Sequence[str]:
    out = str(folder / "out")
    return (GPUWATCH, "--record", "--interval", f"{interval:g}", "--quiet", "--out", out)


def _peer(
    program: str, arguments: Callable[[float], Sequence[str]]
) -> Callable[[float, Path], Sequence[str]]:
    return lambda interval, folder: (program, *arguments(interval))


def _logger(folder: Path) -> Callable[[float, Path], Sequence[str]]:
    target = folder / "logger"
    source = Path(__file__).with_name("logger.c")
    subprocess.run(["cc", "-O2", "-o", target, source, "-ldl"], check=True)
    return lambda interval, out: (str(target), f"{interval * 1000:.0f}", str(out / "log.csv"))
