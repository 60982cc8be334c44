"""The thread that reads one session and posts what it finds."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

from gpuwatch.errors import GpuwatchError, NotASession, StorageError
from gpuwatch.session.reader import SessionReader
from gpuwatch.tui.collect import Collector
from gpuwatch.tui.past_view import PastView
from gpuwatch.tui.snapshot import Snapshot, Trouble, Unreadable, View

REFRESH_SECONDS = 1.0
_ENDED_SECONDS = 5.0
"""How often a session that is over is looked at again: another recorder may take it up."""
_FIRST_SECONDS = 0.05
"""How often a session that begins is looked at, until something stands in it."""
_PATIENCE_SECONDS = 2.0
"""A session that a recorder is just making may not be readable yet."""


_ATTEMPTS = 3


class Feed:
    """Reads ``path`` in a thread of its own and posts frozen snapshots.

    ``post`` is called in that thread. ``find`` gives the path when it is not known yet.
    """

    def __init__(
        self,
        find: Callable[[], Path | None],
        post: Callable[[Snapshot | Unreadable], None],
        *,
        refresh: float = REFRESH_SECONDS,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._find = find
        self._post = post
        self._refresh = refresh
        self._now_ns = now_ns
        self._view = View()
        self._wake = threading.Event()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="session-feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, view: View) -> None:
        """Draw something else from now on, at once."""
        if view != self._view:
            self._view = view
            self._wake.set()

    def close(self) -> None:
        """End the thread and wait for it."""
        self._closed.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout=5)

    def _run(self) -> None:
        try:
            reader = self._open()
            if reader is None:
                return
            with reader:
                self._follow(Collector(reader, self._now_ns))
        except GpuwatchError as error:
            self._post(Unreadable(Trouble(error.message, error.mend)))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # Values that no recorder writes: the file is damaged or made up.
            text = f"the session holds values that cannot be shown: {type(error).__name__}"
            self._post(Unreadable(Trouble(text, "export it: gpuwatch export SESSION")))

    def _open(self) -> SessionReader | None:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not self._closed.is_set():
            path = self._find()
            if path is not None:
                try:
                    return SessionReader(path)
                except (NotASession, StorageError):
                    fresh = path.exists() and time.time() - path.stat().st_mtime < _PATIENCE_SECONDS
                    if not fresh or time.monotonic() > deadline:
                        raise
            self._closed.wait(_FIRST_SECONDS)
        return None

    def _update(self, collector: Collector) -> None:
        """Read on; a file that is locked for a moment (a slow disk) is tried again."""
        for attempt in range(_ATTEMPTS):
            try:
                collector.update()
                return
            except NotASession:
                if attempt == _ATTEMPTS - 1 or self._closed.wait(0.5):
                    raise

    def _follow(self, collector: Collector) -> None:
        past = PastView(collector)
        asked = False
        soon = time.monotonic() + _PATIENCE_SECONDS
        while not self._closed.is_set():
            view = self._view
            if not asked:
                self._update(collector)
            shown = past.at(view.at, view.seconds)
            snapshot = shown.snapshot(view)
            self._post(snapshot)
            more = snapshot.goes_on or (snapshot.place is not None and not snapshot.tally)
            due = time.monotonic() + (self._refresh if more else _ENDED_SECONDS)
            if more and snapshot.t <= 1 and time.monotonic() < soon:
                due = time.monotonic() + _FIRST_SECONDS
            while not self._wake.is_set() and (collector.backfill() or shown.backfill()):
                if time.monotonic() > due:
                    break
            else:
                if (view.at is not None or not snapshot.status.live) and view == self._view:
                    final = shown.snapshot(view)
                    if final.gauges != snapshot.gauges:
                        self._post(final)
            asked = self._wake.wait(max(0.0, due - time.monotonic()))
            self._wake.clear()
