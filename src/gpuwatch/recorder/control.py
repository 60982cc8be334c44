"""Runs a recording to its end: signals, time limits, and the resulting exit code."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

from gpuwatch.core.errors import ExitCode
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.processes import identify, when_ended
from gpuwatch.core.signals import handled
from gpuwatch.core.text import to_paste
from gpuwatch.own_command import CAPSULE, OWN_COMMAND
from gpuwatch.recorder.recording import Outcome, Recording
from gpuwatch.session.reading.status import SUMMARY_OF, signal_name
from gpuwatch.session.study.outcomes import TIME_LIMIT
from gpuwatch.session.study.study_folder import GAVE_UP
from gpuwatch.session.writing.write_hints import write_hint

ONE_REQUEST_SECONDS = 1.0
"""Signals that follow the first one within this time count as the same request."""
_LOOK_SECONDS = 0.05
_EXIT_BY_ERROR = {"usage": ExitCode.USAGE, "environment": ExitCode.NOT_AVAILABLE}


class Stopped(BaseException):
    """A stop was requested before the run began. A ``BaseException``, so that nothing handles it as
    an error of a runner."""


@dataclass
class Stop:
    """A stop requested by a signal, a time limit or another process; shared with handlers."""

    why: str | None = None
    number: int | None = None
    recording: Recording | None = None
    unsaved: str | None = None
    """Why the end of the last session could not be written, if it could not."""
    _preparing: bool = False
    _asked: float | None = None
    """``CLOCK_MONOTONIC`` of the first request."""

    def ask(self, why: str, number: int | None = None) -> None:
        """End the run; at once if the first request is more than a second old."""
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
        """Let a stop interrupt the block, on the main thread: pulling an image may take long.

        Raises:
            Stopped: a stop was requested.
        """
        if self.why is not None:
            raise Stopped
        self._preparing = True
        try:
            yield
        finally:
            self._preparing = False

    def rest(self, seconds: float) -> bool:
        """Wait for ``seconds``; returns ``False`` if a stop was requested."""
        end = time.monotonic() + seconds
        # A stop comes from a signal handler, which must not touch a lock that we wait on.
        while self.why is None and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, _LOOK_SECONDS))
        return self.why is None


def stopping_signals(stop: Stop) -> AbstractContextManager[None]:
    """SIGINT, SIGTERM and SIGHUP stop the run cleanly; another, over a second later, at once."""

    def on_signal(number: int, _: object) -> None:
        stop.ask(signal.Signals(number).name, number)

    return handled(on_signal, signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_to_end(
    recording: Recording, stop: Stop, duration: float | None = None, while_pid: int | None = None
) -> Outcome:
    """Run a recording until its end, a stop, the time limit, or the end of another process.

    The time limit ends this run only; a stop also cancels all later runs.
    """
    stop.recording = recording
    if stop.why is not None:
        recording.stop(stop.why)
    limit: threading.Timer | None = None
    if duration is not None:
        limit = threading.Timer(duration, recording.stop, (f"{TIME_LIMIT} {duration:g}s",))
        limit.daemon = True
        limit.start()
    if while_pid is not None:
        ended = partial(stop.ask, f"process {while_pid} ended")

        def look() -> None:
            while Path(f"/proc/{while_pid}").exists():
                time.sleep(0.25)
            ended()

        process = identify(while_pid)
        if process is None or not when_ended(process, ended):
            threading.Thread(target=look, daemon=True).start()
    try:
        outcome = recording.run()
        stop.unsaved = outcome.unsaved
        return outcome
    finally:
        stop.recording = None
        if limit is not None:
            limit.cancel()


def exit_code_of(error: Mapping[str, JSON]) -> ExitCode:
    """The exit code for the error that a workload reported."""
    return _EXIT_BY_ERROR.get(str(error.get("kind")), ExitCode.RUN_FAILED)


def conclude(outcome: Outcome, say: Callable[[str], None]) -> ExitCode:
    """Tell the user how a recording ended; returns its exit code."""
    if outcome.unsaved:
        again = (
            f"; {write_hint(outcome.path)}, then `{to_paste('attach --record', outcome.path)}` "
            "writes the rest"
        )
        recovery = "" if _is_gone(outcome.path) else again
        say(f"{GAVE_UP}{outcome.unsaved}{recovery}")
        return ExitCode.RUN_FAILED
    result = outcome.result
    if outcome.missing and (outcome.stopped or (result and result.code == 0)):
        say(outcome.missing)
    if outcome.error and result and result.code != 0:
        hint = outcome.error.get("hint")
        say(f"error: {outcome.error.get('message')}" + (f"; {hint}" if hint else ""))
        return exit_code_of(outcome.error)
    if result is None or result.code == 0 or outcome.stopped:
        return ExitCode.DONE
    if result.launcher_failed:
        say(f"error: the workload could not be started: {result.text}")
        return ExitCode.NOT_AVAILABLE
    if result.out_of_memory:
        say("error: the kernel ended processes of the workload: out of memory")
        return ExitCode.RUN_FAILED
    reason = f": {result.text}" if result.text else ""
    if result.signal is not None:
        say(f"error: the workload was ended by {signal_name(result.signal)}{reason}")
    elif result.code is None:
        say(f"error: the end of the workload was not seen{reason}")
    else:
        say(f"error: the workload ended with exit code {result.code}{reason}")
    return ExitCode.RUN_FAILED


def _is_gone(path: Path) -> bool:
    """Whether the file was deleted; ``False`` if that cannot be checked."""
    try:
        path.stat()
    except OSError as error:
        return isinstance(error, FileNotFoundError)
    return False


def summarise(folder: Path, say: Callable[[str], None]) -> str:
    """Rewrite the study's summary in a separate process, as it imports more than a recorder.

    Returns its short form, as wide as the terminal; empty if it could not be written, or is written
    elsewhere because this is a capsule.
    """
    if CAPSULE is not None:
        return ""
    short = ""
    env = {
        "COLUMNS": str(shutil.get_terminal_size((80, 24)).columns),
        "OPENBLAS_NUM_THREADS": "1",  # more would only compete with the next run
        SUMMARY_OF: str(os.getpid()),
    }
    try:
        done = subprocess.run(
            [*OWN_COMMAND, "report", "--short", str(folder)],
            env={**os.environ, **env},
            capture_output=True,
            text=True,
            check=False,
        )
        short = done.stdout
        error_text = None
        if done.returncode != 0:
            code = done.returncode  # negative: by a signal, and nothing is printed
            ended = f"by {signal_name(-code)}" if code < 0 else f"with exit code {code}"
            error_text = done.stderr.strip()[-500:] or f"it ended {ended}"
    except OSError as error:
        error_text = error.strerror
    if error_text is not None:
        later = to_paste("report", folder)
        _, _, why = error_text.rpartition("gpuwatch: error: ")
        say(why if later in why else f"the summary was not written: {why}; later: {later}")
    return short
