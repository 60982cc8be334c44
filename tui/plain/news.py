"""What a person wants to be told of a run that nobody watches: troubles once, and its end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import clock_time, milliseconds
from gpuwatch.session.reading.status import State
from gpuwatch.tui.feed.alerts import STALLED_STEPS
from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable
from gpuwatch.tui.plain.plain import end_lines, next_run, snapshots, title_line

IDLE_SECONDS = 600.0
"""GPUs of the run that do nothing for so long are told."""
STALLED_SECONDS = 60.0
"""Shortest time without a step that is told."""
_REFRESH_SECONDS = 2.0
_LONGEST = 300
_ALERTS = ("lost", "xid", "ecc")
"""Kinds of warnings that are told."""


@dataclass(frozen=True)
class News:
    kind: str
    """``over``; ``failed``, and more runs follow; ``stalled``, ``idle``, or a warning's kind."""
    text: str
    """One sentence."""
    run: str
    """Workload, environment, and number of the run in its study."""
    failed: bool = False


class Troubles:
    """Looks at one run after another picture; tells each trouble once."""

    def __init__(self) -> None:
        self._told: set[tuple[str, str]] = set()
        self._step: int | None = None
        self._stepped = self._worked = 0.0
        self._begun = False

    def look(self, snapshot: Snapshot, now: float) -> list[News]:
        """What is new in ``snapshot`` at ``now``, in seconds of any clock that does not jump."""
        found = [(a.kind, a.device, a.text) for a in snapshot.alerts if a.kind in _ALERTS]
        found += self._stalled(snapshot, now) + self._idle(snapshot, now)
        new = [each for each in found if each[:2] not in self._told]
        self._told |= {(kind, of) for kind, of, _ in new}
        run = title_line(snapshot)
        return [News(kind, clean(text), run) for kind, _, text in new]

    def _stalled(self, snapshot: Snapshot, now: float) -> list[tuple[str, str, str]]:
        work = snapshot.work
        if work is None or work.step is None or work.step_seconds is None or snapshot.phase:
            self._stepped = now
            return []
        if work.step != self._step:
            self._step, self._stepped = work.step, now
        silent = now - self._stepped
        if silent < max(STALLED_SECONDS, STALLED_STEPS * work.step_seconds):
            return []
        usual = milliseconds(work.step_seconds)
        text = f"no step for {clock_time(silent)} after step {work.step:,}; a step takes {usual}"
        return [("stalled", str(work.step), text)]

    def _idle(self, snapshot: Snapshot, now: float) -> list[tuple[str, str, str]]:
        used = [gpu for gpu in snapshot.gpus if gpu.row.used]
        rates = [gpu.value("hw.gpu.utilization") for gpu in used]
        if not used or any(rate is None or rate > 0 for rate in rates) or not self._begun:
            self._worked, self._begun = now, True
            return []
        if now - self._worked < IDLE_SECONDS:
            return []
        which = "its GPU is" if len(used) == 1 else f"its {len(used)} GPUs are"
        return [("idle", "", f"{which} idle for {clock_time(now - self._worked)}")]


def news(path: Path) -> Iterator[News]:
    """Of the run of ``path`` and the next ones of its study, as it happens, to their end.

    Raises:
        NotASession, NewerSchema, StorageError: the session cannot be read.
    """
    while True:
        troubles, last = Troubles(), None
        for snapshot in snapshots(path, _REFRESH_SECONDS):
            if isinstance(snapshot, Unreadable):
                yield News("over", clean(snapshot.trouble.text), path.name, failed=True)
                return
            yield from troubles.look(snapshot, time.monotonic())
            last = snapshot
        assert last is not None
        failed = last.status.state not in (State.FINISHED, State.STOPPED)
        text = clean(end_lines(last, printed=False)[0], _LONGEST)
        end = News("over", text, title_line(last), failed)
        following = next_run(path)
        if following is None:
            yield end
            return
        if failed:
            yield replace(end, kind="failed")
        path = following
