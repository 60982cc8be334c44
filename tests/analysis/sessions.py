"""Sessions whose every figure can be worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuwatch.analysis.summary.summary import Summary, summarise
from gpuwatch.core.metrics import CATALOGUE, Method
from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.statements import device_row, event, fact, meta
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.session.writing.writer import SessionWriter
from gpuwatch.telemetry.base import Channel, Device

SECOND = 1_000_000_000
STEPS, BATCH, WARM = 20, 64, 5.0
"""Timed steps, samples of each, seconds before the first."""

H100 = {
    "compute.capability": "9.0",
    "core.count": 16896,
    "clock.sm.max": 1.98e9,
    "clock.memory.max": 2.619e9,
    "memory.bus.width": 5120,
}
"""An H100 SXM: 132 multiprocessors, 3352 GB/s."""

GPU = ("gpu0", "gpu", "NVIDIA H100 80GB HBM3", "GPU-1", H100)
OTHER_GPU = ("gpu1", "gpu", "NVIDIA H100 80GB HBM3", "GPU-2", H100)
CPU = ("cpu", "cpu", "AMD EPYC", None, {})
WORKLOAD = ("workload", "workload", "resnet50", None, {})

COUNT = {"flop_per_step": 2e12, "bytes_per_step": 4e10, "samples": BATCH, "method": "by shapes"}


def calibration(
    kind: str = "gpu", uuid: str | None = "GPU-1", **values: float | None
) -> dict[str, Any]:
    """A ceilings document with these values."""
    return {
        "schema": 1,
        "device": {"kind": kind, "uuid": uuid, "name": "NVIDIA H100 80GB HBM3"},
        "host": "h",
        "driver": "575.57",
        "torch": "2.15.0",
        "when": "2026-11-21T13:00:00+00:00",
        "ceilings": {
            name: {"value": value, "how": "median of 20", "spread": 0.01, "reason": None}
            for name, value in values.items()
        },
    }


def step_line(
    step: int, seconds: object = 0.5, end: float | None = None, **more: Any
) -> dict[str, Any]:
    """The line of a step that ends at ``end``, else as steps of half a second from second 5 on."""
    at = WARM + step * 0.5 if end is None else end
    told = {"step": step, "samples": BATCH, "monotonic_ns": round(at * SECOND), **more}
    return {"event": "step", **told, **({} if seconds is None else {"seconds": seconds})}


def record(
    path: Path,
    *,
    step_seconds: float = 0.5,
    devices: Sequence[tuple[str, str, str, str | None, Mapping[str, Any]]] = (GPU, CPU),
    gauges: Mapping[tuple[str, str], float | Sequence[float | None] | None] | None = None,
    counters: Mapping[tuple[str, str], float] | None = None,
    run: Mapping[str, Any] | None = None,
    count: Mapping[str, Any] | None = None,
    extra: Mapping[str, Any] | None = None,
    facts: Mapping[str, Any] | None = None,
    host: Mapping[str, Any] | None = None,
    process: Mapping[str, Any] | None = None,
    phases: Mapping[str, float] | None = None,
    steps: Sequence[Mapping[str, Any]] | None = None,
    events: Sequence[tuple[str, str]] = (),
    processes: Sequence[tuple[str, int, str, bool, int | None]] = (),
    interval: float = 0.5,
    label: str = "bare",
) -> Path:
    """Twenty steps of ``step_seconds`` from second 5 on, sampled every ``interval``.

    A gauge has one value, one for each tick in turn, or none as it is not supported; a counter its
    growth each second; ``extra`` are further keys of ``meta``, or others in place of those here.
    ``facts`` are of the workload's versions, ``host`` of the machine, ``process`` of its process.
    ``steps`` are step lines in place of those; ``processes`` hold memory of a GPU: its id, PID,
    name, whether it is the workload's, bytes.
    """
    gauges, counters = gauges or {}, counters or {}
    names = [*gauges, *counters]
    channels = [
        (
            _channel(device, name, known=gauges.get((device, name), 0) is not None),
            CATALOGUE[name].unit,
            CATALOGUE[name].kind.value,
        )
        for device, name in names
    ]
    writer = SessionWriter(SessionStore.create(path, channels), len(channels), base_ns=0)
    writer.start()
    end = WARM + STEPS * step_seconds
    default_run = {"device": "cuda", "dtype": "bfloat16"}
    lines: list[dict[str, Any]] = [
        {"event": "run", **default_run, **(run or {})},
        {"event": "count", **(COUNT if count is None else count)},
    ]
    lines += (
        [dict(each) for each in steps]
        if steps is not None
        else [
            step_line(step, step_seconds, WARM + step * step_seconds, phases=dict(phases or {}))
            for step in range(1, STEPS + 1)
        ]
    )
    text = "".join(f":::GPUWATCH {json.dumps(line)}\n" for line in lines)
    intake = Intake(0)
    writer.put(
        meta("session", {"id": label, "label": f"resnet50 ({label})"}),
        meta("workload", {"name": "resnet50", "kind": "workload"}),
        meta("environment", {"kind": "bare", "label": label}),
        *(
            device_row(Device(id_, kind, name, uuid, dict(attributes)), used=True)
            for id_, kind, name, uuid, attributes in devices
        ),
        *(fact("workload", key, value) for key, value in (facts or {}).items()),
        *(fact("host", key, value) for key, value in (host or {}).items()),
        *(fact("process", key, value) for key, value in (process or {}).items()),
        *intake.take([Output(int(end * SECOND), "stdout", text.encode())]),
        *intake.finish(int(end * SECOND)),
        *(
            (
                "INSERT INTO gpu_process (t, device, pid, name, owned, bytes, running) "
                "VALUES (?, ?, ?, ?, ?, ?, 1)",
                (6 * SECOND, device, pid, name, int(owned), size),
            )
            for device, pid, name, owned, size in processes
        ),
        *(event(6 * SECOND, kind, told, "gpu0") for kind, told in events),
        meta("result", {"code": 0, "signal": None, "t": int(end * SECOND)}),
        *(meta(key, value) for key, value in (extra or {}).items()),
    )
    for n in range(int((end + 2) / interval)):
        t = n * interval
        values: list[float | None] = [
            each[n % len(each)] if isinstance(each, Sequence) else each for each in gauges.values()
        ]
        values += [1000 + each * t for each in counters.values()]
        writer.tick(n, round(t * SECOND), values)
    assert writer.close()
    return path


def _channel(device: str, name: str, *, known: bool) -> Channel:
    if known:
        return Channel(device, name, Method.MEASURED, "test")
    return Channel(device, name, Method.UNAVAILABLE, "test", "not supported")


Make = Callable[..., Summary]


def summary(path: Path, **options: Any) -> Summary:
    """Record a session and describe it."""
    with SessionReader(record(path, **options)) as reader:
        return summarise(reader)
