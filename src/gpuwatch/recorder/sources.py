"""The telemetry of one recording: the machine's devices, and the workload's process tree."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from gpuwatch import __version__
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import GPUS_OFF, JSON, LaunchSpec, Problem
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.processes.watch import ProcessWatch
from gpuwatch.recorder.sampling import described
from gpuwatch.session.writing.statements import (
    Row,
    device_row,
    device_used,
    event,
    fact,
    without_facts,
)
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.session.writing.write_hints import write_hint
from gpuwatch.telemetry.base import Channel, Device, Source
from gpuwatch.telemetry.host.cpu import CpuSource
from gpuwatch.telemetry.host.fingerprint import fingerprint_host, fingerprint_process
from gpuwatch.telemetry.host.job import fingerprint_job
from gpuwatch.telemetry.nvml.errors import NO_LIBRARY
from gpuwatch.telemetry.nvml.source import NvmlSource, Unavailable, open_nvml
from gpuwatch.telemetry.nvml.start import ANSWER_S, gpu_uuids, on_thread
from gpuwatch.telemetry.process.job import JobSource
from gpuwatch.telemetry.process.tree import innermost
from gpuwatch.telemetry.process.workload import WorkloadSource

if TYPE_CHECKING:
    from gpuwatch.telemetry.dcgm.source import DcgmSource


_Opened = TypeVar("_Opened")

_OFF = Unavailable("--gpus off was given", "leave it out")
DCGM_HOST = "gpuwatch.dcgm.host"
"""Fact of a session: the address at which DCGM was read."""


def check_dcgm(host: str | None) -> None:
    """Raises ``NotAvailable`` if no host engine of DCGM answers at ``host``, ``HOST[:PORT]`` or
    ``unix://SOCKET``; quick. ``None``: DCGM is not used."""
    if host is None:
        return
    from gpuwatch.telemetry.dcgm.source import check_dcgm

    trouble = check_dcgm(host)
    if trouble is not None:
        raise NotAvailable(f"--dcgm: {trouble.reason}", trouble.hint)


CONTEXT_BYTES = 2**30
"""More than a CUDA context without work takes of a GPU's memory."""


class Sources:
    """All sources of a recording, in a fixed order."""

    def __init__(
        self,
        nvml: NvmlSource | Unavailable,
        *,
        workload: bool,
        contained: bool = False,
        interval: float = 0.5,
        dcgm: str | None = None,
        job: str | None = None,
    ) -> None:
        self._nvml = nvml if isinstance(nvml, NvmlSource) else None
        self._no_gpu = nvml if isinstance(nvml, Unavailable) else None
        self._tree: WorkloadSource | None = None
        self.notice = self._nvml.notice if self._nvml is not None else None
        """A one-line notice about these sources for the user, if any."""
        if (out_of_order := self._out_of_order) is not None:
            self.notice = f"{out_of_order.text}; {out_of_order.hint}"
        gpus: Source | None = self._nvml
        if self._nvml is not None and dcgm is not None:
            gpus = with_dcgm = _with_dcgm(self._nvml, dcgm, interval)
            self.notice = f"--dcgm: {with_dcgm.notice}"
        self.all: list[Source] = [CpuSource()] if gpus is None else [gpus, CpuSource()]
        listed, shares = (
            (nvml, dict) if isinstance(nvml, Unavailable) else (nvml.processes, nvml.process_shares)
        )
        if job is not None:
            self._tree = JobSource(job, listed, gpu_shares=shares)
        elif workload:
            self._tree = WorkloadSource(listed, contained=contained, gpu_shares=shares)
        if self._tree is not None:
            self.all.append(self._tree)
        self.processes = ProcessWatch(self._nvml, self._tree)
        self._used: dict[str, bool | None] = {}
        """Whether the run uses each GPU, as the session says."""

    @classmethod
    def open(
        cls,
        gpus: Sequence[str] | None,
        *,
        workload: bool,
        contained: bool = False,
        interval: float = 0.5,
        dcgm: str | None = None,
        job: str | None = None,
    ) -> Sources:
        """Open the available sources, to be sampled every ``interval`` seconds.

        ``gpus``: only these, by index or UUID. ``contained``: the workload has its own control
        group. ``dcgm``: the host engine that fills in what NVML cannot measure. ``job``: the Slurm
        job whose processes are the workload.

        Raises:
            NotAvailable: requested GPUs or DCGM are missing.
        """
        opened: NvmlSource | Unavailable = _OFF
        if tuple(gpus or ()) != GPUS_OFF:
            sparing = not workload and job is None
            opened = _requested(gpus, lambda: open_nvml(gpus, interval_s=interval, sparing=sparing))
        if isinstance(opened, Unavailable) and dcgm is not None:
            raise NotAvailable(f"--dcgm: {opened.reason}", opened.hint)
        return cls(
            opened, workload=workload, contained=contained, interval=interval, dcgm=dcgm, job=job
        )

    @staticmethod
    def gpu_uuids(gpus: Sequence[str] | None, patience_s: float = ANSWER_S) -> tuple[str, ...]:
        """The UUIDs of these GPUs, given by index or UUID; ``None``: of all that NVML tells within
        ``patience_s`` seconds.

        Raises:
            NotAvailable: requested GPUs are missing.
        """
        uuids = _requested(gpus, lambda: gpu_uuids(gpus, patience_s))
        return () if isinstance(uuids, Unavailable) else uuids

    @property
    def devices(self) -> tuple[Device, ...]:
        return tuple(device for source in self.all for device in source.devices)

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(channel for source in self.all for channel in source.channels)

    @property
    def off(self) -> bool:
        """Whether NVML is not used, as asked for."""
        return self._no_gpu == _OFF

    @property
    def no_gpu(self) -> Problem | None:
        """Why no GPU is visible, and how to fix it; ``None`` if there is one."""
        if self._no_gpu is None:
            return None
        return Problem("no-gpu", f"no NVIDIA GPU is seen: {self._no_gpu.reason}", self._no_gpu.hint)

    @property
    def _out_of_order(self) -> Problem | None:
        """As :attr:`no_gpu`, but only if NVIDIA's library exists, so that a GPU is expected."""
        return None if self._no_gpu in (NO_LIBRARY, _OFF) else self.no_gpu

    def host_facts(self) -> dict[str, JSON]:
        """The fingerprint of this machine; ``gpu.unavailable`` says why there is no GPU, and
        ``gpu.hint`` how to fix that if one is expected."""
        facts: dict[str, JSON] = {**fingerprint_host(self._gpus()), **fingerprint_job(os.environ)}
        facts["gpuwatch.version"] = __version__
        facts["python.recorder"] = platform.python_version()
        if self.no_gpu is not None:
            facts["gpu.unavailable"] = self.no_gpu.text
        if self._out_of_order is not None:
            facts["gpu.hint"] = self._out_of_order.hint
        return facts

    def process_facts(self, roots: Sequence[int], *, container: bool) -> Mapping[str, JSON]:
        """Facts on the workload's own process (limits, seccomp ...); empty without one.

        Those of the process above it where it ended meanwhile, as what a shell runs does.
        """
        looks = map(fingerprint_process, innermost(roots, container=container))
        return next(filter(None, looks), {})

    def watch(self, roots: Sequence[int]) -> None:
        """Set the top processes of the workload's tree, before sampling begins."""
        if self._tree is not None:
            self._tree.set_roots(roots)

    def device_rows(self, spec: LaunchSpec | None) -> list[Row]:
        """Rows for all devices, with what is known of their use before the run begins."""
        before = True if spec is None else None if spec.gpus else False
        self._used = {gpu.id: before for gpu in self._gpus()}
        return [device_row(each, self._used.get(each.id, True)) for each in self.devices]

    def restore(self, used: dict[str, bool | None], seen: dict[str, int]) -> None:
        """Take over what an earlier recorder knew: use by GPU, and the GPUs with processes seen."""
        self._used = used
        self.processes.used_by_tree |= seen

    def used_rows(self, intake: Intake, *, over: bool = False) -> list[Row]:
        """Rows for the GPUs that the run uses, whenever its reports or processes show a change.

        ``over``: the run has ended, so GPUs without any of its processes were not used.
        """
        gpus = self._gpus() if self._tree is not None else ()
        reported, is_conclusive = set(intake.device_uuids), self.processes.is_conclusive
        told = {gpu.id for gpu in gpus if gpu.uuid in reported}
        if self._tree is not None:
            self._tree.told_gpus = frozenset(told)
        # A program on the CPU may have made a context there, as for pinned memory.
        least = CONTEXT_BYTES if intake.device_type == "cpu" else 0
        used = told | {id_ for id_, most in self.processes.used_by_tree.items() if most >= least}
        if not used and intake.device_type == "cuda":
            is_conclusive = False
        if not used and intake.device_type != "cpu" and not (over and is_conclusive):
            only = gpus[0].id if len(gpus) == 1 else None
            if only is None or is_conclusive is not False or self._used.get(only) is not None:
                return []
            used = {only}  # nothing will ever show it, and there is no other GPU
        new = [gpu.id for gpu in gpus if self._used.get(gpu.id) is not (gpu.id in used)]
        self._used |= {id_: id_ in used for id_ in new}
        return [device_used(id_, id_ in used) for id_ in new]

    def close(self) -> None:
        for source in self.all:
            source.close()

    def _gpus(self) -> tuple[Device, ...]:
        return self._nvml.devices if self._nvml is not None else ()


def _requested(
    gpus: Sequence[str] | None, opening: Callable[[], _Opened | Unavailable]
) -> _Opened | Unavailable:
    """The result of ``opening``; raises ``NotAvailable`` if the GPUs in ``gpus`` are missing."""
    try:
        opened = opening()
    except ValueError as error:
        raise NotAvailable(str(error), "see nvidia-smi -L") from None
    if isinstance(opened, Unavailable) and gpus is not None:
        raise NotAvailable(f"--gpus: {opened.reason}", "leave --gpus out, or see gpuwatch doctor")
    return opened


def _with_dcgm(nvml: NvmlSource, host: str, interval: float) -> DcgmSource:
    """Raises ``NotAvailable``, and closes NVML, if DCGM gives nothing."""
    from gpuwatch.telemetry.dcgm.source import open_dcgm

    opened = open_dcgm(nvml, host, interval)
    if isinstance(opened, Unavailable):
        nvml.close()
        raise NotAvailable(f"--dcgm: {opened.reason}", opened.hint)
    return opened


_LOOKS_SECONDS = (0.0, 0.1, 0.5, 2.0, 5.0, 15.0, 60.0)
"""Times after the start: a shell or an engine takes a moment to become the workload, and longer on
a busy machine."""


class ProcessFacts:
    """Looks a few times, and one last time when the workload reports its start."""

    def __init__(self, sources: Sources, *, container: bool) -> None:
        self._sources = sources
        self._container = container
        self._begun = time.monotonic()
        self._due = list(_LOOKS_SECONDS)

    def look(self, roots: Callable[[], Sequence[int]], *, started: bool) -> list[Row]:
        """Rows that replace those of an earlier look; empty if there is nothing to see.

        ``roots`` returns the top processes of the workload's tree; called only when a look is due.
        """
        if not self._due or not (started or time.monotonic() - self._begun >= self._due[0]):
            return []
        top = roots()
        if not top:
            return []
        if started:
            self._due.clear()
        else:
            del self._due[0]
        facts = self._sources.process_facts(top, container=self._container)
        if not facts:
            return []
        rows = (fact("process", key, value) for key, value in facts.items())
        return [without_facts("process"), *rows]


LATE_S = 1.0
"""Telemetry that begins so long after the workload, in seconds, is said to be late."""
_AGAIN_SECONDS = 1.0
"""Time until a write that failed is tried again."""


class Opening:
    """Sources while they open, on a thread of their own."""

    def __init__(self, open_: Callable[[], Sources]) -> None:
        self._opened = on_thread("gpuwatch-open", open_)

    def result(self) -> Sources:
        """The sources, once they are open; raises what opening them raised."""
        return self._opened.result()

    def close(self) -> None:
        """Close the sources, now or as soon as they are open."""
        self._opened.add_done_callback(
            lambda opened: None if opened.exception() else opened.result().close()
        )


def telemetry_rows(sources: Sources, spec: LaunchSpec | None) -> list[Row]:
    """Rows on the devices and the host."""
    facts = sources.host_facts().items()
    return [*sources.device_rows(spec), *(fact("host", key, value) for key, value in facts)]


def added(
    store: SessionStore,
    opening: Opening,
    spec: LaunchSpec,
    base_ns: int,
    say: Callable[[str], None],
) -> tuple[Sources, list[Row]]:
    """Add telemetry that opens beside the workload; returns events if that was late, or the file
    could not be written meanwhile."""
    sources = opening.result()
    t = time.monotonic_ns() - base_ns
    slow = "the driver was" if sources.no_gpu is None else "this machine was"
    text = f"nothing was sampled in the first {t / 1e9:.1f} s: {slow} slow to answer"
    notes = [event(t, "sampling-late", text)] if t > LATE_S * 1e9 else []
    trouble: sqlite3.Error | None = None
    while True:
        try:
            store.write(telemetry_rows(sources, spec))  # may be written again
            store.add_channels(0, described(sources.channels))
            if trouble is not None:
                now = time.monotonic_ns() - base_ns
                told = f"could not be written for {(now - t) / 1e9:.1f} s: {trouble}"
                notes.append(event(now, "storage", f"the file {told}; nothing was sampled"))
            return sources, notes
        except sqlite3.Error as error:  # as for any row of a workload that runs
            if trouble is None:
                say(f"cannot write {store.path}: {error}; {write_hint(store.path, error)}")
            trouble = error
            time.sleep(_AGAIN_SECONDS)
