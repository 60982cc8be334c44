"""The kernels page: the tables of a profile, read from the session in a thread of its own."""

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
from gpuwatch.tui.live.kernel_rows import SeenKernels, kernel_rows
from gpuwatch.tui.widgets.page import PageScreen, Row


class Read(Message):
    """The thread is done."""

    def __init__(self, found: SeenKernels | Trouble) -> None:
        super().__init__()
        self.found = found


class KernelsScreen(PageScreen):
    """Which kernels took the time."""

    def __init__(self, path: Path) -> None:
        super().__init__("kernels", self._now)
        self._path = path
        self._read: Read | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="kernels", daemon=True)

    def on_mount(self) -> None:
        super().on_mount()
        self._thread.start()

    def on_unmount(self) -> None:
        self._over.set()
        self._thread.join(timeout=2)

    def _look(self) -> None:
        """In the thread: read the profile once."""
        try:
            with SessionReader(self._path) as reader:
                meta = reader.meta()
            found: SeenKernels | Trouble = SeenKernels(
                profile_of(meta), counters_of(meta), why_none(meta)
            )
        except GpuwatchError as error:
            found = Trouble(error.message, error.hint)
        if not self._over.is_set():
            self.post_message(Read(found))

    def on_read(self, message: Read) -> None:
        self._read = message
        self.paint()

    def _now(self, width: int) -> Sequence[Row]:
        if self._read is None:
            return [((" reading the session …", "muted"),)]
        found = self._read.found
        if isinstance(found, Trouble):
            return [
                ((f" ✗ {clean(found.text)}", "bad"),),
                ((f" → {clean(found.hint or '')}", "text"),),
            ]
        return kernel_rows(found, width)
