"""What the feed knows of the study around its session."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path

from gpuwatch.session.progress import Place, place, tally

_SECONDS = 30.0
"""Between two looks at how long the study still takes, at least."""
_SHARE = 0.01
"""Of the time, that looking may take."""


class StudyNow:
    """The other sessions are read now and then while the run goes on, and once it is over."""

    def __init__(self, path: Path) -> None:
        self.place: Place | None = None
        self.tally = ""
        """Empty while the study goes on."""
        self._path = path
        self._next = 0.0
        self._read()

    def look(self, *, live: bool) -> None:
        """Sum the study up once nobody records it any more; ``live``: the session still grows."""
        if self.place is None:
            return
        if live:
            self.tally = ""
            if time.monotonic() >= self._next:
                self._read()
        else:
            self.place = replace(self.place, seconds_left=None)
            if not self.tally:
                self.tally = tally(self._path.parent) or ""

    def _read(self) -> None:
        began = time.monotonic()
        self.place = place(self._path)
        took = time.monotonic() - began
        self._next = began + max(_SECONDS, took / _SHARE)
