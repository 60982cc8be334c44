"""How long programs take to start."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.recorder.programs import Program
from benchmarks.recorder.surroundings import Place
from benchmarks.tui.terminal import Terminal

_PATIENCE_S = 20.0


def seconds_of(command: Sequence[str]) -> float:
    """From the start of a program to its end."""
    begun = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun


def first_question(program: Program, place: Place) -> float:
    """Seconds from the start of a program until it asks a GPU anything."""
    terminal = Terminal(program.command(1.0, place.folder), place.env)
    try:
        while not place.calls():
            if time.monotonic() - terminal.started > _PATIENCE_S:
                raise RuntimeError(f"{program.name} read no GPU: {terminal.text()[-300:]}")
            time.sleep(0.001)
        return time.monotonic() - terminal.started
    finally:
        terminal.close(program.key)


ARGPARSE = (sys.executable, "-c", "import argparse")
