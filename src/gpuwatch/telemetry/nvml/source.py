"""NVIDIA GPUs through NVML: one thread a GPU, so that a call that hangs holds up no other."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

from gpuwatch.telemetry.base import Change, Device, Event, Value
from gpuwatch.telemetry.nvml.errors import Unavailable
from gpuwatch.telemetry.nvml.fields import GpuProcess, facts, facts_of_driver
from gpuwatch.telemetry.nvml.gpu import RETRY_S, Gpu, Journal
from gpuwatch.telemetry.nvml.processes import ProcessShares
from gpuwatch.telemetry.nvml.selection import NvmlDevice
from gpuwatch.telemetry.nvml.start import ANSWER_S, begin, silent, within
from gpuwatch.telemetry.nvml.unified import with_host_total
from gpuwatch.telemetry.nvml.xid import XidWatch

LONG_S = 0.1
"""No call that works is as long as an interval of this many seconds (PCIe: 20 ms each)."""


class GpuThread:
    """A GPU with its thread, which starts at once and opens the GPU.

    A sample is :meth:`ask` of all GPUs and then :meth:`answer` of each: a call that hangs holds up
    its own GPU alone. ``interval_s``: of the samples; ``revive(gpu)`` opens a lost GPU.
    """

    def __init__(self, gpu: Gpu, interval_s: float, revive: Callable[[Gpu], None]) -> None:
        self.gpu = gpu
        self.ready = threading.Event()
        """Set once the GPU was opened, or is lost."""
        self._revive = revive
        self._asks: SimpleQueue[None] = SimpleQueue()
        self._answers: SimpleQueue[Sequence[Value]] = SimpleQueue()
        self._owing = False
        """Whether an answer is still to come."""
        self._asked = False
        """Whether it is that to the present sample."""
        self._latest: Sequence[Value] | None = None
        self._alone_s = 1.5 * RETRY_S if interval_s <= RETRY_S else RETRY_S
        """After so many seconds without a sample the slow readings are read all the same."""
        self._waits_for_slow = interval_s >= LONG_S
        self._between = False
        """Whether the slow readings are being read."""
        self._closing = False
        self._thread = threading.Thread(target=self._run, name=f"gpuwatch-{gpu.id}", daemon=True)
        self._thread.start()

    def ask(self) -> None:
        """Have the GPU read now, unless it is still busy with an earlier sample, or lost."""
        self._take(0.0)
        self._asked = not self._owing and self.gpu.lost is None
        if self._asked:
            self._owing = True
            self._asks.put(None)

    def answer(self, until: float) -> Sequence[Value] | None:
        """The values, waited for until ``until`` (monotonic seconds); else an answer that came too
        late for the sample before; ``None`` without one."""
        if self._asked and (self._waits_for_slow or not self._between):
            self._take(max(0.0, until - time.monotonic()))
        self.gpu.note_silence(owing=self._owing and not self._asked)
        latest, self._latest = self._latest, None
        return latest

    def close(self) -> None:
        """End the thread after its current call."""
        self._closing = True
        self._asks.put(None)

    def closed(self, until: float) -> bool:
        """Wait for the end until ``until`` (monotonic seconds); returns whether it has come."""
        self._thread.join(max(0.0, until - time.monotonic()))
        return not self._thread.is_alive()

    def _take(self, timeout_s: float) -> None:
        if self._owing:
            with suppress(Empty):
                self._latest = self._answers.get(timeout=timeout_s)
                self._owing = False

    def _run(self) -> None:
        gpu = self.gpu
        gpu.open()
        self.ready.set()
        while True:
            asked = False
            with suppress(Empty):
                rest_s = RETRY_S if gpu.lost is not None else min(self._alone_s, gpu.rest_s)
                self._asks.get(timeout=rest_s)
                asked = True
            if self._closing:
                gpu.close()
                return
            if asked:
                self._answers.put(gpu.read())
            elif gpu.lost is not None:
                self._revive(gpu)
            else:
                gpu.read_gpm()
            if gpu.lost is None:
                self._between = True
                gpu.read_slow(self._asks.empty)
                self._between = False


__all__ = ["GpuProcess", "NvmlSource", "Unavailable", "open_nvml"]

SAMPLE_PATIENCE_S = 0.25
"""How long a GPU may delay a sample, in seconds, before it is left out."""
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
        self.devices = tuple(
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
        """One device per GPU; attributes in bytes, watts, hertz; the bus width in bits."""
        self._gpus = [
            Gpu(nvml, device, one.handle, self._opener(one), self._journal, interval_s, sparing)
            for one, device in zip(chosen, self.devices, strict=True)
        ]
        self._closed = False
        self._revival = threading.Lock()
        self._restarted = time.monotonic()
        self._threads = [GpuThread(gpu, interval_s or 0.5, self._revive) for gpu in self._gpus]
        for thread in self._threads:
            thread.ready.wait(max(0.0, deadline - time.monotonic()))
        self._xid = XidWatch(nvml, self._gpus, self._journal.events)
        self._journal.changes.clear()
        self.channels = tuple(channel for gpu in self._gpus for channel in gpu.channels)
        """The channels found at the start."""

    def sample(self) -> Sequence[Value]:
        """Values in the channels' order: fast ones read now, slow ones if under 3 s old."""
        values: list[Value] = []
        for thread in self._threads if not self._closed else ():
            thread.ask()
        until = time.monotonic() + SAMPLE_PATIENCE_S
        for thread in self._threads:
            answer = None if self._closed else thread.answer(until)
            values += answer or [None] * len(thread.gpu.channels)
        return values

    def drain(self) -> tuple[Sequence[Change], Sequence[Event]]:
        """Changes and events since the last call."""
        return _taken(self._journal.changes), _taken(self._journal.events)

    def processes(self) -> dict[str, tuple[GpuProcess, ...] | None]:
        """The processes on each GPU by device id, with host PIDs; ``None`` if NVML does not
        tell them."""
        return {gpu.id: gpu.processes.listed for gpu in self._gpus}

    @property
    def processes_doubted(self) -> bool:
        """Whether a process may be on a GPU though its list is empty."""
        return any(gpu.processes.doubts for gpu in self._gpus)

    def process_shares(self) -> dict[str, ProcessShares]:
        """The shares of each GPU's time per process, by device id."""
        return {gpu.id: gpu.process_shares for gpu in self._gpus}

    def close(self) -> None:
        """Stop the threads and NVML within about a second, even if calls hang. Idempotent."""
        if self._closed:
            return
        self._closed = True
        for thread in self._threads:
            thread.close()
        deadline = time.monotonic() + 0.5
        ended = [thread.closed(deadline) for thread in self._threads]
        self._xid.close()
        if all(ended):
            with suppress(TimeoutError, self._nvml.NVMLError):
                within(0.3, self._nvml.nvmlShutdown)

    def _revive(self, gpu: Gpu) -> None:
        """Open a lost GPU, after a restart of NVML if every GPU is lost.

        NVML often recovers a GPU only after a restart, which would disturb GPUs in use.
        """
        if not self._revival.acquire(timeout=RETRY_S):
            return
        try:
            idle = all(each.lost is not None and not each.calling for each in self._gpus)
            late = time.monotonic() - self._restarted >= RESTART_S
            if idle and late and not self._xid.waiting:
                self._restarted = time.monotonic()
                if self._xid.close():
                    for function in (self._nvml.nvmlShutdown, self._nvml.nvmlInit):
                        try:
                            function()
                        except self._nvml.NVMLError as error:
                            gpu.lose(error.value)
                self._xid = XidWatch(self._nvml, self._gpus, self._journal.events)
            gpu.open()
        finally:
            self._revival.release()

    def _opener(self, one: NvmlDevice) -> Callable[[], Any]:
        nvml = self._nvml
        if one.uuid is None:
            return lambda: nvml.nvmlDeviceGetHandleByIndex(one.index)
        return lambda: nvml.nvmlDeviceGetHandleByUUID(one.uuid)


def _taken(queue: deque[Any]) -> list[Any]:
    """Empty a queue that other threads may be appending to."""
    return [queue.popleft() for _ in range(len(queue))]
