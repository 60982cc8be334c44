"""The kernels page: the tables of a profile, read from the session in a thread of its own."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from textual.message import Message

from gpuwatch.analysis.profile import Profile, profile_of
from gpuwatch.errors import GpuwatchError
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.status import status
from gpuwatch.text import clean
from gpuwatch.tui.kernel_rows import absent_rows, kernel_rows
from gpuwatch.tui.page import PageScreen, Row
from gpuwatch.tui.snapshot import Trouble


class Read(Message):
    """The thread is done: the profile, none, or what hindered it."""

    def __init__(self, profile: Profile | Trouble | None, *, live: bool) -> None:
        super().__init__()
        self.profile = profile
        self.live = live


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
        live = False
        try:
            with SessionReader(self._path) as reader:
                meta = reader.meta()
                live = status(meta, self._path).live
                found: Profile | Trouble | None = profile_of(meta)
        except GpuwatchError as error:
            found = Trouble(error.message, error.mend)
        if not self._over.is_set():
            self.post_message(Read(found, live=live))

    def on_read(self, message: Read) -> None:
        self._read = message
        self.paint()

    def _now(self, width: int) -> Sequence[Row]:
        if self._read is None:
            return [((" reading the session …", "muted"),)]
        found = self._read.profile
        if isinstance(found, Trouble):
            return [
                ((f" ✗ {clean(found.text)}", "bad"),),
                ((f" → {clean(found.mend or '')}", "text"),),
            ]
        if found is None:
            return absent_rows(live=self._read.live, width=width)
        return kernel_rows(found, width)
