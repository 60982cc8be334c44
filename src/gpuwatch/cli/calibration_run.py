"""The devices that `gpuwatch calibrate` measures, and one measurement, in its own process."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import field
from datetime import datetime, timezone
from pathlib import Path

from gpuwatch.core import ceilings, units
from gpuwatch.core.errors import GpuwatchError, NotAvailable, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.recorder.allocation import resolve
from gpuwatch.runners.interpreter import Interpreter, activation, choose
from gpuwatch.telemetry.base import Device
from gpuwatch.telemetry.nvml.source import NvmlSource, Unavailable, open_nvml
from gpuwatch.telemetry.nvml.visible_devices import VARIABLE
from gpuwatch.workloads import archive
from gpuwatch.workloads.lines import PREFIX
from gpuwatch.workloads.system_load import BUSY

_LOW = "the ceiling may be too low"
_HURRY = f"measured in a hurry: {_LOW}"


@dataclass(frozen=True)
class Target:
    """A device to be measured."""

    device: Device
    warnings: tuple[str, ...] = ()
    """Other activity on the device that lowers the figures."""


def targets(gpus: Sequence[str] | None, device: str | None) -> list[Target]:
    """The requested GPUs, or all; the CPU if requested or if there is no GPU.

    Raises:
        NotAvailable: the requested GPUs are not there.
    """
    cpu = [Target(Device("cpu", "cpu", "CPU"))]
    if device == "cpu" or gpus == ():
        return cpu
    given = resolve(gpus, os.environ)
    if given.gpus_chosen and not given.gpus:
        if device is None:
            return cpu
        raise NotAvailable(f"{VARIABLE} hides every GPU", f"unset {VARIABLE}")
    opened = open_nvml(given.gpus if given.gpus_chosen else None, interval_s=None)
    if isinstance(opened, Unavailable):
        if gpus is None and device is None:
            return cpu
        raise NotAvailable(f"no NVIDIA GPU is seen: {opened.reason}", opened.hint)
    with closing(opened):
        busy = _busy_gpus(opened)
        return [Target(gpu, busy[gpu.id]) for gpu in opened.devices]


def measure(
    target: Target, python: str | None, *, quick: bool, say: Callable[[str], None]
) -> dict[str, JSON]:
    """Measure one device in its own process; returns the document, not yet stored.

    Raises:
        UsageError, NotAvailable: no such interpreter, or its torch cannot use the device.
        GpuwatchError: the measurement failed.
    """
    device, interpreter = target.device, choose(python, os.environ)
    _check(interpreter)
    began = datetime.now(timezone.utc)
    progress = _Progress((*target.warnings, *([_HURRY] if quick else [])))
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as folder:
        pyz = Path(folder) / "workloads.pyz"
        archive.build(pyz)
        command = [interpreter.path, str(pyz), "--calibrate"]
        command += ["--device", "cpu" if device.kind == "cpu" else "cuda"]
        variables = {**os.environ, **activation(interpreter.path, os.environ)}
        if device.uuid:
            variables["CUDA_VISIBLE_DEVICES"] = device.uuid
        what = "the CPU" if device.kind == "cpu" else device.name
        say(f"measuring {what} with {interpreter.path} ({interpreter.origin})")
        command += ["--quick"] if quick else ["--patient"] if target.warnings else []
        _run(command, variables, folder, progress, say)
    return {
        "schema": ceilings.SCHEMA,
        "device": {
            "kind": device.kind,
            "uuid": device.uuid,
            "name": device.name if device.kind == "gpu" else progress.device.get("device_name"),
        },
        "host": socket.gethostname(),
        "driver": device.attributes.get("driver.version"),
        "torch": mapping(progress.device.get("versions")).get("torch"),
        "threads": progress.device.get("threads") if device.kind == "cpu" else None,
        "when": began.isoformat(timespec="seconds"),
        "seconds": progress.seconds,
        "ceilings": progress.ceilings,
    }


@dataclass
class _Progress:
    """What the measuring process has reported so far."""

    warnings: tuple[str, ...]
    """Warnings that apply to every ceiling."""
    device: Mapping[str, JSON] = field(default_factory=dict)
    ceilings: dict[str, JSON] = field(default_factory=dict)
    seconds: float | None = None
    error: Mapping[str, JSON] | None = None


def _check(interpreter: Interpreter) -> None:
    if "python" in interpreter.missing:
        raise NotAvailable(
            f"{interpreter.path} is not a working Python 3.10 or later",
            "choose another with --python PATH",
        )
    if "torch" in interpreter.missing:
        raise NotAvailable(
            f"{interpreter.path} ({interpreter.origin}) lacks torch",
            f"{interpreter.path} -m pip install torch, or choose another with --python PATH",
        )


def _run(
    command: Sequence[str],
    variables: Mapping[str, str],
    folder: str,
    progress: _Progress,
    say: Callable[[str], None],
) -> None:
    """Run the process to its end; its report goes into ``progress``."""
    with open(Path(folder) / "stderr", "w+b") as errors:
        process = subprocess.Popen(
            command,
            env=variables,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            errors="replace",
        )
        try:
            assert process.stdout is not None
            for line in process.stdout:
                if line.startswith(PREFIX):
                    _take(line[len(PREFIX) :], progress, say)
            code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        errors.seek(0)
        output = errors.read().decode("utf-8", "replace").strip().splitlines()
    if progress.error is not None:
        kinds = {"usage": UsageError, "environment": NotAvailable}
        kind = kinds.get(str(progress.error.get("kind")), GpuwatchError)
        raise kind(
            str(progress.error.get("message")), str(progress.error.get("hint") or "") or None
        )
    if code or progress.seconds is None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = f": {output[-1]}" if output else ""
        raise GpuwatchError(f"the measurement failed with {how}{last}", "see `gpuwatch doctor`")


def _take(line: str, progress: _Progress, say: Callable[[str], None]) -> None:
    with suppress(ValueError):
        body = mapping(json.loads(line))
        event = body.get("event")
        if event == "calibration":
            progress.device = body
        elif event == "ceiling":
            keys = ("value", "unit", "how", "spread", "reason")
            entry: dict[str, JSON] = {key: body.get(key) for key in keys}
            entry["when"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
            # By other programs or a hypervisor, of the time of all processors.
            others = number(body.get("others")) or 0.0
            busy = f"other programs took {units.percent(others)} of the processors' time: {_LOW}"
            entry["warnings"] = [*progress.warnings, *([busy] if others > BUSY else [])]
            name = str(body.get("name"))
            again = name in progress.ceilings
            progress.ceilings[name] = entry
            value = number(body.get("value"))
            reading = units.quantity(value, str(body.get("unit"))) if value else body.get("reason")
            say(f"  {name}: {reading}{', measured again' if again else ''}")
        elif event == "calibrated":
            progress.seconds = number(body.get("seconds"))
        elif event == "error":
            progress.error = mapping(body)


def _busy_gpus(nvml: NvmlSource) -> dict[str, tuple[str, ...]]:
    """Device id -> warnings about other work on the GPU just before the measurement."""
    values = {
        channel.device: value
        for channel, value in zip(nvml.channels, nvml.sample(), strict=True)
        if channel.metric == "hw.gpu.utilization"
    }
    warnings: dict[str, tuple[str, ...]] = {}
    processes = nvml.processes()
    for gpu in nvml.devices:
        reasons = []
        holders = [process for process in processes.get(gpu.id) or () if process.kind == "compute"]
        if holders:
            reasons.append(f"{_processes([process.pid for process in holders])} {_named(gpu)}")
        if (value := values.get(gpu.id)) is not None and value > BUSY:
            reasons.append(f"{_named(gpu)} was {units.percent(value)} busy before")
        warnings[gpu.id] = tuple(f"{reason}: {_LOW}" for reason in reasons)
    return warnings


def _processes(pids: Sequence[int]) -> str:
    if len(pids) == 1:
        return f"process {pids[0]} holds"
    more = ", ..." if len(pids) > 5 else ""
    return f"{len(pids)} processes ({', '.join(map(str, pids[:5]))}{more}) hold"


def _named(gpu: Device) -> str:
    return f"{gpu.id} ({gpu.name})"
