"""The machine's current devices, from a temporary recording that ends with the screen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.feed.feed import REFRESH_SECONDS, Feed
from gpuwatch.tui.feed.machine_recorder import MachineRecorder
from gpuwatch.tui.feed.snapshot import Snapshot, Trouble, Unreadable
from gpuwatch.tui.feed.view import View


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
