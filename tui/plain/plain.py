"""``--plain``: one line of text per interval on standard output.

Nothing is drawn and no key is read, so that it works with pipes and screen readers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue

from gpuwatch.core.errors import ExitCode, GpuwatchError
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.reading.status import State
from gpuwatch.session.study.progress import recorder_alive, tally
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.feed import DevicesNow, Feed
from gpuwatch.tui.feed.snapshot import TIMED, Snapshot, Unreadable, View
from gpuwatch.tui.feed.study import goes_on, upcoming_runs
from gpuwatch.tui.feed.window import readable_duration
from gpuwatch.tui.messages import farewell
from gpuwatch.tui.plain.lines import (
    devices_words,
    end_lines,
    status_line,
    title_line,
    warning_lines,
)

INTERVAL_SECONDS = 10.0
"""Default time between two lines."""
_REFRESH_SECONDS = 1.0
"""Longest delay of a new warning and of the end of a run."""
_SUMMARY_SECONDS = 30.0
"""Longest wait for the summary after the last run."""
_REPLAY_LINES = 30
"""Number of lines of a replay with the default interval."""
_VIEW = View(seconds=10, columns=1)

Say = Callable[[str], None]


def print_line(text: str) -> None:
    """Write a line to standard output and flush it."""
    print(text, flush=True)


def watch(
    path: Path, interval: float = INTERVAL_SECONDS, *, follow: bool = False, say: Say = print_line
) -> int:
    """Follow a run and the next ones of its study to their end, a line every ``interval`` seconds.

    ``follow``: continue with the next runs also if the session cannot be read any more.
    Returns the exit code: 130 after Ctrl-C.

    Raises:
        NotASession, NewerSchema, StorageError: the session cannot be read.
    """
    SessionReader(path).close()
    snapshot: Snapshot | None = None
    try:
        while True:
            snapshot = _follow_run(path, interval, say)
            following = next_run(path, say) if snapshot is not None or follow else None
            if following is None:
                break
            path = following
    except KeyboardInterrupt:
        live = snapshot is None or snapshot.status.live
        known = snapshot.place if snapshot is not None else None
        for line in farewell(path, known, live=live, study_goes_on=goes_on(path.parent)):
            say(line)
        return ExitCode.INTERRUPTED
    _say_summary(path.parent, say)
    return ExitCode.DONE


def replay(path: Path, interval: float | None = None, *, say: Say = print_line) -> int:
    """Print a saved session without delay, a line every ``interval`` seconds of its time.

    Raises:
        NotASession, NewerSchema, StorageError: the session cannot be read.
    """
    with SessionReader(path) as reader:
        last = _whole(reader)
        say(title_line(last))
        step = int((interval or readable_duration(last.t / NS / _REPLAY_LINES)) * NS)
        past = PastReader(reader, 0)
        collector = Collector(past, time.time_ns)
        for t in range(step, last.t, step):
            past.advance(t)
            collector.update()
            say(status_line(collector.snapshot(_VIEW)))
    for line in warning_lines(last.alerts, ()):
        say(line)
    say(status_line(last))
    if not last.status.live:
        for line in end_lines(last):
            say(line)
    _say_summary(path.parent, say)
    return ExitCode.DONE


def devices(interval: float = INTERVAL_SECONDS, *, say: Say = print_line) -> int:
    """Print the devices of this machine every ``interval`` seconds until Ctrl-C."""
    news: SimpleQueue[Snapshot | Unreadable] = SimpleQueue()
    source = DevicesNow(news.put)
    source.look_at(View())
    try:
        source.start()
        listed, due = False, 0.0
        while True:
            snapshot = _newest(news)
            if isinstance(snapshot, Unreadable):
                raise GpuwatchError(snapshot.trouble.text, snapshot.trouble.hint)
            if not listed:
                listed = True
                for device in snapshot.devices:
                    say(f"{device.row.id}: {clean(device.row.name)}")
                if snapshot.no_gpu:
                    say(f"no GPU: {clean(snapshot.no_gpu)}")
            words = "; ".join(devices_words(list(snapshot.devices)))
            if words and time.monotonic() >= due:
                due = time.monotonic() + interval
                say(f"{time.strftime('%H:%M:%S')} {words}")
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    finally:
        source.close()


def _follow_run(path: Path, interval: float, say: Say) -> Snapshot | None:
    """Print one run until its end; returns the last snapshot, ``None`` if it is unreadable."""
    due = 0.0
    before: Snapshot | None = None
    for snapshot in snapshots(path, min(_REFRESH_SECONDS, interval)):
        if isinstance(snapshot, Unreadable):
            say(f"{path}: {clean(snapshot.trouble.text)}")
            return None
        if not snapshot.status.live:
            with SessionReader(path) as reader:
                snapshot = _whole(reader)
        if before is None:
            say(title_line(snapshot))
        for line in warning_lines(snapshot.alerts, before.alerts if before else ()):
            say(line)
        ended = not snapshot.status.live
        changed = before is None or before.status.state is not snapshot.status.state
        if ended or changed or time.monotonic() >= due:
            due = time.monotonic() + interval
            say(status_line(snapshot))
        if changed and not ended and snapshot.status.state in (State.LOST, State.UNKNOWN):
            say(clean(snapshot.status.text))
        before = snapshot
    assert before is not None
    for line in end_lines(before):
        say(line)
    return before


def _whole(reader: SessionReader) -> Snapshot:
    """The newest snapshot, of all that is recorded; of a run that is over with the means of its
    timed steps."""
    collector = Collector(reader)
    collector.update()
    while collector.backfill():
        pass
    return collector.snapshot(View(seconds=TIMED, columns=1))


def snapshots(path: Path, refresh: float) -> Iterator[Snapshot | Unreadable]:
    """A run every ``refresh`` seconds to its end, or until it is unreadable: the last one."""
    news: SimpleQueue[Snapshot | Unreadable] = SimpleQueue()
    feed = Feed(lambda: path, news.put, refresh=refresh)
    feed.ask(_VIEW)
    feed.start()
    try:
        while True:
            newest = _newest(news)
            yield newest
            if isinstance(newest, Unreadable) or not newest.status.live:
                return
    finally:
        feed.close()


def _newest(news: SimpleQueue[Snapshot | Unreadable]) -> Snapshot | Unreadable:
    """The newest item of the queue; waits for one."""
    newest = news.get()
    while not news.empty():
        newest = news.get()
    return newest


def next_run(path: Path, say: Say = lambda text: None) -> Path | None:
    """Wait for the run after ``path`` to start; ``None``: there is none."""
    announced = None
    while (runs := upcoming_runs(path)) is not None and goes_on(path.parent):
        if runs.newest is not None:
            return runs.newest
        if runs.pending is not None and runs.pending != announced:
            announced = runs.pending
            say(f"next: {clean(announced.label)}, run {announced.place} of {announced.total}")
        time.sleep(_REFRESH_SECONDS / 2)
    return None


def _say_summary(folder: Path, say: Say) -> None:
    """Print the states of all runs of a study and the path of its summary."""
    deadline = time.monotonic() + _SUMMARY_SECONDS
    while recorder_alive(folder) and time.monotonic() < deadline:
        time.sleep(_REFRESH_SECONDS / 5)
    runs = tally(folder)
    if runs:
        say(runs)
    summary = folder / "summary.md"
    if summary.exists():
        say(f"summary: {summary}")
