"""NVIDIA GPUs through NVML: fast readings at every sample, slow ones once a second.

Fast readings run on a thread beside the caller, so that a hanging call delays one sample by a
quarter of a second and no later ones. More threads are added if one cannot keep up with the
interval. Slow readings of all GPUs share another thread; a GPU that is slow, hangs or is lost gets
its own. The same holds for GPM.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from gpuwatch.core.peaks import dram_peak
from gpuwatch.telemetry.base import Change, Channel, Device, Event, Value
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.nvml.fields import GpuProcess, facts, facts_of_driver
from gpuwatch.telemetry.nvml.gpm import Gpm, wait_for_any
from gpuwatch.telemetry.nvml.gpm_metrics import HASTE_S
from gpuwatch.telemetry.nvml.gpu import RETRY_S, Gpu
from gpuwatch.telemetry.nvml.hung_calls import Call, HungCalls, Place, left_out, unanswered
from gpuwatch.telemetry.nvml.probe import FRESH_S, Journal
from gpuwatch.telemetry.nvml.process_utilization import ProcessShares
from gpuwatch.telemetry.nvml.selection import NvmlDevice
from gpuwatch.telemetry.nvml.start import ANSWER_S, begin, silent
from gpuwatch.telemetry.nvml.unified import with_host_total
from gpuwatch.telemetry.nvml.xid import XidWatch
from gpuwatch.telemetry.polling.poller import PATIENCE_S, EverySecond, Poller
from gpuwatch.telemetry.polling.worker import within
from gpuwatch.telemetry.polling.worker_pool import WorkerPool

__all__ = ["GpuProcess", "NvmlSource", "Unavailable", "open_nvml"]

SAMPLE_PATIENCE_S = 0.25
"""How long one GPU may delay a sample, in seconds, before it is left out."""
ROUND_SHARE = 0.25
"""Share of the interval within which the fast readings of all GPUs should finish."""
RESTART_S = 5.0
"""Minimum seconds between two restarts of NVML while every GPU is lost."""


def open_nvml(
    gpus: Sequence[str | int] | None = None,
    patience_s: float = ANSWER_S,
    interval_s: float | None = 0.5,
    sparing: bool = False,
) -> NvmlSource | Unavailable:
    """Start NVML and probe every reading of the chosen GPUs; ``None`` chooses all.

    ``gpus`` are indexes, UUIDs, unique UUID prefixes, or full MIG UUIDs. GPM is sampled for a
    recording every ``interval_s`` seconds, or not at all for ``None``; ``sparing``: what takes
    milliseconds of processor time is asked rarely. Returns ``Unavailable``
    if NVML cannot be used or does not answer within ``patience_s`` seconds. Raises ``ValueError``,
    listing what exists, for a selection that matches no GPU.
    """
    deadline = time.monotonic() + patience_s
    begun = begin(gpus, patience_s)
    if isinstance(begun, Unavailable):
        return begun
    nvml, chosen = begun
    try:
        known = within(max(0.0, deadline - time.monotonic()), partial(_all_facts, nvml, chosen))
    except TimeoutError:
        return silent(patience_s)
    return NvmlSource(nvml, chosen, known, deadline, interval_s, sparing)


def _all_facts(nvml: Any, chosen: Sequence[NvmlDevice]) -> list[dict[str, Any]]:
    return [
        with_host_total(facts(nvml, one.handle, one.parent is not None))
        if one.handle
        else {**facts_of_driver(nvml), "pci.bus.id": one.bus}
        for one in chosen
    ]


class NvmlSource:
    """Telemetry of NVIDIA GPUs; made by :func:`open_nvml`. ``sample`` belongs to one thread."""

    def __init__(
        self,
        nvml: Any,
        chosen: Sequence[NvmlDevice],
        known: Sequence[Mapping[str, Any]],
        deadline: float,
        interval_s: float | None,
        sparing: bool,
    ) -> None:
        self.notice: str | None = nvml.notice
        """As of :class:`Binding`."""
        self._nvml = nvml
        self._journal = Journal(deque(), deque())
        self._gpm_wake = threading.Event()
        self._devices = tuple(
            Device(
                one.id,
                "gpu",
                one.name,
                one.uuid,
                {"index": one.index, "mig.parent": one.parent, **attributes}
                if one.parent
                else {"index": one.index, **attributes},
            )
            for one, attributes in zip(chosen, known, strict=True)
        )
        self._gpus = [
            Gpu(
                nvml,
                device,
                one.handle,
                self._opener(one),
                self._journal,
                dram_peak(device.attributes, device.name),
                interval_s,
                self._gpm_wake,
                sparing,
            )
            for one, device in zip(chosen, self._devices, strict=True)
        ]
        round_s = SAMPLE_PATIENCE_S if interval_s is None else interval_s * ROUND_SHARE
        self._lane = WorkerPool("gpuwatch-nvml", Gpu.read_fast, SAMPLE_PATIENCE_S, round_s)
        self._closing = threading.Event()
        self._revival = threading.Lock()
        self._silences = HungCalls()
        self._restarted = time.monotonic()
        ready = [threading.Event() for _ in self._gpus]
        beat = EverySecond(self._closing)
        self._rounds = Poller(_read_slow, self._look_after, self._closing, beat)
        self._gpms = [gpu.gpm for gpu in self._gpus if gpu.gpm is not None]
        wait = partial(wait_for_any, wake=self._gpm_wake)
        self._gpm_rounds = Poller(Gpm.turn, Gpm.run, self._closing, wait)
        self._threads = [
            threading.Thread(
                target=self._begin, args=(gpu, done), name=f"gpuwatch-{gpu.id}", daemon=True
            )
            for gpu, done in zip(self._gpus, ready, strict=True)
        ]
        for gpm in self._gpms:
            self._gpm_rounds.add(gpm)
        for thread in self._threads:
            thread.start()
        for done in ready:
            while not done.wait(PATIENCE_S) and time.monotonic() < deadline:
                self._gpm_rounds.relieve()
        self._xid = XidWatch(nvml, self._gpus, self._journal.events)
        self._journal.changes.clear()
        self._channels = tuple(channel for gpu in self._gpus for channel in gpu.channels)

    @property
    def devices(self) -> tuple[Device, ...]:
        """One device per GPU; attributes in bytes, watts, hertz; the bus width in bits."""
        return self._devices

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels found at the start."""
        return self._channels

    def sample(self) -> Sequence[Value]:
        """Values in the channels' order: fast ones read now, slow ones if under 3 s old."""
        if self._closing.is_set():
            return [None] * len(self._channels)
        start = time.monotonic()
        for gpm in self._gpms:
            gpm.hurry(start)
        self._lane.run(self._gpus)
        self._rounds.relieve()
        self._gpm_rounds.relieve()
        self._report_silence(start)
        until = time.monotonic() + HASTE_S
        for gpm in self._gpms:
            gpm.await_hurried(until)
        values: list[Value] = []
        for gpu in self._gpus:
            values += gpu.values(start)
        return values

    def drain(self) -> tuple[Sequence[Change], Sequence[Event]]:
        """Changes and events since the last call."""
        return _taken(self._journal.changes), _taken(self._journal.events)

    def processes(self) -> dict[str, tuple[GpuProcess, ...] | None]:
        """The processes on each GPU by device id, with host PIDs; ``None`` if NVML does not
        tell them."""
        return {gpu.id: gpu.processes for gpu in self._gpus}

    @property
    def processes_doubted(self) -> bool:
        """Whether a process may be on a GPU though its list is empty."""
        return any(gpu.processes_doubted for gpu in self._gpus)

    def process_shares(self) -> dict[str, ProcessShares]:
        """The shares of each GPU's time per process, by device id."""
        return {gpu.id: gpu.process_shares for gpu in self._gpus}

    def close(self) -> None:
        """Stop the threads and NVML within about a second, even if calls hang. Idempotent."""
        if self._closing.is_set():
            return
        self._closing.set()
        for gpm in self._gpms:
            gpm.close()
        self._gpm_wake.set()
        deadline = time.monotonic() + 0.5
        idle = self._lane.close(0.2)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for rounds in (self._rounds, self._gpm_rounds):
            idle = rounds.close(deadline) and idle
        self._xid.close()
        if idle and not any(thread.is_alive() for thread in self._threads):
            try:
                within(0.3, self._shut_down)
            except (TimeoutError, self._nvml.NVMLError):
                return

    def _shut_down(self) -> None:
        for gpm in self._gpms:
            gpm.free()
        self._nvml.nvmlShutdown()

    def _begin(self, gpu: Gpu, ready: threading.Event) -> None:
        """Open a GPU; it then joins the shared thread, or has its own until it is back."""
        gpu.open()
        ready.set()
        if gpu.lost is None:
            self._rounds.add(gpu)
        else:
            self._look_after(gpu)

    def _look_after(self, gpu: Gpu) -> None:
        """Read the slow readings of one GPU that is lost, hangs or is slow."""
        due = time.monotonic() + RETRY_S
        while not self._closing.wait(max(0.0, due - time.monotonic())):
            due = max(due + RETRY_S, time.monotonic() + RETRY_S / 2)
            if gpu.lost is None:
                gpu.read_slow()
            elif self._revival.acquire(timeout=RETRY_S):
                try:
                    self._restart_if_all_lost(gpu)
                    gpu.open()
                finally:
                    self._revival.release()
                if gpu.lost is None:
                    self._rounds.add(gpu)
                    return

    def _restart_if_all_lost(self, by: Gpu) -> None:
        """NVML often recovers a GPU only after a restart, which would disturb GPUs in use."""
        idle = all(
            gpu.lost is not None
            and (gpu is by or not gpu.calling)
            and (gpu.gpm is None or gpu.gpm.idle)
            for gpu in self._gpus
        )
        if not idle or self._lane.stuck or time.monotonic() - self._restarted < RESTART_S:
            return
        if self._xid.waiting:
            return
        self._restarted = time.monotonic()
        alone = self._xid.close()
        for function in (self._nvml.nvmlShutdown, self._nvml.nvmlInit) if alone else ():
            try:
                function()
            except self._nvml.NVMLError as error:
                by.lose(error.value)
        self._xid = XidWatch(self._nvml, self._gpus, self._journal.events)

    def _opener(self, one: NvmlDevice) -> Callable[[], Any]:
        nvml = self._nvml
        if one.uuid is None:
            return lambda: nvml.nvmlDeviceGetHandleByIndex(one.index)
        return lambda: nvml.nvmlDeviceGetHandleByUUID(one.uuid)

    def _report_silence(self, since: float) -> None:
        """Say why values are missing from the sample that began at ``since``."""
        now = time.monotonic()
        stuck = self._lane.stuck
        calls: dict[Place, Call] = {}
        for gpu in self._gpus:
            if gpu in stuck:
                calls[gpu.id, False] = (gpu.fast_call, stuck[gpu])
                if now - stuck[gpu] <= FRESH_S:
                    reason = left_out(gpu.fast_call, SAMPLE_PATIENCE_S)
                    gpu.report_silence(False, reason, since)
            if (calling := gpu.calling) is not None:
                calls[gpu.id, True] = calling
            for slow in (False, True):
                call = calls.get((gpu.id, slow))
                if call is not None and now - call[1] > FRESH_S:
                    gpu.report_silence(slow, unanswered(call[0]))
            if gpu.gpm is not None:
                gpu.gpm.report_silence(now)
        lost = [gpu.id for gpu in self._gpus if gpu.lost is not None]
        self._journal.events.extend(self._silences.seen(calls, lost, now))


def _read_slow(gpu: Gpu) -> bool:
    """Read the slow readings; returns whether the GPU is there."""
    gpu.read_slow()
    return gpu.lost is None


def _taken(queue: deque[Any]) -> list[Any]:
    """Empty a queue that other threads may be appending to."""
    return [queue.popleft() for _ in range(len(queue))]
