"""The telemetry of one recording: the machine's devices, and the workload's process tree."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from gpuwatch import __version__
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, LaunchSpec, Problem
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.processes.watch import ProcessWatch
from gpuwatch.session.writing.statements import Row, device_row, device_used
from gpuwatch.telemetry.base import Channel, Device, Source
from gpuwatch.telemetry.host.cpu import CpuSource
from gpuwatch.telemetry.host.fingerprint import fingerprint_host, fingerprint_process
from gpuwatch.telemetry.nvml.errors import NO_LIBRARY
from gpuwatch.telemetry.nvml.source import NvmlSource, Unavailable, open_nvml
from gpuwatch.telemetry.nvml.start import gpu_uuids
from gpuwatch.telemetry.process.workload import WorkloadSource
from gpuwatch.telemetry.process.workload_pid import innermost

if TYPE_CHECKING:
    from gpuwatch.telemetry.dcgm.source import DcgmSource


_Opened = TypeVar("_Opened")

DCGM_HOST = "gpuwatch.dcgm.host"
"""The fact of a session that DCGM was read, and where."""


@dataclass(frozen=True)
class Dcgm:
    """Where to find DCGM's host engine, and how often to read it."""

    host: str
    """``HOST[:PORT]`` or ``unix://SOCKET``."""
    interval: float
    """Seconds between samples."""

    def check(self) -> None:
        """Raises ``NotAvailable`` where no host engine can be asked; quick."""
        from gpuwatch.telemetry.dcgm.source import check_dcgm

        trouble = check_dcgm(self.host)
        if trouble is not None:
            raise NotAvailable(f"--dcgm: {trouble.reason}", trouble.hint)


class Sources:
    """All sources of a recording, in a fixed order."""

    def __init__(
        self,
        nvml: NvmlSource | Unavailable,
        *,
        workload: bool,
        contained: bool = False,
        dcgm: Dcgm | None = None,
    ) -> None:
        self._nvml = nvml if isinstance(nvml, NvmlSource) else None
        self._no_gpu = nvml if isinstance(nvml, Unavailable) else None
        self._tree: WorkloadSource | None = None
        self.notice: str | None = None
        """What a person should know of these sources before they are read, in one line."""
        if (out_of_order := self._out_of_order) is not None:
            self.notice = f"{out_of_order.text}; {out_of_order.hint}"
        gpus: Source | None = self._nvml
        if self._nvml is not None and dcgm is not None:
            gpus = with_dcgm = _with_dcgm(self._nvml, dcgm)
            self.notice = f"--dcgm: {with_dcgm.notice}"
        self.all: list[Source] = [CpuSource()] if gpus is None else [gpus, CpuSource()]
        if workload:
            if isinstance(nvml, Unavailable):
                self._tree = WorkloadSource(nvml, contained=contained)
            else:
                shares = nvml.process_shares
                self._tree = WorkloadSource(nvml.processes, contained=contained, gpu_shares=shares)
            self.all.append(self._tree)
        self._processes = ProcessWatch(self._nvml, self._tree)
        self._used: dict[str, bool | None] = {}
        """By GPU what the session says of its use."""

    @classmethod
    def open(
        cls,
        gpus: Sequence[str] | None,
        *,
        workload: bool,
        contained: bool = False,
        interval: float = 0.5,
        dcgm: Dcgm | None = None,
    ) -> Sources:
        """Open what there is, to be sampled every ``interval`` seconds.

        ``gpus`` asks for some by index or UUID. ``contained``: the workload's processes have a
        control group of their own. ``dcgm``: fill from DCGM what NVML cannot measure.

        Raises:
            NotAvailable: GPUs, or DCGM, are asked for and are not there.
        """
        opened = _asked(gpus, lambda: open_nvml(gpus, interval_s=interval))
        if isinstance(opened, Unavailable) and dcgm is not None:
            raise NotAvailable(f"--dcgm: {opened.reason}", opened.hint)
        return cls(opened, workload=workload, contained=contained, dcgm=dcgm)

    @staticmethod
    def gpu_uuids(gpus: Sequence[str] | None) -> tuple[str, ...]:
        """The UUIDs of these GPUs, by index or UUID; of all there are for ``None``.

        Raises:
            NotAvailable: GPUs are asked for and are not there.
        """
        found = _asked(gpus, lambda: gpu_uuids(gpus))
        return () if isinstance(found, Unavailable) else found

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for source in self.all for device in source.devices)

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(channel for source in self.all for channel in source.channels)

    @property
    def no_gpu(self) -> Problem | None:
        """Why no GPU is seen, and how to fix it; ``None`` where there is one."""
        if self._no_gpu is None:
            return None
        return Problem("no-gpu", f"no NVIDIA GPU is seen: {self._no_gpu.reason}", self._no_gpu.hint)

    @property
    def _out_of_order(self) -> Problem | None:
        """As :attr:`no_gpu`, where NVIDIA's library is there: the machine should have a GPU."""
        return None if self._no_gpu == NO_LIBRARY else self.no_gpu

    def host_facts(self) -> dict[str, JSON]:
        """The fingerprint of this machine; ``gpu.unavailable`` says why there is no GPU, and
        ``gpu.hint`` what fixes it where there should be one."""
        facts: dict[str, JSON] = dict(fingerprint_host(self._gpus()))
        facts["gpuwatch.version"] = __version__
        facts["python.recorder"] = platform.python_version()
        if self.no_gpu is not None:
            facts["gpu.unavailable"] = self.no_gpu.text
        if self._out_of_order is not None:
            facts["gpu.hint"] = self._out_of_order.hint
        return facts

    def process_facts(self, roots: Sequence[int], *, container: bool) -> Mapping[str, JSON]:
        """What holds for the workload's own process: limits, seccomp ...; empty without it."""
        pid = innermost(roots, container=container)
        return {} if pid is None else fingerprint_process(pid)

    def watch(self, roots: Sequence[int]) -> None:
        """The processes at the top of the workload's tree; before sampling begins."""
        if self._tree is not None:
            self._tree.set_roots(roots)

    def process_rows(self, t: int) -> list[Row]:
        """Processes that appeared, changed what they use, or left; ``t``: the session's time."""
        return self._processes.rows(t)

    def device_rows(self, spec: LaunchSpec | None) -> list[Row]:
        """Every device, with what is known of its use before the run begins."""
        before = True if spec is None else None if spec.gpus else False
        self._used = {gpu.id: before for gpu in self._gpus()}
        return [device_row(each, self._used.get(each.id, True)) for each in self.devices]

    def go_on(self, used: dict[str, bool | None], seen: set[str]) -> None:
        """What a recorder before this one knew of the run's GPUs; on ``seen`` it saw processes."""
        self._used = used
        self._processes.used_by_tree |= seen

    def used_rows(self, intake: Intake, *, over: bool = False) -> list[Row]:
        """Which GPUs are the run's, as soon as and whenever its word or its processes tell anew.

        ``over``: it has ended, and GPUs on which no process of it was seen are not its.
        """
        gpus = self._gpus() if self._tree is not None else ()
        told, tells = set(intake.device_uuids), self._processes.tells
        used = {gpu.id for gpu in gpus if gpu.uuid in told} | self._processes.used_by_tree
        if not used and intake.device_type != "cpu" and not (over and tells):
            only = gpus[0].id if len(gpus) == 1 else None
            if only is None or tells is not False or self._used.get(only) is not None:
                return []
            used = {only}  # nothing will ever tell, and it is no other one
        new = [gpu.id for gpu in gpus if self._used.get(gpu.id) is not (gpu.id in used)]
        self._used |= {id_: id_ in used for id_ in new}
        return [device_used(id_, id_ in used) for id_ in new]

    def close(self) -> None:
        self._processes.close()
        for source in self.all:
            source.close()

    def _gpus(self) -> tuple[Device, ...]:
        return self._nvml.devices if self._nvml is not None else ()


def _asked(
    gpus: Sequence[str] | None, opening: Callable[[], _Opened | Unavailable]
) -> _Opened | Unavailable:
    """What ``opening`` gives; raises ``NotAvailable`` where that is not what ``gpus`` names."""
    try:
        opened = opening()
    except ValueError as error:
        raise NotAvailable(str(error), "see nvidia-smi -L") from None
    if isinstance(opened, Unavailable) and gpus is not None:
        raise NotAvailable(f"--gpus: {opened.reason}", opened.hint)
    return opened


def _with_dcgm(nvml: NvmlSource, dcgm: Dcgm) -> DcgmSource:
    """Raises ``NotAvailable`` where DCGM gives nothing; NVML is closed then."""
    from gpuwatch.telemetry.dcgm.source import open_dcgm

    opened = open_dcgm(nvml, dcgm.host, dcgm.interval)
    if isinstance(opened, Unavailable):
        nvml.close()
        raise NotAvailable(f"--dcgm: {opened.reason}", opened.hint)
    return opened
