"""Running a recording to its end: signals, time limits, and what the end means for the caller."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from gpuwatch.deferred import dataclass
from gpuwatch.errors import ExitCode
from gpuwatch.models import JSON
from gpuwatch.own_command import OWN_COMMAND
from gpuwatch.processes import identify, when_ended
from gpuwatch.recorder.run import Outcome, Recording
from gpuwatch.session.ends import TIME_LIMIT
from gpuwatch.session.room import room
from gpuwatch.session.status import signal_name
from gpuwatch.text import to_paste

ONE_REQUEST_SECONDS = 1.0
"""Signals that follow the first one so soon ask for nothing new, whoever sends them."""
_LOOK_SECONDS = 0.05
_EXIT_BY_ERROR = {"usage": ExitCode.USAGE, "environment": ExitCode.NOT_AVAILABLE}


class Stopped(BaseException):
    """A stop was asked for before the run began. No error of a runner: nothing may handle it as
    one."""


@dataclass
class Stop:
    """A stop asked for by a signal, a time limit or another process; shared with handlers."""

    why: str | None = None
    number: int | None = None
    recording: Recording | None = None
    unsaved: str | None = None
    """Why the end of the last session could not be written, if it could not."""
    _preparing: bool = False
    _asked: float | None = None
    """``CLOCK_MONOTONIC`` of the first request."""

    def ask(self, why: str, number: int | None = None) -> None:
        """End the run; at once where this was asked for over a second ago."""
        now = time.monotonic()
        self._asked = self._asked or now
        self.why = self.why or why
        self.number = self.number or number
        if self.recording is not None:
            self.recording.stop(self.why, at_once=now - self._asked > ONE_REQUEST_SECONDS)
        elif self._preparing:
            self._preparing = False
            raise Stopped

    @contextmanager
    def preparing(self) -> Iterator[None]:
        """A stop breaks off what is done meanwhile, on the main thread: fetching an image can take
        as long as it likes.

        Raises:
            Stopped: it was asked for.
        """
        if self.why is not None:
            raise Stopped
        self._preparing = True
        try:
            yield
        finally:
            self._preparing = False

    def rest(self, seconds: float) -> bool:
        """Wait so long; whether no stop was asked for meanwhile."""
        end = time.monotonic() + seconds
        # A stop comes by a signal, whose handler may not touch a lock that is waited on.
        while self.why is None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
        return self.why is None


@contextmanager
def stopping_signals(stop: Stop) -> Iterator[None]:
    """SIGINT, SIGTERM and SIGHUP stop the run cleanly; one more, over a second later, at once."""

    def on_signal(number: int, _: object) -> None:
        stop.ask(signal.Signals(number).name, number)

    before = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:  # nohup, or detached
            before[number] = signal.signal(number, on_signal)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def run_to_end(
    recording: Recording, stop: Stop, duration: float | None = None, while_pid: int | None = None
) -> Outcome:
    """Run a recording until its end, a stop, the time limit, or the end of another process.

    The time limit is that of this run; a stop is for all that would come after it as well.
    """
    stop.recording = recording
    if stop.why is not None:
        recording.stop(stop.why)
    timers: list[threading.Thread] = []
    if duration is not None:
        timers.append(threading.Timer(duration, recording.stop, (f"{TIME_LIMIT} {duration:g}s",)))
    if while_pid is not None:
        ended = partial(stop.ask, f"process {while_pid} ended")
        process = identify(while_pid)
        if process is None or not when_ended(process, ended):
            timers.append(threading.Thread(target=_look_for, args=(while_pid, ended)))
    for timer in timers:
        timer.daemon = True
        timer.start()
    try:
        outcome = recording.run()
        stop.unsaved = outcome.unsaved
        return outcome
    finally:
        stop.recording = None
        for timer in timers:
            if isinstance(timer, threading.Timer):
                timer.cancel()


def exit_code_of(error: Mapping[str, JSON]) -> ExitCode:
    """The exit code that goes with a workload's own word on why it stopped."""
    return _EXIT_BY_ERROR.get(str(error.get("kind")), ExitCode.RUN_FAILED)


def conclude(outcome: Outcome, say: Callable[[str], None]) -> ExitCode:
    """Tell how a recording ended; returns its exit code."""
    if outcome.unsaved:
        again = (
            f"; {room(outcome.path)}, then `{to_paste('attach --record', outcome.path)}` "
            "writes the rest"
        )
        told = "" if _is_gone(outcome.path) else again
        say(f"the end of the session could not be saved: {outcome.unsaved}{told}")
        return ExitCode.RUN_FAILED
    result = outcome.result
    if outcome.missing and (outcome.stopped or (result and result.code == 0)):
        say(outcome.missing)
    if outcome.error and result and result.code != 0:
        mend = outcome.error.get("mend")
        say(f"error: {outcome.error.get('message')}" + (f"; {mend}" if mend else ""))
        return exit_code_of(outcome.error)
    if result is None or result.code == 0 or outcome.stopped:
        return ExitCode.DONE
    if result.launcher_failed:
        say(f"error: the workload could not be started: {result.text}")
        return ExitCode.NOT_AVAILABLE
    if result.out_of_memory:
        say("error: the kernel ended processes of the workload: out of memory")
        return ExitCode.RUN_FAILED
    why = f": {result.text}" if result.text else ""
    if result.signal is not None:
        say(f"error: the workload was ended by {signal_name(result.signal)}{why}")
    elif result.code is None:
        say(f"error: the end of the workload was not seen{why}")
    else:
        say(f"error: the workload ended with exit code {result.code}{why}")
    return ExitCode.RUN_FAILED


def _is_gone(path: Path) -> bool:
    """``False`` where it cannot be seen."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def summarise(folder: Path, say: Callable[[str], None]) -> str:
    """Rewrite the study's summary, in a process of its own: it needs more than recording does.

    Returns what it says in short, as wide as the terminal; empty where it could not be made.
    """
    told = ""
    width = str(shutil.get_terminal_size((80, 24)).columns)
    try:
        done = subprocess.run(
            [*OWN_COMMAND, "report", "--short", str(folder)],
            # More threads would only spin beside the next run.
            env={**os.environ, "COLUMNS": width, "OPENBLAS_NUM_THREADS": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        told = done.stdout
        why = done.stderr.strip()[-500:] if done.returncode != 0 else None
    except OSError as error:
        why = error.strerror
    if why is not None:
        say(f"the summary could not be written: {why}")
        say(f"write it afterwards: {to_paste('report', folder)}")
    return told


def _look_for(pid: int, ended: Callable[[], None]) -> None:
    while Path(f"/proc/{pid}").exists():
        time.sleep(0.25)
    ended()
