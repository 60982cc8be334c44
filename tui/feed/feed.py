"""The thread that reads one session and posts snapshots of it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, NotASession, StorageError
from gpuwatch.core.text import clean, to_paste
from gpuwatch.session.mirror.changes import identity
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui import commands
from gpuwatch.tui.feed.collector import Collector, PastView
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.feed.snapshot import Search, Snapshot, Trouble, Unreadable, View

REFRESH_SECONDS = 1.0
_ENDED_REFRESH_SECONDS = 5.0
"""Refresh interval of a finished session: another recorder may resume it."""
_START_REFRESH_SECONDS = 0.02
"""Refresh interval of a new session until it has a record."""
_STARTUP_SECONDS = 2.0
"""Longest wait until a new or locked session is readable."""
_ATTEMPTS, _RETRY_SECONDS = 3, 0.5
"""Number of attempts to read a session, and the delay between two."""


class Feed:
    """Reads a session in a thread of its own and posts frozen snapshots.

    ``find`` returns the session file, or ``None`` until it exists; ``post`` receives the
    snapshots. Both are called in that thread.
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
        self._read_at = -math.inf
        self._goes_on = False
        self._file: tuple[int, int] | None = None
        self._thread = threading.Thread(target=self._run, name="session-feed", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def ask(self, view: View) -> None:
        """Post snapshots for ``view`` from now on, the first one at once."""
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
                self._follow(reader)
        except GpuwatchError as error:
            self._post(Unreadable(Trouble(error.message, error.hint)))
        except OSError as error:
            text = f"the session cannot be read: {error.strerror or error}"
            self._post(Unreadable(Trouble(text, "check that the file still exists")))
        except (ArithmeticError, LookupError, TypeError, ValueError) as error:
            # The file is damaged or forged.
            text = f"the session holds values that cannot be shown: {type(error).__name__}"
            self._post(Unreadable(Trouble(text, "export it: gpuwatch export SESSION")))

    def _open(self) -> SessionReader | None:
        deadline = time.monotonic() + _STARTUP_SECONDS
        while not self._closed.is_set():
            path = self._find()
            if path is not None:
                try:
                    return SessionReader(path)
                except (NotASession, StorageError):
                    fresh = path.exists() and time.time() - path.stat().st_mtime < _STARTUP_SECONDS
                    if not fresh or time.monotonic() > deadline:
                        raise
            self._closed.wait(_START_REFRESH_SECONDS)
        return None

    def _follow(self, reader: SessionReader) -> None:
        past = PastView(Collector(reader, self._now_ns))
        reader.wait_at_most(_STARTUP_SECONDS)
        self._file = identity(reader.path)
        startup_deadline = time.monotonic() + _STARTUP_SECONDS
        failures = 0
        while not self._closed.is_set():
            try:
                if self._read_and_post(past, startup_deadline):
                    # Its figures are then those of a run that is opened after its end.
                    past, self._read_at = PastView(Collector(reader, self._now_ns)), -math.inf
                failures = 0
            except (NotASession, StorageError, OSError):
                # Perhaps only locked for a moment, or on a slow disk.
                failures += 1
                if failures == _ATTEMPTS or self._closed.wait(_RETRY_SECONDS):
                    raise

    def _read_and_post(self, past: PastView, startup_deadline: float) -> bool:
        """Read new records, post a snapshot, and wait for the refresh interval or another view;
        returns whether, instead, the run has just ended.

        New records are read at most once per refresh interval, however often the view changes.
        """
        view, collector = self._view, past.present
        if view.at is None or time.monotonic() >= self._read_at + self._refresh:
            # One transaction may delay the recorder: not for the first, long read.
            opened = self._read_at > -math.inf
            with collector.reader.at_once() if opened else nullcontext():
                collector.update()
            self._read_at = time.monotonic()
        viewed = past.at(view.at, view.seconds)
        snapshot = self._check_file(viewed.snapshot(view))
        went_on, self._goes_on = self._goes_on, snapshot.goes_on
        if went_on and not snapshot.goes_on:
            return True
        self._post(snapshot)
        active = snapshot.goes_on or (snapshot.place is not None and not snapshot.tally)
        due = time.monotonic() + (self._refresh if active else _ENDED_REFRESH_SECONDS)
        if active and snapshot.t <= 1 and time.monotonic() < startup_deadline:
            due = time.monotonic() + _START_REFRESH_SECONDS
        while not self._wake.is_set() and collector.backfill():
            if time.monotonic() > due:
                break
        else:
            settled = view.at is not None or not snapshot.status.live
            if (settled or snapshot.earlier is Search.GOES_ON) and view == self._view:
                final = self._check_file(viewed.snapshot(view))
                if final != snapshot:
                    self._post(final)
        self._wake.wait(max(0.0, due - time.monotonic()))
        self._wake.clear()
        return False

    def _check_file(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot, with a message if the session file was deleted or replaced."""
        now = identity(Path(snapshot.path))
        if now == self._file:
            return snapshot
        event = "was deleted or moved" if now is None else "was replaced by another file"
        trouble = Trouble(f"the session file {event}: it cannot be opened again")
        if snapshot.goes_on:
            trouble = Trouble(
                f"the session file {event}: recording has stopped, the workload still runs",
                f"stop it with s, or in a shell: {to_paste('stop', Path(snapshot.path))}",
            )
        return replace(snapshot, trouble=trouble)


class DevicesNow:
    """A recorder of the machine alone, and a feed on its session."""

    def __init__(
        self,
        post: Callable[[Snapshot | Unreadable], None],
        *,
        refresh: float = REFRESH_SECONDS,
        recorder: MachineRecorder | None = None,
    ) -> None:
        """``refresh``: seconds between two samples, and between two snapshots.

        ``recorder``: one that runs already.
        """
        self._refresh = refresh
        self._post = post
        self._recorder = recorder
        self._failed = False
        self._feed = Feed(self._session, post, refresh=refresh)
        self._feed.ask(View(gauges=False))

    def look_at(self, view: View) -> None:
        """What snapshots have from now on, beside the devices' numbers."""
        self._feed.ask(view)

    def start(self) -> None:
        if self._recorder is None:
            self._recorder = MachineRecorder(self._refresh, commands.PREFIX)
        self._feed.start()

    def last_words(self) -> str:
        """Why the recorder ended, in its own words."""
        lines = self._recorder.error_lines() if self._recorder is not None else None
        return clean(lines[-1]) if lines else "the recorder ended without a message"

    def close(self) -> None:
        """End the recorder and remove what it wrote."""
        self._feed.close()
        if self._recorder is not None:
            self._recorder.close()

    def _session(self) -> Path | None:
        """The session file, or ``None`` until it exists; called in the feed's thread."""
        if self._recorder is None:
            return None
        path = self._recorder.session()
        if path is None and not self._failed and self._recorder.error_lines() is not None:
            self._failed = True
            self._post(Unreadable(Trouble(not_recorded(self.last_words()))))
        return path


def not_recorded(why: str) -> str:
    """What stands in the place of the devices."""
    return f"the devices cannot be recorded: {why}"


_MAX_MESSAGE = 400


def trouble_of(error: Exception) -> Trouble:
    """The message for an error, expected or not."""
    if isinstance(error, GpuwatchError):
        return Trouble(error.message, error.hint)
    return Trouble(f"reading failed: {type(error).__name__}: {clean(error, _MAX_MESSAGE)}")


News = Snapshot | Unreadable
