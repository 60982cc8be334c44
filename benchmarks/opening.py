"""How fast the screen opens a very long session, and how fast it moves in it.

    python -m benchmarks.opening [--folder DIR] [--repeat 5] [--ticks N]

Writes two sessions through the program's own store (kept in DIR, 1.2 GB, and used again): a million
ticks of one GPU, and 24 hours at 10 Hz of eight GPUs with nine metrics each; both with
five step lines a second of 40 steps, events and 200,000 log lines. Medians over fresh
processes:

- open: from the file to the first snapshot of the whole history, after the imports; and until the
  oldest step lines are in it too, which are read in pieces behind it
- jump, step back, step on: the feed's answer to any moment, to a column back and a column on, with
  each length of the history; the slowest of 20 stands below the median
- memory: the peak of that process, which draws nothing
- command: from the start of ``gpuwatch replay`` in a terminal of 120x40 to its first full screen

Exit code 1 where a first snapshot takes 0.5 s or more, or an answer 100 ms or more.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.compiled import compile_gpuwatch
from gpuwatch.core.metrics import CATALOGUE, Method
from gpuwatch.session.schema import VERSION
from gpuwatch.session.writing import statements, store
from gpuwatch.session.writing.writer import OpenMinute
from gpuwatch.telemetry.base import Channel, Device
from tests.terminal import Pty, surroundings

NS = 1_000_000_000
OPEN_SECONDS = 0.5
ANSWER_SECONDS = 0.1
_GPU = (
    *("hw.gpu.utilization", "hw.gpu.memory.usage", "hw.gpu.memory.bandwidth", "hw.gpu.power"),
    *("hw.gpu.temperature", "hw.gpu.clock.sm", "hw.gpu.clock.memory"),
    *("hw.gpu.pcie.transmit", "hw.gpu.pcie.receive"),
)
_CPU = ("hw.cpu.utilization", "hw.memory.usage")
_TYPICAL = {"By": 3e10, "By/s": 1.4e12, "W": 600.0, "Cel": 60.0, "Hz": 1.98e9}
"""The size of a value, by its unit."""
_LOG_LINES = 200_000
_COLUMNS = 86
"""Of the history on a screen of 120 columns."""
_ANSWERS = 20
_ZOOMS = (None, 10, 60, 300)
_STEP_SECONDS = 0.2


@dataclass(frozen=True)
class Long:
    """A long session to write."""

    name: str
    gpus: int
    ticks: int
    interval: float = 0.1

    @property
    def seconds(self) -> float:
        return self.ticks * self.interval


def made(folder: Path, long: Long) -> Path:
    """The session in a folder: one that an earlier call wrote whole, of today's schema, or anew."""
    path = folder / f"gpuwatch-{long.name}-schema-{VERSION}.gpuwatch"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write(path, long)
    return path


def write(path: Path, long: Long) -> None:
    """Write it as the recorder would, with a finished run's result."""
    devices = [
        Device(f"gpu{n}", "gpu", "NVIDIA H100 80GB HBM3", f"GPU-{n:08d}", {})
        for n in range(long.gpus)
    ]
    devices.append(Device("cpu", "cpu", "AMD EPYC 9654", None, {"core.logical.count": 16}))
    devices.append(Device("workload", "workload", "long"))
    channels = [
        Channel(device.id, metric, Method.MEASURED, "benchmark", None)
        for device in devices
        for metric in {"gpu": _GPU, "cpu": _CPU}.get(device.kind, ("process.cpu.time",))
    ]
    described = [(c, CATALOGUE[c.metric].unit, CATALOGUE[c.metric].kind.value) for c in channels]
    end = int(long.seconds * NS)
    meta = {
        "session": {"id": "0123456789ab", "schema": VERSION},
        "clock": {"monotonic_ns": 0, "unix_ns": 1_760_000_000 * NS},
        "interval_seconds": long.interval,
        "workload": {"name": "long", "kind": "workload", "arguments": [], "parameters": {}},
        "environment": {"kind": "bare", "label": "bare"},
        "launch": {"t": 0, "command": ["python3"]},
        "startup": {"import_seconds": 1.0},
        "run": {"model": "MLP", "batch_size": 64, "dtype": "float32", "total_steps": 10_000_000},
        "count": {"flop_per_step": 1.5e12, "bytes_per_step": 7.7e9, "method": "benchmark"},
        "result": {"code": 0, "signal": None, "t": end},
        "closed": {"t": end},
    }
    new = path.with_name(f"{path.name}.part")
    new.unlink(missing_ok=True)
    out = store.SessionStore.create(new, described)
    out.write([statements.device_row(device, used=True) for device in devices])
    out.write([statements.meta(key, value) for key, value in meta.items()])
    out.write(_ticks(long, channels))
    out.write(_steps(long))
    out.write(_log(long))
    out.write(
        statements.event(int(n * 97 * NS), "epoch" if n % 9 else "throttle", f"event {n}")
        for n in range(1, int(long.seconds // 97))
    )
    out.close()
    new.rename(path)


def _ticks(long: Long, channels: list[Channel]) -> Iterator[statements.Row]:
    minute = OpenMinute(len(channels))
    described = [CATALOGUE[channel.metric] for channel in channels]
    scale = [(each.kind.value == "counter", _TYPICAL.get(each.unit, 1.0)) for each in described]
    for n in range(long.ticks):
        t = int(n * long.interval * NS)
        share = round(0.6 + 0.3 * math.sin(n / 4000), 3)
        values = [n * 0.17 if total else share * typical for total, typical in scale]
        yield from minute.add(n, t, values)
    yield from minute.close()


def _steps(long: Long) -> Iterator[statements.Row]:
    noise = random.Random(1)
    # A line's times are a stretch of these: making each would take longer than all the rest.
    times = array("d", [0.005 * math.exp(noise.gauss(0, 0.02)) for _ in range(40_000)])
    loss = array("d", [0.3]).tobytes()
    sql = (
        "INSERT INTO step (t, step, count, warmup, samples, seconds, loss) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)"
    )
    for n in range(1, int(long.seconds / _STEP_SECONDS)):
        t = int(n * _STEP_SECONDS * NS)
        at = noise.randrange(len(times) - 40)
        seconds = times[at : at + 40]
        yield sql, (t, 40 * n, 40, int(n == 1), 40 * 64.0, seconds.tobytes(), loss)


def _log(long: Long) -> Iterator[statements.Row]:
    for n in range(_LOG_LINES):
        t = int(n / _LOG_LINES * long.seconds * NS)
        stream = "stderr" if n % 50 == 0 else "stdout"
        text = f"epoch {n // 1000} batch {n % 1000} loss {1 / (1 + n / 500):.6f}"
        yield "INSERT INTO log VALUES (?, ?, ?, ?)", (n, t, stream, text)


def measure(path: Path) -> dict[str, float]:
    """In a fresh process: seconds of opening and of answers, and MiB at the end."""
    from gpuwatch.session.reading.reader import SessionReader
    from gpuwatch.tui.feed.collector import Collector, PastView
    from gpuwatch.tui.feed.snapshot import View

    clock, found = time.perf_counter, {}
    begin = clock()
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        collector.snapshot(View(seconds=None, columns=_COLUMNS))
        found["open: first snapshot"] = clock() - begin
        while collector.backfill():
            pass
        collector.snapshot(View(seconds=None, columns=_COLUMNS))
        found["open: all step lines"] = clock() - begin
        past, end, random_ = PastView(collector), collector.end, random.Random(1)

        def answer(at: int, seconds: int | None) -> float:
            asked = clock()
            shown = past.at(at, seconds)
            shown.backfill()
            shown.snapshot(View(at=at, seconds=seconds, columns=_COLUMNS))
            return clock() - asked

        for seconds in _ZOOMS:
            name = f"{seconds} s" if seconds else "all"
            jumps = [answer(random_.randrange(end), seconds) for _ in range(_ANSWERS)]
            column = int((seconds or end / NS) * NS / _COLUMNS)
            start = end // 2
            back = [answer(start - n * column, seconds) for n in range(_ANSWERS)]
            on = [answer(start + n * column, seconds) for n in range(_ANSWERS)]
            for what, times in (("jump", jumps), ("step back", back), ("step on", on)):
                found[f"{what}, history {name}: median"] = statistics.median(times)
                found[f"{what}, history {name}: slowest"] = max(times)
    found["memory"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return found


def command_seconds(path: Path) -> float:
    """From the start of ``gpuwatch replay`` to its first full screen in a terminal of 120x40."""
    begin = time.perf_counter()
    command = [sys.executable, "-m", "gpuwatch", "replay", str(path)]
    terminal = Pty(command, (120, 40), surroundings(TERM="xterm-256color"))
    try:
        terminal.wait("history: all")
        return time.perf_counter() - begin
    finally:
        terminal.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--ticks", type=int, help="fewer, to try it out")
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    compile_gpuwatch()
    if arguments.measure:
        print(json.dumps(measure(arguments.measure)))
        return 0
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {platform.machine()}")
    slow = False
    for long in (Long("million", 1, 1_000_000), Long("day", 8, 864_000)):
        ticks = arguments.ticks or long.ticks
        name = f"opening-{long.name}-{ticks}"
        path = made(arguments.folder, replace(long, name=name, ticks=ticks))
        print(f"\n{ticks:,} ticks, {long.gpus} GPUs, {path.stat().st_size / 2**20:,.0f} MiB")
        slow |= _tell(path, arguments.repeat)
    return int(slow)


def _tell(path: Path, repeat: int) -> bool:
    """Print the medians of fresh processes; returns whether something took too long."""
    again = [sys.executable, "-m", "benchmarks.opening", "--measure", str(path)]
    runs = [json.loads(subprocess.check_output(again)) for _ in range(repeat)]
    slow = False
    for name in runs[0]:
        value = statistics.median(run[name] for run in runs)
        if name == "memory":
            print(f"  {name:38} {value:7.1f} MiB")
            continue
        print(f"  {name:38} {value * 1e3:7.1f} ms")
        most = OPEN_SECONDS if name == "open: first snapshot" else ANSWER_SECONDS
        slow |= value > most and name != "open: all step lines"
    took = statistics.median(command_seconds(path) for _ in range(repeat))
    print(f"  {'command to its first full screen':38} {took * 1e3:7.1f} ms")
    return slow


if __name__ == "__main__":
    sys.exit(main())
