"""What a workload writes, hostile: through the recorder's own reading into a session."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.step_lines import PREFIX
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing import store
from tests.fuzz import folders, values

_STEP = {"event": "step", "step": 7, "count": 2, "seconds": [0.1, 0.2], "loss": [1.0, 0.9],
         "samples": 128, "phases": {"data": 0.01}, "partial": [7], "flop": 1e9, "bytes": 1e6,
         "total_steps": 100, "monotonic_ns": 5_000_000, "warmup": False}  # fmt: skip
_REPORTS: tuple[dict[str, Any], ...] = (
    {"event": "run", "model": "x", "batch_size": 64, "total_steps": 10, "device": "cuda:0",
     "device_uuid": ["GPU-1"]},
    {"event": "count", "flop_per_step": 1e9, "bytes_per_step": 1e6, "method": "counted"},
    {"event": "versions", "torch": "2.6", "python": "3.12"},
    {"event": "epoch", "epoch": 1, "loss": 0.3},
    {"event": "profile", "tool": "torch.profiler", "tables": {"cpu_op_sum": {
        "columns": ["Name", "Total Time (ns)"], "rows": [["a", 1]]}}},
    {"event": "error", "message": "out of memory", "hint": "smaller batch"},
    {"event": "end", "steps": 10, "real_seconds": 3.0},
    {"event": "counters", "tool": "ncu", "flop_per_step": 1.0, "kernels": []},
)  # fmt: skip
_MOST_PENDING = 2 << 20


def record(rng: random.Random, path: Path) -> str:
    """Write a session of hostile output; complains with ``AssertionError``."""
    out = store.SessionStore.create(path, [])
    known: set[int] = set()
    intake = Intake(0)
    t = 0
    try:
        for _ in range(rng.choice((3, 30))):
            data = _piece(rng, known)
            while data:
                cut = rng.choice((1, 100, 70_000, len(data)))
                t += rng.choice((0, 1_000, 2_000_000_000))
                stream = "stdout" if rng.random() < 0.9 else "stderr"
                out.write(intake.take([Output(t, stream, data[:cut])]))
                data = data[cut:]
            out.write(intake.standing(t))
            pending = sum(map(len, intake.state["pending"].values()))
            assert pending < _MOST_PENDING, f"{pending} bytes are kept of an unfinished line"
            json.dumps(intake.state)
        out.write(intake.finish(t))
    finally:
        out.close()
    with SessionReader(path) as reader:
        made = {row.step for row in reader.all_steps()} - known
    assert not made, f"steps that nobody reported: {sorted(made)[:5]}"
    return "a workload's output"


def _piece(rng: random.Random, known: set[int]) -> bytes:
    """Some output; ``known`` takes up the numbers of the steps that are in it."""
    kind = rng.randrange(8)
    if kind == 0:
        return rng.randbytes(rng.choice((1, 100, 5000)))
    if kind == 1:
        return rng.choice((b"x", b"\r", b"\n", PREFIX.encode(), b"\x1b[2K\r")) * rng.choice(
            (9, 90_000)
        )
    if kind == 2:
        return values.text(rng).encode("utf-8", "surrogatepass") + b"\n"
    if kind == 3:
        return b"\n" + PREFIX.encode() + b'{"event":' * rng.choice((1, 30_000)) + b"\n"
    body: dict[str, Any] = dict(rng.choice((_STEP, _STEP, *_REPORTS)))
    for _ in range(rng.choice((0, 1, 2))):
        body = values.spoilt(rng, body)
    line = f"\n{PREFIX}{json.dumps(body)}\n".encode("utf-8", "surrogatepass")
    if kind == 4:
        line = folders.scrambled(rng, line)
    _note(line, known)
    return line


def _note(lines: bytes, known: set[int]) -> None:
    """The numbers that stand in what reads as a step line, however it is to be understood."""
    for line in lines.decode("utf-8", "replace").splitlines():
        for text in line.split(PREFIX):
            try:
                step = json.loads(text)["step"]
                known.add(int(step))
            except (ValueError, LookupError, TypeError, OverflowError, RecursionError):
                continue
