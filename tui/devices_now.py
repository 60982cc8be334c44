"""The machine's devices now: read from a throw-away recording that ends with the screen."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from gpuwatch.text import clean
from gpuwatch.tui import commands
from gpuwatch.tui.feed import REFRESH_SECONDS, Feed
from gpuwatch.tui.snapshot import Snapshot, Trouble, Unreadable

_PATIENCE_SECONDS = 3.0


class DevicesNow:
    """A recorder of the machine alone in a temporary folder, and a feed on its session."""

    def __init__(
        self, post: Callable[[Snapshot | Unreadable], None], *, refresh: float = REFRESH_SECONDS
    ) -> None:
        """``refresh``: seconds between two samples, and between two snapshots."""
        self._refresh = refresh
        self._post = post
        self._folder = Path(tempfile.mkdtemp(prefix="gpuwatch-now-"))
        self._errors = (self._folder / "errors").open("wb")
        self._process: subprocess.Popen[bytes] | None = None
        self._told = False
        self._feed = Feed(self._find, post, refresh=refresh)

    def start(self) -> None:
        arguments = ("--record", "--out", str(self._folder), "--interval", f"{self._refresh:g}")
        self._process = subprocess.Popen(
            [*commands.PREFIX, *arguments, "--while-pid", str(os.getpid()), "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
        )
        self._feed.start()

    def close(self) -> None:
        """End the recorder and remove what it wrote."""
        self._feed.close()
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.terminate()
            try:
                self._process.wait(_PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _find(self) -> Path | None:
        """The session, as soon as there is one; called in the feed's thread."""
        found = next(iter(sorted(self._folder.glob("*/*.gpuwatch"))), None)
        gone = self._process is not None and self._process.poll() is not None
        if found is None and gone and not self._told:
            self._told = True
            with contextlib.suppress(OSError):
                lines = (self._folder / "errors").read_text(errors="replace").splitlines()
                why = clean(lines[-1]) if lines else "it ended without a word"
                self._post(Unreadable(Trouble(f"the devices cannot be recorded: {why}")))
        return found
