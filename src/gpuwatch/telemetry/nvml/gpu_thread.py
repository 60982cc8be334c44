"""The one thread that talks to a GPU: it answers samples, and reads the rest between them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue

from gpuwatch.telemetry.base import Value
from gpuwatch.telemetry.nvml.gpu import RETRY_S, Gpu

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
