"""Xid errors: the driver's reports of GPU trouble, passed on as they happen.

Meanings are those of NVIDIA's Xid catalogue, docs.nvidia.com/deploy/xid-errors.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from gpuwatch.telemetry.base import Event
from gpuwatch.telemetry.nvml.errors import LOST, PERMANENT, describe
from gpuwatch.telemetry.nvml.gpu import Gpu

WAIT_MS = 2000
"""Duration of one wait for an event, in milliseconds; closing takes up to this long."""
_RETRY_S = 5.0
_MOMENT_S = 0.02
_XID_CRITICAL_ERROR = 8
_TIMEOUT = 10

MEANINGS = {
    8: "the GPU stopped processing",
    13: "graphics engine exception: most often an instruction or an access that is not allowed",
    31: "GPU memory page fault: most often the program's access to memory that is not its own",
    32: "invalid or corrupted push buffer stream",
    43: "the GPU stopped processing: a program's fault, the GPU stays healthy",
    45: "work of a program was removed: most often because it ended or was ended",
    48: "double-bit memory error that could not be corrected",
    61: "internal micro-controller breakpoint or warning",
    62: "internal micro-controller halt",
    63: "a memory page was retired or a row remapped: recorded",
    64: "a memory page could not be retired, or a row not remapped",
    68: "video processor exception",
    69: "graphics engine class error",
    74: "NVLink error",
    79: "the GPU has fallen off the bus",
    92: "high rate of corrected memory errors",
    94: "contained memory error: the program that met it ends, others go on",
    95: "uncontained memory error: everything on the GPU is affected",
    109: "context switch timeout",
    119: "the GPU's system processor (GSP) did not answer in time",
    120: "error of the GPU's system processor (GSP)",
    121: "error of the link between chips (C2C)",
    140: "memory error that was not recovered",
    154: "the action that recovers the GPU has changed",
}


def meaning(number: int) -> str:
    """One line for display: ``Xid 79: the GPU has fallen off the bus``."""
    known = MEANINGS.get(number, "see NVIDIA's Xid catalogue, docs.nvidia.com/deploy/xid-errors")
    return f"Xid {number}: {known}"


class XidWatch:
    """Waits for the Xid errors of all GPUs on one thread; events go to ``events``.

    A GPU that cannot report them is skipped silently: its attribute ``xid.told`` says so. The
    thread holds its own reference to NVML, so that shutting NVML down never waits for it.
    """

    def __init__(self, nvml: Any, gpus: Sequence[Gpu], events: deque[Event]) -> None:
        self._nvml = nvml
        self._gpus = tuple(gpus)
        self._events = events
        self.waiting = False
        """Whether a wait for an event, which cannot be interrupted, is in progress."""
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="gpuwatch-xid", daemon=True)
        self._thread.start()

    def close(self) -> bool:
        """End the thread, at the latest with its current wait; returns whether it has ended."""
        self._closing.set()
        self._thread.join(_MOMENT_S)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self._nvml.nvmlInit()
        except self._nvml.NVMLError:
            return
        try:
            self._watch()
        finally:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlShutdown()

    def _watch(self) -> None:
        while not self._closing.is_set():
            try:
                events = self._nvml.nvmlEventSetCreate()
            except self._nvml.NVMLError as error:
                if error.value in PERMANENT:
                    return
            else:
                self._wait(events)
            self._closing.wait(_RETRY_S)

    def _wait(self, events: Any) -> None:
        """Wait until closing, or until the set of registered events must be rebuilt."""
        names: dict[int, str] = {}
        registered: dict[str, int] = {}
        left_out: set[str] = set()
        try:
            while not self._closing.is_set():
                self._register(events, names, registered, left_out)
                if len(left_out) == len(self._gpus):
                    self._closing.wait()
                    return
                if not registered:
                    self._closing.wait(WAIT_MS / 1000)
                    continue
                self.waiting = True
                try:
                    data = self._nvml.nvmlEventSetWait_v2(events, WAIT_MS)
                except self._nvml.NVMLError as error:
                    if error.value in PERMANENT:
                        return
                    if error.value != _TIMEOUT:
                        # A lost GPU can make every wait fail; the other GPUs still need it.
                        self._closing.wait(WAIT_MS / 1000)
                    continue
                finally:
                    self.waiting = False
                if data.eventType == _XID_CRITICAL_ERROR:
                    device = names.get(_address(data.device))
                    self._events.append(Event("xid", meaning(int(data.eventData)), device))
        finally:
            with suppress(self._nvml.NVMLError):
                self._nvml.nvmlEventSetFree(events)

    def _register(
        self, events: Any, names: dict[int, str], registered: dict[str, int], left_out: set[str]
    ) -> None:
        """Register present GPUs that are not registered yet, including those that were lost."""
        for gpu in self._gpus:
            if gpu.lost is not None:
                registered.pop(gpu.id, None)
            elif registered.get(gpu.id) != (epoch := gpu.epoch) and gpu.id not in left_out:
                try:
                    self._nvml.nvmlDeviceRegisterEvents(gpu.handle, _XID_CRITICAL_ERROR, events)
                except self._nvml.NVMLError as error:
                    if error.value in LOST:
                        continue
                    left_out.add(gpu.id)
                    if error.value not in PERMANENT:
                        reason = f"Xid errors are not reported: {describe(error.value).reason}"
                        self._events.append(Event("xid-untold", reason, gpu.id))
                else:
                    registered[gpu.id] = epoch
                    names[_address(gpu.handle)] = gpu.id


def _address(handle: Any) -> int:
    """A device handle as a number; NVML returns the same pointer for the same GPU."""
    return ctypes.cast(handle, ctypes.c_void_p).value or 0
