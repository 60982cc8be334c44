"""Which devices `gpuwatch calibrate` measures, and one measurement: a process, a document."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from datetime import datetime, timezone
from pathlib import Path

from gpuwatch.core import ceilings, units
from gpuwatch.core.errors import GpuwatchError, NotAvailable, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number, with_hint
from gpuwatch.recorder.given import resolve
from gpuwatch.report.values import shown
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

    kind: str
    name: str
    uuid: str | None = None
    attributes: Mapping[str, JSON] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    """What is going on there that will make the figures too low."""


def targets(gpus: Sequence[str] | None, device: str | None) -> list[Target]:
    """The GPUs that are asked for, or all; the CPU where it is asked for or there is no GPU.

    Raises:
        NotAvailable: GPUs are asked for and are not there.
    """
    cpu = [Target("cpu", "CPU")]
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
    try:
        busy = _busy_gpus(opened)
        return [
            Target("gpu", gpu.name, gpu.uuid, gpu.attributes, busy.get(gpu.id, ()))
            for gpu in opened.devices
        ]
    finally:
        opened.close()


def measure(
    target: Target, python: str | None, *, quick: bool, say: Callable[[str], None]
) -> dict[str, JSON]:
    """Measure one device in a process of its own; the document, not yet stored.

    Raises:
        UsageError, NotAvailable: there is no such interpreter, or its torch cannot use the device.
        GpuwatchError: the measurement broke off.
    """
    interpreter = choose(python, os.environ)
    _check(interpreter)
    began = datetime.now(timezone.utc)
    told = _Told((*target.warnings, *([_HURRY] if quick else [])))
    with tempfile.TemporaryDirectory(prefix="gpuwatch-") as folder:
        pyz = Path(folder) / "workloads.pyz"
        archive.build(pyz)
        command = [interpreter.path, str(pyz), "--calibrate"]
        command += ["--device", "cpu" if target.kind == "cpu" else "cuda"]
        variables = {**os.environ, **activation(interpreter.path, os.environ)}
        if target.uuid:
            variables["CUDA_VISIBLE_DEVICES"] = target.uuid
        what = "the CPU" if target.kind == "cpu" else target.name
        say(f"measuring {what} with {interpreter.path} ({interpreter.origin})")
        command += ["--quick"] if quick else ["--patient"] if target.warnings else []
        _run(command, variables, folder, told, say)
    return {
        "schema": ceilings.SCHEMA,
        "device": {
            "kind": target.kind,
            "uuid": target.uuid,
            "name": target.name if target.kind == "gpu" else told.device.get("device_name"),
        },
        "host": socket.gethostname(),
        "driver": target.attributes.get("driver.version"),
        "torch": mapping(told.device.get("versions")).get("torch"),
        "threads": told.device.get("threads") if target.kind == "cpu" else None,
        "when": began.isoformat(timespec="seconds"),
        "seconds": told.seconds,
        "ceilings": told.ceilings,
    }


@dataclass
class _Told:
    """What the measuring process has told so far."""

    warnings: tuple[str, ...]
    """Of every ceiling."""
    device: Mapping[str, JSON] = field(default_factory=dict)
    ceilings: dict[str, JSON] = field(default_factory=dict)
    seconds: float | None = None
    error: Mapping[str, JSON] | None = None


def _check(interpreter: Interpreter) -> None:
    if "python" in interpreter.missing:
        raise NotAvailable(
            f"{interpreter.path} is no Python 3.10 or later that runs",
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
    told: _Told,
    say: Callable[[str], None],
) -> None:
    """Run the process to its end and keep what it tells."""
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
                    _take(line[len(PREFIX) :], told, say)
            code = process.wait()
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        errors.seek(0)
        said = errors.read().decode("utf-8", "replace").strip().splitlines()
    if told.error is not None:
        kinds = {"usage": UsageError, "environment": NotAvailable}
        kind = kinds.get(str(told.error.get("kind")), GpuwatchError)
        raise kind(str(told.error.get("message")), str(told.error.get("hint") or "") or None)
    if code or told.seconds is None:
        how = f"signal {-code}" if code < 0 else f"exit code {code}"
        last = f": {said[-1]}" if said else ""
        raise GpuwatchError(f"the measurement broke off with {how}{last}", "see `gpuwatch doctor`")


def _take(line: str, told: _Told, say: Callable[[str], None]) -> None:
    with suppress(ValueError):
        body = mapping(json.loads(line))
        event = body.get("event")
        if event == "calibration":
            told.device = body
        elif event == "ceiling":
            keys = ("value", "unit", "how", "spread", "reason")
            entry: dict[str, JSON] = {key: body.get(key) for key in keys}
            entry["when"] = datetime.now(timezone.utc).isoformat(timespec="seconds")
            entry["warnings"] = [*told.warnings, *_busy_cpu(number(body.get("others")))]
            name = str(body.get("name"))
            again = name in told.ceilings
            told.ceilings[name] = entry
            value = number(body.get("value"))
            told_value = shown(value, str(body.get("unit"))) if value else body.get("reason")
            say(f"  {name}: {told_value}{', measured again' if again else ''}")
        elif event == "calibrated":
            told.seconds = number(body.get("seconds"))
        elif event == "error":
            told.error = with_hint(body)


def _busy_gpus(nvml: NvmlSource) -> dict[str, tuple[str, ...]]:
    """By device id what others do on a GPU just before the measurement."""
    values = dict(zip(nvml.channels, nvml.sample(), strict=True))
    found: dict[str, tuple[str, ...]] = {}
    processes = nvml.processes()
    for gpu in nvml.devices:
        told = []
        holders = [each for each in processes.get(gpu.id) or () if each.kind == "compute"]
        if holders:
            told.append(f"{_processes([each.pid for each in holders])} {_named(gpu)}")
        for channel, value in values.items():
            of_gpu = (channel.device, channel.metric) == (gpu.id, "hw.gpu.utilization")
            if of_gpu and value is not None and value > BUSY:
                told.append(f"{_named(gpu)} was {units.percent(value)} busy before")
        found[gpu.id] = tuple(f"{each}: {_LOW}" for each in told)
    return found


def _processes(pids: Sequence[int]) -> str:
    if len(pids) == 1:
        return f"process {pids[0]} holds"
    more = ", ..." if len(pids) > 5 else ""
    return f"{len(pids)} processes ({', '.join(map(str, pids[:5]))}{more}) hold"


def _named(gpu: Device) -> str:
    return f"{gpu.id} ({gpu.name})"


def _busy_cpu(others: float | None) -> list[str]:
    """What other programs, and a hypervisor, took of the processors meanwhile."""
    if others is None or others <= BUSY:
        return []
    return [f"other programs took {units.percent(others)} of the processors' time: {_LOW}"]
