"""Whether an interval is held: how far apart samples are, and how many are missing."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.recorder.programs import GPUWATCH
from benchmarks.recorder.surroundings import Place
from gpuwatch.session.reading.reader import SessionReader

_LEFT_OUT_S = 1.0
"""Of the start."""


@dataclass(frozen=True)
class Beat:
    """One recording; the first second and the last sample left out."""

    due: int
    missed: int
    apart: tuple[float, ...]
    """Of neighbouring samples, in intervals, sorted; 0.75 to 1.25 where none was late."""
    said: str | None
    """What the session says of missing samples."""

    def quantile(self, share: float) -> float:
        return self.apart[min(len(self.apart) - 1, int(share * len(self.apart)))]


def beat(place: Place, interval: float, seconds: float) -> Beat:
    """Record the machine for ``seconds`` and read back when its samples were taken."""
    out = place.folder / "out"
    command = [GPUWATCH, "--record", "--interval", f"{interval:g}", "--quiet", "--out", str(out)]
    command += ["--duration", f"{seconds + _LEFT_OUT_S:g}s"]
    subprocess.run(command, env=place.env, check=True, stdout=subprocess.DEVNULL)
    with SessionReader(next(out.glob("*/*.gpuwatch"))) as reader:
        ticks = [(t // round(interval * 1e9), t) for t in reader.samples(()).t[:-1]]
        said = [event.text for event in reader.events() if event.kind == "interval-missed"]
    ticks = [(n, t) for n, t in ticks if t >= _LEFT_OUT_S * 1e9]
    due = ticks[-1][0] - ticks[0][0] + 1
    apart = sorted((after - before) / 1e9 / interval for (_, before), (_, after) in pairwise(ticks))
    return Beat(due, due - len(ticks), tuple(apart), said[-1] if said else None)


def first_sample(place: Place) -> float:
    """Seconds from the start of a recorder to its first sample."""
    out = place.folder / f"out-{time.monotonic_ns()}"
    command = [GPUWATCH, "--record", "--quiet", "--duration", "0.1s", "--out", str(out)]
    begun = time.monotonic_ns()
    subprocess.run(command, env=place.env, check=True, stdout=subprocess.DEVNULL)
    with SessionReader(next(out.glob("*/*.gpuwatch"))) as reader:
        first = reader.samples(()).t[0]
        return float(reader.meta()["clock"]["monotonic_ns"] + first - begun) / 1e9
