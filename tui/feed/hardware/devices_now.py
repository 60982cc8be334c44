"""The machine's devices now: read from a throw-away recording that ends with the screen."""

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

        ``recorder``: one that was started already.
        """
        self._refresh = refresh
        self._post = post
        self._recorder = recorder
        self._told = False
        self._feed = Feed(self._find, post, refresh=refresh)
        self._feed.ask(View(gauges=False))

    def look_at(self, view: View) -> None:
        """What snapshots have from now on, beside the devices' numbers."""
        self._feed.ask(view)

    def start(self) -> None:
        if self._recorder is None:
            self._recorder = MachineRecorder(self._refresh, commands.PREFIX)
        self._feed.start()

    def close(self) -> None:
        """End the recorder and remove what it wrote."""
        self._feed.close()
        if self._recorder is not None:
            self._recorder.close()

    def _find(self) -> Path | None:
        """The session, as soon as there is one; called in the feed's thread."""
        if self._recorder is None:
            return None
        found = self._recorder.session()
        lines = None if found or self._told else self._recorder.last_words()
        if lines is not None:
            self._told = True
            why = clean(lines[-1]) if lines else "it ended without a word"
            self._post(Unreadable(Trouble(f"the devices cannot be recorded: {why}")))
        return found
