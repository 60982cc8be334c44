"""The kernels page: the tables of a profile, read in a thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from textual.message import Message

from gpuwatch.analysis.hardware.profile import counters_of, profile_of, why_none
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.text import clean
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.snapshot import Trouble
from gpuwatch.tui.live.kernel_rows import KernelData, kernel_rows
from gpuwatch.tui.widgets.page import PageScreen, Row


class KernelsRead(Message):
    """The profile was read, or could not be."""

    def __init__(self, data: KernelData | Trouble) -> None:
        super().__init__()
        self.data = data


class KernelsScreen(PageScreen):
    """Shows the kernels by their time."""

    def __init__(self, path: Path) -> None:
        super().__init__("kernels", self._kernel_rows)
        self._path = path
        self._result: KernelsRead | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._read_profile, name="kernels", daemon=True)

    def on_mount(self) -> None:
        super().on_mount()
        self._thread.start()

    def on_unmount(self) -> None:
        self._over.set()
        self._thread.join(timeout=2)

    def _read_profile(self) -> None:
        """Read the profile once, in the thread."""
        try:
            with SessionReader(self._path) as reader:
                meta = reader.meta()
            data: KernelData | Trouble = KernelData(
                profile_of(meta), counters_of(meta), why_none(meta)
            )
        except GpuwatchError as error:
            data = Trouble(error.message, error.hint)
        if not self._over.is_set():
            self.post_message(KernelsRead(data))

    def on_kernels_read(self, message: KernelsRead) -> None:
        self._result = message
        self.paint()

    def _kernel_rows(self, width: int) -> Sequence[Row]:
        if self._result is None:
            return [((" reading the session …", "muted"),)]
        data = self._result.data
        if isinstance(data, Trouble):
            return [
                ((f" ✗ {clean(data.text)}", "bad"),),
                ((f" → {clean(data.hint or '')}", "text"),),
            ]
        return kernel_rows(data, width)
