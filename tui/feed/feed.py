"""The thread that reads one session and posts what it finds."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, NotASession, StorageError
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.file_watch import FileId, file_of, gone
from gpuwatch.tui.feed.past_view import PastView
from gpuwatch.tui.feed.snapshot import Snapshot, Trouble, Unreadable
from gpuwatch.tui.feed.view import View

REFRESH_SECONDS = 1.0
_ENDED_SECONDS = 5.0
"""How often a session that is over is looked at again: another recorder may take it up."""
_FIRST_SECONDS = 0.02
"""How often a session that begins is looked at, until something stands in it."""
_PATIENCE_SECONDS = 2.0
"""A session that a recorder is just making may not be readable yet; nor one that is locked."""
_ATTEMPTS, _AGAIN_SECONDS = 3, 0.5
"""How often a session that cannot be read is tried, and when again."""


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
        self._read_at = float("-inf")
        self._file: FileId | None = None
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
            self._post(Unreadable(Trouble(error.message, error.hint)))
        except OSError as error:
            text = f"the session cannot be read: {error.strerror or error}"
            self._post(Unreadable(Trouble(text, "see whether the file is still there")))
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

    def _follow(self, collector: Collector) -> None:
        collector.reader.wait_at_most(_PATIENCE_SECONDS)
        past = PastView(collector)
        self._file = file_of(collector.reader.path)
        soon = time.monotonic() + _PATIENCE_SECONDS
        failures = 0
        while not self._closed.is_set():
            try:
                self._turn(collector, past, soon)
                failures = 0
            except (NotASession, StorageError, OSError):
                # Locked for a moment, or on a slow disk.
                failures += 1
                if failures == _ATTEMPTS or self._closed.wait(_AGAIN_SECONDS):
                    raise

    def _turn(self, collector: Collector, past: PastView, soon: float) -> None:
        """Read on, post what is asked for, and wait until it is due again or asked otherwise.

        Looking at earlier moments, one after the other, reads no more often than it is due.
        """
        view = self._view
        if view.at is None or time.monotonic() >= self._read_at + self._refresh:
            # What has come since the look before is little: its recorder may wait for all of it.
            known = self._read_at > -math.inf
            with collector.reader.at_once() if known else nullcontext():
                collector.update()
            self._read_at = time.monotonic()
        shown = past.at(view.at, view.seconds)
        snapshot = self._checked(shown.snapshot(view))
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
                final = self._checked(shown.snapshot(view))
                if final.gauges != snapshot.gauges:
                    self._post(final)
        self._wake.wait(max(0.0, due - time.monotonic()))
        self._wake.clear()

    def _checked(self, snapshot: Snapshot) -> Snapshot:
        """With a trouble where the file that is read has lost its name: nobody finds it again."""
        now = file_of(snapshot.path)
        if now == self._file:
            return snapshot
        trouble = gone(Path(snapshot.path), replaced=now is not None, live=snapshot.goes_on)
        return replace(snapshot, trouble=trouble)
