"""One run of one program: its start, then its steady state."""

from __future__ import annotations

import contextlib
import time
from dataclasses import dataclass

from benchmarks.recorder.surroundings import Place
from benchmarks.tui.programs import Program
from benchmarks.tui.terminal import Terminal
from benchmarks.tui.tree import cpu_seconds, memory_bytes

_PATIENCE_SECONDS = 20.0
_LOOK_SECONDS = 1.0
"""Between two looks at the memory."""


@dataclass(frozen=True)
class Measured:
    """Of the whole tree of processes, those that were started before the screen included."""

    first_text: float | None
    """Seconds until the first character that is no blank."""
    full: float | None
    """Seconds until all texts of the full screen were there."""
    start_cpu: float
    """Seconds of processor time until the steady state begins; of the screen's own tree."""
    cpu: float
    """Seconds of processor time per second, in the steady state."""
    bytes: float
    """To the terminal per second, in the steady state."""
    memory: int
    """Largest proportional set size, in bytes."""
    calls: float
    """Calls of the driver library that ask a device, per second, in the steady state."""


def measure(program: Program, place: Place, settle: float, seconds: float) -> Measured:
    """Run ``program`` once: ``settle`` seconds of start, then ``seconds`` that are measured.

    Raises:
        RuntimeError: it does not show its full screen.
    """
    with contextlib.ExitStack() as stack:
        started = program.start(place.folder, place.env)
        stack.callback(started.end)
        terminal = Terminal(started.command, place.env)
        stack.callback(terminal.close, program.key)
        full = terminal.wait_for(program.full, _PATIENCE_SECONDS)
        if full is None:
            said = terminal.text()[-800:]
            raise RuntimeError(f"{program.name} never showed {program.full}: {said}")
        roots = [terminal.pid, *started.beside]
        time.sleep(max(0.0, terminal.started + settle - time.monotonic()))
        start_cpu = cpu_seconds([terminal.pid])
        cpu, sent, begun = cpu_seconds(roots), terminal.sent, time.monotonic()
        calls = place.calls()
        memory = 0
        while (now := time.monotonic()) < begun + seconds:
            time.sleep(min(_LOOK_SECONDS, begun + seconds - now))
            memory = max(memory, memory_bytes(roots))
        took = time.monotonic() - begun
        return Measured(
            first_text=terminal.first_text(),
            full=full,
            start_cpu=start_cpu,
            cpu=(cpu_seconds(roots) - cpu) / took,
            bytes=(terminal.sent - sent) / took,
            memory=memory,
            calls=(place.calls() - calls) / took,
        )
