"""The screens without a screen: a line for each interval on standard output, in words.

Nothing is drawn and no key is read, so that it works through pipes and for screen readers.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

from gpuwatch.core.errors import ExitCode, GpuwatchError
from gpuwatch.core.text import clean
from gpuwatch.core.units import NS
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.study.progress import recorder_alive, tally
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.feed import Feed
from gpuwatch.tui.feed.hardware.devices_now import DevicesNow
from gpuwatch.tui.feed.next_run import ahead, goes_on
from gpuwatch.tui.feed.snapshot import Snapshot, Unreadable
from gpuwatch.tui.feed.view import View
from gpuwatch.tui.messages import farewell
from gpuwatch.tui.plain.lines import (
    devices_words,
    end_lines,
    status_line,
    title_line,
    warning_lines,
)
from gpuwatch.tui.widgets.graph import longer

INTERVAL_SECONDS = 10.0
"""Between two lines, where nobody asked for another time."""
_LOOK_SECONDS = 1.0
"""How soon the end of a run and a new warning are told."""
_SUMMARY_SECONDS = 30.0
"""How long the summary of a run that has just ended is waited for."""
_LINES = 30
"""Of a replay whose interval nobody named."""
_VIEW = View(seconds=10, columns=1)

Say = Callable[[str], None]


def say_aloud(text: str) -> None:
    """A line on standard output, at once."""
    print(text, flush=True)


def watch(
    path: Path,
    interval: float = INTERVAL_SECONDS,
    *,
    onward: bool = False,
    say: Say = say_aloud,
) -> int:
    """Follow a run, and where its study goes on or ``onward`` is set the next ones, to their end.

    Returns the exit code: 130 where Ctrl-C left the run.

    Raises:
        NotASession, NewerSchema, StorageError: the file is no session that can be read.
    """
    SessionReader(path).close()
    snapshot: Snapshot | None = None
    try:
        while True:
            snapshot = _to_its_end(path, interval, say)
            following = _next(path, say) if snapshot is not None or onward else None
            if following is None:
                break
            path = following
    except KeyboardInterrupt:
        live = snapshot is None or snapshot.status.live
        known = snapshot.place if snapshot is not None else None
        for line in farewell(path, known, live=live, study_goes_on=goes_on(path.parent)):
            say(line)
        return ExitCode.INTERRUPTED
    _summary(path.parent, say)
    return ExitCode.DONE


def replay(path: Path, interval: float | None = None, *, say: Say = say_aloud) -> int:
    """A saved session as it went, a line for each interval of its time, without waiting.

    Raises:
        NotASession, NewerSchema, StorageError: the file is no session that can be read.
    """
    with SessionReader(path) as reader:
        whole = Collector(reader, time.time_ns)
        whole.update()
        last = whole.snapshot(_VIEW)
        say(title_line(last))
        step = int((interval or longer(last.t / NS / _LINES)) * NS)
        past = PastReader(reader, 0)
        collector = Collector(past, time.time_ns)
        for t in range(step, last.t, step):
            past.advance(t)
            collector.update()
            say(status_line(collector.snapshot(_VIEW)))
    say(status_line(last))
    if not last.status.live:
        for line in end_lines(last):
            say(line)
    _summary(path.parent, say)
    return ExitCode.DONE


def devices(interval: float = INTERVAL_SECONDS, *, say: Say = say_aloud) -> int:
    """The devices of this machine, until Ctrl-C."""
    news: SimpleQueue[Snapshot | Unreadable] = SimpleQueue()
    source = DevicesNow(news.put)
    source.look_at(View())
    try:
        source.start()
        named, due = False, 0.0
        while True:
            found = _newest(news)
            if isinstance(found, Unreadable):
                raise GpuwatchError(found.trouble.text, found.trouble.hint)
            if not named:
                named = True
                for device in found.devices:
                    say(f"{device.row.id}: {clean(device.row.name)}")
                if found.no_gpu:
                    say(f"no GPU: {clean(found.no_gpu)}")
            words = "; ".join(devices_words(list(found.devices)))
            if words and time.monotonic() >= due:
                due = time.monotonic() + interval
                say(f"{time.strftime('%H:%M:%S')} {words}")
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    finally:
        source.close()


def _to_its_end(path: Path, interval: float, say: Say) -> Snapshot | None:
    """Lines on one run until it is over; its last moment, ``None`` where it cannot be read."""
    news: SimpleQueue[Snapshot | Unreadable] = SimpleQueue()
    feed = Feed(lambda: path, news.put, refresh=min(_LOOK_SECONDS, interval))
    feed.ask(_VIEW)
    feed.start()
    try:
        due = 0.0
        before: Snapshot | None = None
        while True:
            found = _newest(news)
            if isinstance(found, Unreadable):
                say(f"{path}: {clean(found.trouble.text)}")
                return None
            if before is None:
                say(title_line(found))
            for line in warning_lines(found.alerts, before.alerts if before else ()):
                say(line)
            ended = not found.status.live
            changed = before is None or before.status.state is not found.status.state
            if ended or changed or time.monotonic() >= due:
                due = time.monotonic() + interval
                say(status_line(found))
            if ended:
                for line in end_lines(found):
                    say(line)
                return found
            before = found
    finally:
        feed.close()


def _newest(news: SimpleQueue[Snapshot | Unreadable]) -> Snapshot | Unreadable:
    """What came last; waits for the first."""
    found = news.get()
    while not news.empty():
        found = news.get()
    return found


def _next(path: Path, say: Say) -> Path | None:
    """The run after ``path``, once it has begun; ``None`` where none comes."""
    awaited = None
    while (found := ahead(path)) is not None and goes_on(path.parent):
        if found.newest is not None:
            return found.newest
        if found.awaited is not None and found.awaited != awaited:
            awaited = found.awaited
            say(f"next: {clean(awaited.label)}, run {awaited.place} of {awaited.total}")
        time.sleep(_LOOK_SECONDS / 2)
    return None


def _summary(folder: Path, say: Say) -> None:
    """How all runs of a study did, and where their summary is."""
    deadline = time.monotonic() + _SUMMARY_SECONDS
    while recorder_alive(folder) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS / 5)
    runs = tally(folder)
    if runs:
        say(runs)
    summary = folder / "summary.md"
    if summary.exists():
        say(f"summary: {summary}")
