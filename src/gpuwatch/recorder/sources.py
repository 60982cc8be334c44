"""The telemetry of one recording: the machine's devices, and the workload's process tree."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence

from gpuwatch.errors import NotAvailable
from gpuwatch.models import JSON
from gpuwatch.recorder.intake import Intake
from gpuwatch.session.store import Row
from gpuwatch.telemetry.base import Channel, Device, Source
from gpuwatch.telemetry.cpu import CpuSource
from gpuwatch.telemetry.fingerprint import fingerprint_host, fingerprint_process
from gpuwatch.telemetry.nvml import GpuProcess, NvmlSource, Unavailable, open_nvml
from gpuwatch.telemetry.workload import WorkloadSource


class Sources:
    """All sources of a recording, in a fixed order."""

    def __init__(self, nvml: NvmlSource | Unavailable, *, workload: bool) -> None:
        self._nvml = nvml if isinstance(nvml, NvmlSource) else None
        self._no_gpu = nvml if isinstance(nvml, Unavailable) else None
        self._tree: WorkloadSource | None = None
        self._seen: dict[tuple[str, int], GpuProcess] = {}
        self._used_by_tree: set[str] = set()
        self.all: list[Source] = [CpuSource()]
        if self._nvml is not None:
            self.all.insert(0, self._nvml)
        if workload:
            gpu_processes = nvml if isinstance(nvml, Unavailable) else nvml.processes
            self._tree = WorkloadSource(gpu_processes)
            self.all.append(self._tree)

    @classmethod
    def open(cls, gpus: Sequence[str] | None, *, workload: bool) -> Sources:
        """Open what there is; ``gpus`` asks for some by index or UUID.

        Raises:
            NotAvailable: GPUs are asked for and are not there.
        """
        try:
            opened = open_nvml(gpus)
        except ValueError as error:
            raise NotAvailable(str(error), "see nvidia-smi -L") from None
        if isinstance(opened, Unavailable) and gpus is not None:
            raise NotAvailable(f"--gpus: {opened.reason}", opened.mend)
        return cls(opened, workload=workload)

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for source in self.all for device in source.devices)

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(channel for source in self.all for channel in source.channels)

    @property
    def uuids(self) -> tuple[str, ...]:
        """The UUIDs of the GPUs that are watched."""
        return tuple(device.uuid for device in self._gpus() if device.uuid)

    def host_facts(self) -> dict[str, JSON]:
        """The fingerprint of this machine; ``gpu.unavailable`` says why there is no GPU."""
        facts: dict[str, JSON] = dict(fingerprint_host(self._gpus()))
        facts["python.recorder"] = platform.python_version()
        if self._no_gpu is not None:
            facts["gpu.unavailable"] = f"no NVIDIA GPU is seen: {self._no_gpu.reason}"
        return facts

    def process_facts(self, pid: int) -> Mapping[str, JSON]:
        """What holds for the workload's own process: limits, affinity, seccomp."""
        return fingerprint_process(pid)

    def watch(self, roots: Sequence[int]) -> None:
        """The processes at the top of the workload's tree; before sampling begins."""
        if self._tree is not None:
            self._tree.set_roots(roots)

    def process_rows(self, t: int) -> list[Row]:
        """Processes that appeared on a GPU, changed their memory, or left."""
        if self._nvml is None:
            return []
        now: dict[tuple[str, int], GpuProcess] = {
            (device, process.pid): process
            for device, processes in self._nvml.processes().items()
            for process in processes or ()
        }
        if now == self._seen:
            return []
        owned = self._tree.pids if self._tree is not None else frozenset()
        self._used_by_tree |= {device for device, pid in now if pid in owned}
        rows = [
            _process_row(t, key, process, key[1] in owned, running=True)
            for key, process in now.items()
            if self._seen.get(key) != process
        ]
        rows += [
            _process_row(t, key, process, False, running=False)
            for key, process in self._seen.items()
            if key not in now
        ]
        self._seen = now
        return rows

    def used_rows(self, intake: Intake) -> list[Row]:
        """Which GPUs the run used: by its word, by its processes, else all that were watched."""
        told = set(intake.device_uuids)
        used = {device.id for device in self._gpus() if device.uuid in told} | self._used_by_tree
        if not used and intake.device_type != "cpu":
            used = {device.id for device in self._gpus()}
        return [("UPDATE device SET used = 1 WHERE id = ?", (device,)) for device in sorted(used)]

    def close(self) -> None:
        for source in self.all:
            source.close()

    def _gpus(self) -> tuple[Device, ...]:
        return self._nvml.devices if self._nvml is not None else ()


def _process_row(
    t: int, key: tuple[str, int], process: GpuProcess, owned: bool, *, running: bool
) -> Row:
    return (
        "INSERT INTO gpu_process (t, device, pid, name, owned, bytes, running) "
        "VALUES (?, ?, ?, ?, ?, ?, ?)",
        (t, key[0], key[1], _name(key[1]), int(owned), process.used, int(running)),
    )


def _name(pid: int) -> str | None:
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None
