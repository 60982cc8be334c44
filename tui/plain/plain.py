"""``--plain``: one line of text per interval on standard output.

Nothing is drawn and no key is read, so that it works with pipes and screen readers.
"""

from __future__ import annotations

import math
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from queue import SimpleQueue

from gpuwatch.core.errors import ExitCode, GpuwatchError
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean, whole_words
from gpuwatch.core.units import (
    NS,
    binary_parts,
    clock_time,
    counted,
    digits,
    loss,
    milliseconds,
    number,
    percent,
    quantity,
)
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.reading.status import FAILED, State
from gpuwatch.session.study.estimate import about
from gpuwatch.session.study.progress import recorder_alive, tally
from gpuwatch.tui.feed.collector import Collector
from gpuwatch.tui.feed.feed import DevicesNow, Feed
from gpuwatch.tui.feed.samples import readable_duration
from gpuwatch.tui.feed.snapshot import TIMED, Alert, DeviceNow, Gauge, Snapshot, Unreadable, View
from gpuwatch.tui.feed.study import goes_on, upcoming_runs
from gpuwatch.tui.messages import farewell


def status_line(snapshot: Snapshot) -> str:
    """One snapshot: time, state, progress, the gauges, the devices of the run."""
    parts = [f"{clock_time(snapshot.seconds)} {snapshot.status.state.value}"]
    if snapshot.phase:
        parts.append(clean(snapshot.phase))
    if snapshot.silent_seconds is not None:
        parts.append(f"nothing recorded for {clock_time(snapshot.silent_seconds)}")
    if snapshot.ranks is not None:
        ranks, _, found = snapshot.ranks.line.partition(" · ")
        parts.append(f"{ranks} ({found})" if found else ranks)
    parts += _work(snapshot)
    gpus = [gpu for gpu in snapshot.gpus if gpu.row.used]
    unknown = any(gpu.row.used is None for gpu in snapshot.gpus)
    if unknown and snapshot.status.live:  # any of them may be the run's
        gpus = list(snapshot.gpus)
    shown = [f"GPU {gpu.number} " for gpu in gpus if gpu.row.id == snapshot.selected]
    whose = shown[0] if shown and len(gpus) > 1 else ""
    known = [
        (gauge, text)
        for gauge in snapshot.gauges[1:]
        if (gauge.reading.method is Method.COUNTED or gpus or not unknown)
        and (text := _gauge(gauge, whose))
    ]
    gauges = [text for _, text in known]
    steps = snapshot.work is not None and snapshot.work.reports
    own, cpus = (
        [device for device in snapshot.devices if device.row.kind == kind]
        for kind in ("workload", "cpu")
    )
    first = [] if steps else own  # without steps else nothing is of the run
    figures = [*([", ".join(gauges)] if gauges else []), *devices_words([*first, *gpus, *cpus])]
    if unused := len(snapshot.gpus) - len(gpus):
        whether = "not known to be the run's" if unknown else "not of the run"
        figures.append(f"{counted(unused, 'GPU')} {whether}")
    if snapshot.means and figures:
        of = known[0][0].period if known else snapshot.means
        if of != snapshot.means and len(figures) > 1:  # too few steps for a sample
            figures[1] = f"of the {snapshot.means}: {figures[1]}"
        figures[0] = f"{'means of' if steps else 'over'} the {of}: {figures[0]}"
    return "; ".join([", ".join(parts), *figures])


def title_line(snapshot: Snapshot) -> str:
    """Workload, environment, and place of the run in its study."""
    if snapshot.machine_only:
        return "this machine"
    where = f" in {clean(snapshot.environment)}" if snapshot.environment else ""
    place = snapshot.place
    run = "" if place is None else f", {place.words}"
    return f"{clean(snapshot.name)}{where}{run}"


def warning_lines(alerts: Sequence[Alert], before: Sequence[Alert]) -> list[str]:
    """The warnings that are not in ``before``; kind and device identify a warning."""
    known = {(alert.kind, alert.device) for alert in before}
    new = [alert for alert in alerts if (alert.kind, alert.device) not in known]
    return [f"warning: {clean(alert.text)}" for alert in new]


def end_lines(snapshot: Snapshot, *, printed: bool = True) -> list[str]:
    """How a run ended, with its error and a hint; not ``printed``: without words of the program."""
    of_recording = snapshot.machine_only or snapshot.status.state is State.LOST
    over = "the recording" if of_recording else "the run"
    ended, trouble = clean(snapshot.status.text), snapshot.trouble
    own = "" if trouble is None or printed else trouble.passed_on
    cause = ended if trouble is None else clean(own or trouble.text)
    if snapshot.status.state in FAILED:
        ended = cause
    so_far = "out of sight" if snapshot.status.state is State.UNKNOWN else "over"
    lines = [f"{over} is {so_far} after {clock_time(snapshot.seconds)}: {ended}"]
    if snapshot.machine_only and snapshot.status.state is State.FINISHED:
        lines = [f"{ended} for {clock_time(snapshot.seconds)}"]
    lines += [f"error: {cause}"] if cause != ended else []
    if trouble is not None and trouble.hint and clean(trouble.hint) != ended:
        lines.append(f"Fix: {clean(trouble.hint)}")
    return lines


def devices_words(devices: list[DeviceNow]) -> list[str]:
    """The known values of each device."""
    return [text for device in devices if (text := _device(device))]


def _work(snapshot: Snapshot) -> list[str]:
    work = snapshot.work
    if work is None or not work.reports:
        return []
    parts = []
    if work.step is not None:
        total = "" if work.total is None else f" of {work.total:,}"
        parts.append(f"{'warm-up ' if work.warmup else ''}step {work.step:,}{total}")
    if work.eta_seconds is not None and snapshot.status.live:
        parts.append(f"{clock_time(work.eta_seconds)} left")
    if work.throughput.value is not None:
        parts.append(f"{digits(work.throughput.value)} samples per second")
    elif work.throughput.method is Method.COUNTED and work.throughput.reason:
        parts.append(work.throughput.reason)
    if work.step_seconds is not None:
        parts.append(f"median step {milliseconds(work.step_seconds)}")
    if work.loss is not None:
        parts.append(f"loss {loss(work.loss)}")
    return parts


def _gauge(gauge: Gauge, whose: str) -> str:
    """``whose``: the device that it is of, unless it is counted, for the whole run."""
    reading = gauge.reading
    if reading.value is None or reading.method is Method.UNAVAILABLE:
        return ""
    value = quantity(reading.value, gauge.unit)
    bound = "at most " if reading.method is Method.BOUND else ""
    name = gauge.title.lower().removesuffix("/s").removesuffix(" flop")
    if reading.method is not Method.COUNTED:
        name = f"{whose}{name}"
    return f"{name} {bound}{value} ({reading.method.value})"


def _device(device: DeviceNow) -> str:
    kind = device.row.kind
    parts = []
    utilization = device.value(f"hw.{kind}.utilization")
    if utilization is not None:
        parts.append(percent(utilization))
    if (cores := device.value("process.cpu.time")) is not None:
        parts.append(f"{digits(cores) if cores >= _LEAST_CORES else f'<{_LEAST_CORES}'} cores")
    used, total = device.memory_used, device.memory_total
    if used is not None:
        of = "" if total is None else f" of {' '.join(binary_parts(total))}"
        parts.append(f"{device.peak}memory {' '.join(binary_parts(used))}{of}")
    if (watts := device.value(f"hw.{kind}.power")) is not None:
        limit = device.attribute("power.limit")
        parts.append(number(watts, "W") if limit is None else f"{watts:.0f} of {limit:.0f} W")
    if (degrees := device.value(f"hw.{kind}.temperature")) is not None:
        parts.append(number(degrees, "°C"))
    host = "host" if utilization is None else "host CPU"
    name = {"gpu": f"GPU {device.number}", "workload": "program"}.get(kind, host)
    return f"{name} {', '.join(parts)}" if parts else ""


_LEAST_CORES = 0.1
"""Fewer are not told apart: the kernel counts CPU time in ticks."""
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
    """Write a line to standard output and flush it; on a terminal several, broken at spaces."""
    if sys.stdout.isatty():
        text = "\n".join(whole_words(text, shutil.get_terminal_size((80, 24)).columns))
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
            following = next_run(path) if snapshot is not None or follow else None
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
    said = -math.inf
    before: Snapshot | None = None
    for snapshot in snapshots(path, min(_REFRESH_SECONDS, interval)):
        if isinstance(snapshot, Unreadable):
            say(f"{path}: {clean(snapshot.trouble.text)}")
            return None
        if not snapshot.status.live:
            with SessionReader(path) as reader:
                snapshot = _whole(reader)
        if before is None:
            place = snapshot.place
            left = None if place is None else place.seconds_left
            say(f"{title_line(snapshot)}{'' if left is None else f'; {about(left)} left'}")
        for line in warning_lines(snapshot.alerts, before.alerts if before else ()):
            say(line)
        ended = not snapshot.status.live
        changed = before is None or before.status.state is not snapshot.status.state
        if ended or changed or time.monotonic() >= said + pause(snapshot, interval):
            said = time.monotonic()
            say(status_line(snapshot))
        if changed and not ended and snapshot.status.state in (State.LOST, State.UNKNOWN):
            say(clean(snapshot.status.text))
        before = snapshot
    assert before is not None
    for line in end_lines(before):
        say(line)
    return before


def pause(snapshot: Snapshot, interval: float) -> float:
    """Seconds between two lines: while nothing is recorded, they differ in little."""
    return interval if snapshot.silent_seconds is None else max(interval, INTERVAL_SECONDS)


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
    with closing(Feed(lambda: path, news.put, refresh=refresh)) as feed:
        feed.ask(_VIEW)
        feed.start()
        while True:
            newest = _newest(news)
            yield newest
            if isinstance(newest, Unreadable) or not newest.status.live:
                return


def _newest(news: SimpleQueue[Snapshot | Unreadable]) -> Snapshot | Unreadable:
    """The newest item of the queue; waits for one."""
    newest = news.get()
    while not news.empty():
        newest = news.get()
    return newest


def next_run(path: Path) -> Path | None:
    """Wait for the run after ``path`` to start; ``None``: there is none."""
    while (runs := upcoming_runs(path)) is not None and goes_on(path.parent):
        if runs.newest is not None:
            return runs.newest
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
