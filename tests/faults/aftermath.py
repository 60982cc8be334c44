"""What a fault left: in the session, in folders, and running."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.models import JSON
from gpuwatch.session.reading.reader import SessionReader, read_meta
from gpuwatch.session.reading.status import Status, status
from gpuwatch.session.study.removal import OF_A_STUDY
from tests.conftest import Cli
from tests.session.samples import step_numbers, times_of
from tests.waiting import until

STEPS = Path(__file__).parents[1] / "cli" / "steps.py"
PATIENCE = 60.0
"""Seconds until what must happen is given up on; nothing here waits for it to pass."""


def sessions(out: Path) -> list[Path]:
    return sorted(out.glob("*/*.gpuwatch"))


def workload(steps: int, period: float, code: int = 0) -> list[str]:
    """A program that prints a step line and a log line every ``period`` seconds."""
    return ["--", sys.executable, str(STEPS), str(steps), str(period), str(code)]


@dataclass(frozen=True)
class Kept:
    """All that a session holds of a run, and what is derived from it."""

    meta: Mapping[str, JSON]
    status: Status
    steps: list[int]
    step_seconds: list[float]
    """Of every step that told its time."""
    log: list[str]
    ticks: list[int]
    """``(n, t)``, in order."""
    events: list[tuple[str, str]]
    """Kind and text, in order."""
    notice: str | None
    newest: float
    """``CLOCK_MONOTONIC`` in seconds of the newest step, log line or sample."""

    @property
    def kinds(self) -> list[str]:
        return [kind for kind, _ in self.events]


def short_id(path: Path) -> str:
    """What finds the session again in a command."""
    return str(read_meta(path)["session"]["id"])[:8]


def kept(path: Path) -> Kept:
    """Read the whole session, and make of it what ``gpuwatch show`` makes."""
    with SessionReader(path) as reader:
        meta = reader.meta()
        steps, log = list(reader.all_steps()), reader.log(limit=10**6)
        ticks = times_of(reader)
        events = [(row.kind, row.text) for row in reader.events(limit=10**6)]
        summarise(reader)
        moments = [row.t for row in steps] + [row.t for row in log] + ticks
        return Kept(
            meta=meta,
            status=status(meta, path),
            steps=step_numbers(reader),
            step_seconds=[value for row in steps for value in row.seconds or ()],
            log=[row.text for row in log],
            ticks=ticks,
            events=events,
            notice=reader.notice,
            newest=(meta["clock"]["monotonic_ns"] + max(moments, default=0)) / 1e9,
        )


def log(path: Path) -> list[str]:
    """What the workload printed, without its step lines."""
    with SessionReader(path) as reader:
        return [row.text for row in reader.log(limit=10**6)]


def events(path: Path) -> list[str]:
    """The kinds of what happened, in order."""
    with SessionReader(path) as reader:
        return [row.kind for row in reader.events(limit=10**6)]


def in_order(found: Kept) -> None:
    """What was kept is the beginning of the run: once, in order, nothing between it missing."""
    assert found.steps == list(range(1, len(found.steps) + 1))
    assert found.log == [f"log line {n}" for n in range(1, len(found.log) + 1)]
    times = found.ticks
    assert times == sorted(set(times))


def complete(found: Kept, steps: int) -> None:
    """Every step and line of the run, once and in order."""
    in_order(found)
    assert (len(found.steps), len(found.log)) == (steps, steps)


def started(path: Path) -> bool:
    """Whether the session names the process that holds the workload."""
    with SessionReader(path) as reader:
        return bool((reader.meta().get("handle") or {}).get("holder"))


def stepping(out: Path, number: int = 1) -> Path:
    """Wait until the first step of session ``number`` is in its file; the file."""
    until(lambda: len(sessions(out)) >= number)
    path = sessions(out)[number - 1]

    def has_steps() -> bool:
        with SessionReader(path) as reader:
            return reader.last_step() >= 0

    until(has_steps)
    return path


def running(cli: Cli) -> list[int]:
    """Every process that lives in the test's home: recorder, shim, workload, screen."""
    mark, found = f"HOME={cli.home}".encode(), []
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            variables = Path(f"/proc/{entry}/environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if mark in variables:
            found.append(int(entry))
    return found


def left_behind(cli: Cli, out: Path) -> list[str]:
    """What is neither a session nor a summary: processes, folders of runs, odd files."""
    left = [f"process {pid}" for pid in running(cli)]
    left += [f"run {each.name}" for each in run_folders(cli)]
    for folder in out.iterdir() if out.is_dir() else ():
        names = {each.name for each in folder.iterdir()}
        odd = {name for name in names - OF_A_STUDY if not name.endswith(".gpuwatch")}
        left += [f"file {name}" for name in sorted(odd)]
    return left


def nothing_left(cli: Cli, out: Path) -> str:
    """``nothing``, once what is ending has ended."""
    until(lambda: not running(cli))
    assert left_behind(cli, out) == []
    return "nothing"


def run_folders(cli: Cli) -> list[Path]:
    home = cli.home / ".local/state/gpuwatch/runs"
    return sorted(home.iterdir()) if home.is_dir() else []


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    os.kill(pid, number)
