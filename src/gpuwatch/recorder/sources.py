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
from gpuwatch.telemetry.nvml import GpuProcess, NvmlSource, open_nvml
from gpuwatch.telemetry.process_tree import ProcessTree, descendants


class Sources:
    """All sources of a recording, in a fixed order."""

    def __init__(
        self, nvml: NvmlSource | None, no_gpu: str | None, tree: ProcessTree | None
    ) -> None:
        self._nvml = nvml
        self._no_gpu = no_gpu
        self._tree = tree
        self._roots: Sequence[int] = ()
        self._seen: dict[tuple[str, int], GpuProcess] = {}
        self._used_by_tree: set[str] = set()
        self.all: list[Source] = [CpuSource()]
        if nvml is not None:
            self.all.insert(0, nvml)
        if tree is not None:
            self.all.append(tree)

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
        if not isinstance(opened, NvmlSource):
            if gpus is not None:
                raise NotAvailable(f"--gpus: {opened.reason}", opened.mend)
            reason = f"no NVIDIA GPU to be seen: {opened.reason}"
            return cls(None, reason, ProcessTree(()) if workload else None)
        return cls(opened, None, ProcessTree((), opened.processes) if workload else None)

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
        facts: dict[str, JSON] = dict(fingerprint_host(self._nvml))
        facts["python.recorder"] = platform.python_version()
        if self._no_gpu:
            facts["gpu.unavailable"] = self._no_gpu
        return facts

    def process_facts(self, pid: int) -> Mapping[str, JSON]:
        """What holds for the workload's own process: limits, affinity, seccomp."""
        return fingerprint_process(pid)

    def watch(self, roots: Sequence[int]) -> None:
        """The processes at the top of the workload's tree, from now on."""
        self._roots = roots
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
        owned = set(descendants(self._roots))
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
