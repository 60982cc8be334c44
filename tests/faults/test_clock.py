"""Clocks that jump, and machines that sleep: no sample is made up, moved or counted twice."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from gpuwatch.tui.feed.samples import Window, column_means
from tests.conftest import Cli
from tests.session.samples import rows_of
from tests.waiting import until

from .aftermath import Kept, events, in_order, kept, nothing_left, running, stepping, workload
from .preload import Preload
from .table import Row

PERIOD, INTERVAL = 0.01, 0.05
HOUR = 3600.0


@pytest.mark.parametrize("seconds", [-HOUR, HOUR])
def test_a_clock_that_is_set_moves_no_sample_and_is_told(
    cli: Cli,
    tmp_path: Path,
    times: Callable[[int, int], int],
    note_fault: Callable[[Row], None],
    seconds: float,
) -> None:
    tried = times(1, 10)
    for number in range(tried):
        out, preload = tmp_path / f"out-{number}", Preload(cli, tmp_path)
        before = time.time()
        recorder = _record(cli, out)
        path = stepping(out)
        preload.step(seconds)
        found = _stopped(cli, out, path, recorder, "clock-stepped")
        (text,) = [text for kind, text in found.events if kind == "clock-stepped"]
        assert f"by {HOUR / 60:.0f} min" in text
        assert _evenly(found)
        started = found.meta["clock"]["unix_ns"] / 1e9
        assert abs(started - before) < HOUR / 2, "of before it was set"
        assert "its clock was set" in " ".join(cli("show", path).stdout.split())
    how = "forwards" if seconds > 0 else "backwards"
    lost = "nothing; no sample moved"
    note_fault(Row("clock", f"wall clock set {how} by an hour", tried, lost, "nothing", text))


def test_a_machine_that_slept_is_told_and_no_sample_is_of_that_time(
    cli: Cli, tmp_path: Path, times: Callable[[int, int], int], note_fault: Callable[[Row], None]
) -> None:
    tried = times(1, 10)
    for number in range(tried):
        out, preload = tmp_path / f"out-{number}", Preload(cli, tmp_path)
        recorder = _record(cli, out)
        path = stepping(out)
        preload.suspend(HOUR)
        found = _stopped(cli, out, path, recorder, "suspended")
        assert "clock-stepped" not in found.kinds
        (text,) = [text for kind, text in found.events if kind == "suspended"]
        assert f"for {HOUR / 60:.0f} min" in text
        assert found.ticks[-1] < HOUR * 1e9, "times leave it out"
        assert "the machine slept" in " ".join(cli("show", path).stdout.split())
    lost = "nothing: the time of sleep is no time of the run"
    note_fault(Row("clock", "machine suspended for an hour", tried, lost, "nothing", text))


def test_a_recorder_and_workload_that_stood_still_show_a_gap_as_a_gap(
    cli: Cli, tmp_path: Path, times: Callable[[int, int], int], note_fault: Callable[[Row], None]
) -> None:
    tried, pause = times(1, 10), 2.0
    for number in range(tried):
        out = tmp_path / f"out-{number}"
        recorder = _record(cli, out)
        path = stepping(out)
        samples = len(kept(path).ticks)
        until(lambda path=path, samples=samples: len(kept(path).ticks) > samples)
        pids = running(cli)
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        until(lambda pids=pids: all(_stands(pid) for pid in pids))
        begun = time.monotonic()
        time.sleep(pause)  # this is the fault
        ended = time.monotonic()
        for pid in pids:
            os.kill(pid, signal.SIGCONT)
        found = _stopped(cli, out, path, recorder, "interval-missed")
        base = found.meta["clock"]["monotonic_ns"]
        start, end = int(begun * 1e9) - base, int(ended * 1e9) - base
        inside = [t for t in found.ticks if start < t < end]
        assert inside == []
        (told_of,) = [text for kind, text in found.events if kind == "interval-missed"][:1]
        assert _graph(path, start, end) == [None], "no value is drawn there"
        with SessionReader(path) as reader:
            summary = summarise(reader)
        assert summary.metrics["hw.cpu.utilization"].coverage is not None
        assert summary.metrics["hw.cpu.utilization"].coverage < 1.0
    lost = f"the samples of the {pause:.0f} s, which stay a gap"
    note_fault(
        Row("clock", "recorder and workload stopped (SIGSTOP)", tried, lost, "nothing", told_of)
    )


def _record(cli: Cli, out: Path):  # type: ignore[no-untyped-def]
    options = ("--quiet", "--interval", INTERVAL, "--out", out)
    return cli.start("--record", *options, *workload(10**6, PERIOD))


def _stopped(cli: Cli, out: Path, path: Path, recorder: subprocess.Popen[str], kind: str) -> Kept:
    """What is kept of the run, which is stopped once an event of the kind, and more steps, came."""
    until(lambda: kind in events(path))
    reached = len(kept(path).steps)
    until(lambda: len(kept(path).steps) > reached)
    cli("stop", path)
    _, said = recorder.communicate(timeout=120)
    assert recorder.returncode == 0, said
    nothing_left(cli, out)
    found = kept(path)
    in_order(found)
    assert found.status.state is State.STOPPED
    return found


def _stands(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T"


def _evenly(found: Kept) -> bool:
    """Whether no two samples lie an hour apart, or the wrong way round."""
    return all(0 < after - before < HOUR / 2 * 1e9 for before, after in pairwise(found.ticks))


def _graph(path: Path, start: int, end: int) -> list[float | None]:
    """What a screen draws of the middle of that time."""
    margin = (end - start) // 4
    with SessionReader(path) as reader:
        (channel,) = [
            row.id
            for row in reader.channels()
            if (row.device, row.metric) == ("cpu", "hw.cpu.utilization")
        ]
        times, values = zip(*rows_of(reader, [channel]), strict=True)
    return column_means(times, values, Window(start + margin, end - margin, 1), INTERVAL)
