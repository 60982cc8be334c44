"""What it costs to bring a session from another machine: bytes, and processor time at both ends.

    python -m benchmarks.relay [--seconds 40] [--mirrors 64]

Sessions of 1 and 8 GPUs are recorded with the stand-in driver (tests/fake_nvml), whose values
change once a second, at the default interval, of a program that prints 20 step lines and one log
line a second. A relay of each is read here as it comes. Then one process shows as many machines as
``--mirrors``: what the relay of every two seconds had told is played to it through local pipes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import platform
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, cast

from benchmarks.compiled import compile_gpuwatch
from benchmarks.tui.tree import cpu_seconds
from benchmarks.tui.weather import change_each_second
from gpuwatch.places.base import Place
from gpuwatch.places.frames import GREETING
from gpuwatch.places.machines import Machines, temporary_folder
from gpuwatch.session.study.plan import read
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.display_options import DisplayOptions
from gpuwatch.tui.home.fleet.screen import FleetScreen
from tests.fake_nvml import FakeDriver

_EVERY = 2.0
"""Seconds between two frames of the mirrors' relays."""
_SETTLE = 5.0
_SIZE = (160, 50)
"""Columns and rows of the screen."""
_PROGRAM = """
import json, time
step = 0
while True:
    step += 1
    print(":::GPUWATCH", json.dumps({"event": "step", "step": step, "seconds": 0.05}), flush=True)
    if step % 20 == 0:
        print("line", step, flush=True)
    time.sleep(0.05)
"""
_FEEDER = """
import sys, time
every, descriptors = float(sys.argv[1]), [int(word) for word in sys.argv[3:]]
lines = open(sys.argv[2], "rb").readlines()
begun = time.monotonic()
for n, line in enumerate(lines):
    for at, descriptor in enumerate(descriptors):
        due = begun + every * (n + at / len(descriptors))
        time.sleep(max(0.0, due - time.monotonic()))
        with open(descriptor, "wb", buffering=0, closefd=False) as pipe:
            pipe.write(line)
"""


@dataclass(frozen=True)
class Relayed:
    """What one relay told within some seconds."""

    gpus: int
    every: float
    bytes_a_second: float
    cpu: float
    """Share of one core."""
    lines: list[bytes]
    files: frozenset[str]
    """The names of the plan's sessions."""


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--mirrors", type=int, default=64)
    arguments = parser.parse_args()
    compile_gpuwatch()
    print(f"{platform.system()}, {os.cpu_count()} cores, Python {platform.python_version()}\n")
    print("| GPUs | relay looks every, s | bytes a second | relay, % of a core |")
    print("| --- | --- | --- | --- |")
    found: dict[tuple[int, float], Relayed] = {}
    for gpus in (1, 8):
        for relayed in _relayed(gpus, arguments.seconds):
            found[gpus, relayed.every] = relayed
            print(
                f"| {gpus} | {relayed.every:g} | {relayed.bytes_a_second:,.0f} "
                f"| {100 * relayed.cpu:.1f} |",
                flush=True,
            )
    print(f"\n| GPUs | machines on one screen, a frame each {_EVERY:g} s | % of a core |")
    print("| --- | --- | --- |")
    for gpus in (1, 8):
        cpu = _mirrored(found[gpus, _EVERY], arguments.mirrors)
        print(f"| {gpus} | {arguments.mirrors} | {100 * cpu:.1f} |", flush=True)
    return 0


def _relayed(gpus: int, seconds: float) -> list[Relayed]:
    """A recording, and two relays of it: one looks as often as it does by itself."""
    with tempfile.TemporaryDirectory(prefix="gpuwatch-bench-") as home:
        change_each_second(driver := FakeDriver(Path(home), gpus), gpus)
        program = (sys.executable, "-c", _PROGRAM)
        words = ("--record", "--quiet", "--out", f"{home}/out", "--", *program)
        recorder = subprocess.Popen(
            [sys.executable, "-m", "gpuwatch", *words], env={**driver.env, "HOME": home}
        )
        try:
            while not (sessions := list(Path(home, "out").glob("*/*.gpuwatch"))):
                time.sleep(0.1)
            time.sleep(_SETTLE)
            return _read(sessions[0].parent, gpus, seconds)
        finally:
            recorder.send_signal(signal.SIGINT)
            recorder.wait()


def _read(folder: Path, gpus: int, seconds: float) -> list[Relayed]:
    plan = read(folder)
    assert plan is not None
    relays = {}
    selector = selectors.DefaultSelector()
    for every in (0.5, _EVERY):
        words = ("--marker", "ab", "--every", str(every))
        relay = subprocess.Popen(
            [sys.executable, "-m", "gpuwatch", "relay", folder, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert relay.stdin is not None and relay.stdout is not None
        relay.stdin.write(b"{}\n")
        relay.stdin.flush()
        selector.register(relay.stdout, selectors.EVENT_READ, every)
        relays[every] = relay
    told: dict[float, bytes] = dict.fromkeys(relays, b"")
    before: dict[float, tuple[int, float]] = {}
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < _SETTLE + seconds:
        if now > _SETTLE and not before:
            before = {
                every: (len(told[every]), cpu_seconds([each.pid])) for every, each in relays.items()
            }
        for key, _ in selector.select(0.1):
            told[key.data] += os.read(key.fd, 1 << 20)
    found = [
        Relayed(
            gpus,
            every,
            (len(told[every]) - before[every][0]) / seconds,
            (cpu_seconds([relay.pid]) - before[every][1]) / seconds,
            told[every].splitlines(keepends=True)[1:],
            frozenset(run.file for run in plan.runs),
        )
        for every, relay in relays.items()
    ]
    for relay in relays.values():
        relay.kill()
        relay.communicate()
    return found


def _mirrored(relayed: Relayed, mirrors: int) -> float:
    """The share of one core that this process takes for a screen of so many machines."""
    with temporary_folder() as folder:
        lines = folder / "lines"
        lines.write_bytes(b"".join(line for line in relayed.lines if line.endswith(b"\n")))
        played = [Played() for _ in range(mirrors)]
        places = [(f"ssh=gpu{n}", cast(Place, place)) for n, place in enumerate(played)]
        with Machines(places, folder) as machines:
            while not all(place.asked for place in played):
                time.sleep(0.01)
            inputs = [place.target for place in played]
            feeder = subprocess.Popen(
                [sys.executable, "-c", _FEEDER, str(_EVERY), lines, *map(str, inputs)],
                pass_fds=inputs,
            )
            for target in inputs:
                os.close(target)
            return asyncio.run(_drawn(machines, feeder))


async def _drawn(machines: Machines, feeder: subprocess.Popen[bytes]) -> float:
    """The same, while ``feeder`` plays; all is drawn but not written to a terminal."""
    app = GpuwatchApp(lambda: FleetScreen(machines.now), DisplayOptions())
    async with app.run_test(size=_SIZE):
        # The first frame, with all that was there before, is no part of the steady state.
        await asyncio.sleep(2 * _EVERY)
        began, cpu = time.monotonic(), time.process_time()
        while feeder.poll() is None:
            await asyncio.sleep(0.2)
        return (time.process_time() - cpu) / (time.monotonic() - began)


class Played:
    """A place whose relay is a pipe that somebody plays lines into."""

    def __init__(self) -> None:
        source, self.target = os.pipe()
        self.stdin, self.stdout = open(os.devnull, "wb"), os.fdopen(source, "rb")  # noqa: SIM115
        self.asked = False

    def connect(self, *, person: bool) -> None:
        pass

    def preflight(self) -> list[object]:
        return []

    def watch(self, arguments: Sequence[str], errors: IO[bytes]) -> Played:
        os.write(self.target, f"{GREETING} {arguments[-1]}\n".encode())
        self.asked = True
        return self

    def kill(self) -> None:
        pass

    def wait(self, timeout: float | None = None) -> int:
        return 0


if __name__ == "__main__":
    sys.exit(main())
