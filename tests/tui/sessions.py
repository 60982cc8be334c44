"""Session files for tests, written with the recorder's own store."""

from __future__ import annotations

import json
import math
import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpuwatch.core.metrics import CATALOGUE, Method
from gpuwatch.core.models import Environment, Workload
from gpuwatch.core.processes import boot_id, identify
from gpuwatch.session.study.plan import PLAN, Part, Plan, PlannedRun
from gpuwatch.session.study.plan_file import document
from gpuwatch.session.writing import statements, store
from gpuwatch.session.writing.writer import OpenMinute
from gpuwatch.telemetry.base import Channel, Device
from tests.analysis.sessions import H100

NS = 1_000_000_000
START_UNIX_NS = 1_760_000_000 * NS
GIB = 1024**3

GPU_METRICS = (
    "hw.gpu.utilization",
    "hw.gpu.memory.usage",
    "hw.gpu.memory.bandwidth",
    "hw.gpu.power",
    "hw.gpu.temperature",
    "hw.gpu.clock.sm",
    "hw.gpu.clock.memory",
    "hw.gpu.pcie.transmit",
    "hw.gpu.pcie.receive",
)
PIPE_METRICS = (
    "hw.gpu.dram.activity",
    "hw.gpu.sm.activity",
    "hw.gpu.sm.occupancy",
    "hw.gpu.tensor.activity",
    "hw.gpu.fp64.activity",
    "hw.gpu.fp32.activity",
    "hw.gpu.fp16.activity",
    "hw.gpu.nvlink.transmit",
    "hw.gpu.nvlink.receive",
)
THROTTLE_METRICS = ("hw.gpu.throttle.power", "hw.gpu.throttle.thermal")
CPU_METRICS = ("hw.cpu.utilization", "hw.cpu.frequency", "hw.cpu.power", "hw.memory.usage")
PROCESS_METRICS = ("process.cpu.time", "process.memory.usage")
STEP_SECONDS = 0.005


@dataclass
class Script:
    """The contents of a session."""

    gpus: int = 1
    seconds: float = 90.0
    interval: float = 0.5
    bandwidth_measured: bool = False
    pipes: bool = False
    """Whether there are channels of GPM: activities of the GPU's units."""
    known_card: bool = False
    """Whether the GPUs have the attributes of their peaks."""
    memory_busy: bool = False
    off_gpu: bool = False
    """Whether NVML lists no process of the run."""
    gpus_unknown: bool = False
    """Whether the run's GPUs are unknown."""
    throttled: bool = False
    power_unavailable: bool = False
    steps: bool = True
    count: bool = True
    kind: str = "workload"
    name: str = "mnist-cnn"
    environment: str = "bare"
    total_steps: int = 40_000
    log: list[tuple[str, str]] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    events: list[tuple[float, str, str]] = field(default_factory=list)
    alive: bool = True
    pace: float = 1.0
    """Factor of the step time."""
    phases: dict[str, float] = field(default_factory=dict)
    """Shares of the phases in a step."""
    start: float = 0.0
    """Seconds after ``START_UNIX_NS``."""
    ranks: list[statements.Row] = field(default_factory=list)
    """Rows of the ranks, as ``tests.rank_steps.written`` makes them."""
    sampled: dict[tuple[str, str], float] = field(default_factory=dict)
    """Values by device and metric, in place of the usual ones."""


def write(path: Path, script: Script) -> Path:
    """Make the session file and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    devices, channels = _devices(script)
    described = [(c, CATALOGUE[c.metric].unit, CATALOGUE[c.metric].kind.value) for c in channels]
    on_cpu = (script.meta or {}).get("run", {}).get("device") == "cpu"
    used = ("cpu", "workload") if on_cpu else ("gpu0", "gpu1", "cpu", "workload")
    rows = [
        statements.device_row(
            d, used=None if script.gpus_unknown and d.kind == "gpu" else d.id in used
        )
        for d in devices
    ]
    rows += [statements.meta(key, value) for key, value in _meta(path, script).items()]
    rows += _ticks(script, channels)
    if script.steps and script.kind != "machine":
        rows += _steps(script)
    for n, (stream, text) in enumerate(script.log):
        t = int(n / max(1, len(script.log)) * script.seconds * NS)
        rows.append(("INSERT INTO log VALUES (?, ?, ?, ?)", (n, t, stream, text)))
    rows += script.ranks
    rows += [statements.event(int(t * NS), kind, text) for t, kind, text in script.events]
    store.SessionStore.create(path, described, rows).close()
    return path


def _devices(script: Script) -> tuple[list[Device], list[Channel]]:
    devices = [
        Device(
            f"gpu{index}",
            "gpu",
            "NVIDIA H100 80GB HBM3",
            f"GPU-{index:08d}",
            {"memory.total": 80 * GIB, "power.limit": 700.0, **(H100 if script.known_card else {})},
        )
        for index in range(script.gpus)
    ]
    devices.append(
        Device(
            "cpu",
            "cpu",
            "AMD EPYC 9654",
            None,
            {"core.logical.count": 16, "memory.total": 128 * GIB},
        )
    )
    channels = []
    for device in devices:
        metrics = _gpu_metrics(script) if device.kind == "gpu" else CPU_METRICS
        channels += [_channel(script, device.id, metric) for metric in metrics]
    if script.kind != "machine":
        devices.append(Device("workload", "workload", script.name))
        channels += [_channel(script, "workload", metric) for metric in PROCESS_METRICS]
        if script.off_gpu:
            channels.append(_channel(script, "workload", "process.gpu.memory.usage"))
    return devices, channels


def _gpu_metrics(script: Script) -> tuple[str, ...]:
    return (
        *GPU_METRICS,
        *(PIPE_METRICS if script.pipes else ()),
        *(("hw.gpu.memory.busy",) if script.memory_busy else ()),
        *(THROTTLE_METRICS if script.throttled else ()),
    )


def _channel(script: Script, device: str, metric: str) -> Channel:
    reason = None
    if metric == "hw.gpu.memory.bandwidth" and not script.bandwidth_measured:
        reason = "the driver gives no bandwidth counter for this GPU"
    if metric == "hw.gpu.power" and script.power_unavailable:
        reason = "not supported by this board"
    if metric == "hw.cpu.power":
        reason = "RAPL can be read by root only"
    method = Method.MEASURED if reason is None else Method.UNAVAILABLE
    return Channel(device, metric, method, "test", reason)


def _meta(path: Path, script: Script) -> dict[str, Any]:
    me = identify(os.getpid())
    assert me is not None
    recorder = {"host": me.host, "boot_id": boot_id(), "pid": me.pid, "start_time": me.start_time}
    if not script.alive:
        recorder["start_time"] = 1
    meta: dict[str, Any] = {
        "session": {"id": path.stem, "schema": 1, "created_unix_ns": START_UNIX_NS},
        "clock": {
            "monotonic_ns": 0,
            "unix_ns": START_UNIX_NS + int(script.start * NS),
            "boot_id": boot_id(),
        },
        "interval_seconds": script.interval,
        "workload": {"name": script.name, "kind": script.kind, "arguments": [], "parameters": {}},
        "environment": {"kind": script.environment, "label": script.environment},
        "recorder": recorder,
    }
    if script.kind == "machine":
        meta["workload"] = {"name": "machine", "kind": "machine", "arguments": []}
    else:
        meta["launch"] = {"t": 0, "command": ["python3", "workloads.pyz", script.name]}
    if script.steps and script.kind == "workload":
        meta["startup"] = {"import_seconds": 1.2, "model_seconds": 0.3, "first_step_seconds": 0.9}
        meta["run"] = {
            "model": "MnistCNN",
            "dtype": "float32",
            "batch_size": 64,
            "total_steps": script.total_steps,
            "warmup_steps": 10,
        }
        if script.count:
            meta["count"] = {"flop_per_step": 1.5e12, "bytes_per_step": 7.7e9, "method": "test"}
    return {**meta, **script.meta}


def _ticks(script: Script, channels: list[Channel]) -> list[statements.Row]:
    rows: list[statements.Row] = []
    minute = OpenMinute(len(channels))
    sql = statements.insert("tick", len(channels), "n", "t")
    for n in range(int(script.seconds / script.interval) + 1):
        t = int(n * script.interval * NS)
        values = [_value(script, channel, n * script.interval) for channel in channels]
        rows += [*minute.add(n, t, values), (sql, (n, t, *values))]
    if not script.alive:
        rows += minute.close()
    return rows


def _value(script: Script, channel: Channel, s: float) -> float | int | None:
    if channel.reason is not None:
        return None
    if (channel.device, channel.metric) in script.sampled:
        return script.sampled[channel.device, channel.metric]
    index = int(channel.device[3:]) if channel.device.startswith("gpu") else 0
    wave = math.sin(s / 7 + index)
    busy = s > 4 and (index < 2 or script.kind == "machine")
    samples: dict[str, float | int] = {
        "hw.gpu.utilization": round(0.82 + 0.12 * wave, 2) if busy else 0.0,
        "hw.gpu.memory.usage": int((6.3 + 30 * (index < 2)) * GIB) if busy else 512 * 1024**2,
        "hw.gpu.memory.bandwidth": 1.4e12 * (1 + 0.2 * wave) if busy else 0.0,
        "hw.gpu.memory.busy": 0.4 if busy else 0.0,
        "hw.gpu.dram.activity": 0.42 if busy else 0.0,
        "hw.gpu.sm.activity": 0.81 if busy else 0.0,
        "hw.gpu.sm.occupancy": 0.43 if busy else 0.0,
        "hw.gpu.tensor.activity": 0.61 if busy else 0.0,
        "hw.gpu.fp64.activity": 0.0,
        "hw.gpu.fp32.activity": 0.12 if busy else 0.0,
        "hw.gpu.fp16.activity": 0.03 if busy else 0.0,
        "hw.gpu.nvlink.transmit": 2.1e10 if busy else 0.0,
        "hw.gpu.nvlink.receive": 1.9e10 if busy else 0.0,
        "hw.gpu.throttle.power": 1 if busy else 0,
        "hw.gpu.throttle.thermal": 0,
        "hw.gpu.power": round(560 + 90 * wave, 1) if busy else 71.3,
        "hw.gpu.temperature": 61 + int(5 * wave),
        "hw.gpu.clock.sm": (1.41e9 if script.throttled else 1.98e9) if busy else 3.45e8,
        "hw.gpu.clock.memory": 2_619_000_000,
        "hw.gpu.pcie.transmit": 1.1e9 if busy else 0.0,
        "hw.gpu.pcie.receive": 3.4e9 if busy else 0.0,
        "hw.cpu.utilization": round(0.34 + 0.2 * wave, 3),
        "hw.cpu.frequency": 3.31e9,
        "hw.memory.usage": int(41.5 * GIB),
        "process.cpu.time": round(1.7 * s, 3),
        "process.memory.usage": int(2.4 * GIB),
        "process.gpu.memory.usage": 0,
    }
    return samples[channel.metric]


def _steps(script: Script) -> list[statements.Row]:
    """Ten lines a second of equal batches, from the fifth second on."""
    rows: list[statements.Row] = []
    seconds = STEP_SECONDS * script.pace
    count = max(1, round(0.1 / seconds))
    step = line = 0
    t = 5.0
    while t + count * seconds <= script.seconds and step + count <= script.total_steps:
        slow = 1 + 0.1 * math.sin(t / 11)
        times = [seconds * slow] * count
        t += sum(times)
        step += count
        line += 1
        warmup = line == 1
        phases = {name: share * sum(times) for name, share in script.phases.items()}
        loss = [2.3 / (1 + step / 500)] * count
        rows.append(
            (
                "INSERT INTO step (t, step, count, warmup, samples, seconds, loss, phases) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    int(t * NS),
                    step,
                    count,
                    int(warmup),
                    64.0 * count,
                    array("d", times).tobytes(),
                    array("d", loss).tobytes(),
                    json.dumps(phases),
                ),
            )
        )
    return rows


def finished(code: int = 0, seconds: float = 90.0, **more: Any) -> dict[str, Any]:
    """Meta data of a finished run."""
    return {
        "result": {"code": code, "signal": None, "t": int(seconds * NS), **more},
        "closed": {"t": int(seconds * NS)},
    }


def put(path: Path, *rows: statements.Row) -> Path:
    """Write further rows into a session."""
    recorded = store.SessionStore.reopen(path)
    recorded.write(rows)
    recorded.close()
    return path


def end(path: Path) -> None:
    """The run ends, while its recorder continues the study."""
    put(path, *(statements.meta(key, value) for key, value in finished().items()))


def plan(folder: Path, *runs: str, problems: dict[str, Any] | None = None) -> None:
    """The plan of a study with these session names, one environment each."""
    folder.mkdir(parents=True, exist_ok=True)
    case = Workload("mnist-cnn", "workload")
    environments = tuple(Environment("bare", name[3:]) for name in runs)
    listed = tuple(
        PlannedRun(index, f"{name}.gpuwatch", case, environment)
        for index, (name, environment) in enumerate(zip(runs, environments, strict=True), 1)
    )
    made = document(Plan("", (Part("", (case,), environments),), listed))
    (folder / PLAN).write_text(json.dumps({**made, "problems": problems or {}}))
