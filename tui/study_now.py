"""What the feed knows of the study around its session."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.session.progress import Place, place, tally


class StudyNow:
    """Reads the plan once, and the other sessions only when the run is over."""

    def __init__(self, path: Path) -> None:
        self.place: Place | None = place(path)
        self.tally = ""
        """Empty while the study goes on."""
        self._folder = path.parent

    def look(self, *, live: bool) -> None:
        """Sum the study up once nobody records it any more; ``live``: the session still grows."""
        if live:
            self.tally = ""
        elif self.place is not None and not self.tally:
            self.tally = tally(self._folder) or ""
