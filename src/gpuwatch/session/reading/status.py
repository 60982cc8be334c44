"""Derives the status of a run from its session and from the processes that still live.

The file never says "running": a killed recorder could not correct it.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from dataclasses import replace
from enum import Enum
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.processes import ProcessId
from gpuwatch.core.text import clean, to_paste
from gpuwatch.core.typed import typed
from gpuwatch.session import in_part
from gpuwatch.session.placement import JobState, Placement
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.reading.bounded_connection import BoundedConnection
from gpuwatch.session.reading.parsed import json_of

SILENT_SECONDS = 10.0
"""A session recorded elsewhere counts as lost if it was not written for this long."""
_LEAST_FREE = 16 << 20
"""Free bytes of a disk below which what waits in memory may have no room."""


class State(str, Enum):
    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    FINISHED = "finished"
    FAILED = "failed"
    KILLED = "killed"
    TIMED_OUT = "timed out"
    """Its place ended it when its time was over."""
    STOPPED = "stopped"
    LOST = "lost"
    IN_PART = "fetched in part"
    """Recorded elsewhere to its end, of which a few figures are here."""
    UNKNOWN = "unknown"
    """It runs elsewhere, and whether it still does cannot be told from here."""


FAILED = (State.FAILED, State.KILLED, State.TIMED_OUT)
BAD = (*FAILED, State.LOST, State.IN_PART)
"""States of a run that did not end well."""


@dataclass(frozen=True)
class Status:
    state: State
    text: str
    """One sentence: what happened and, if something can be done, the command."""
    exit_code: int | None = None
    """The workload's exit code, 128 + N after signal N; ``None`` while unknown."""
    live: bool = False
    """A recorder is writing it, so more may come."""
    warning: str = ""
    """Why a recorder that lives cannot write; also at the end of ``text``."""


_ENDS = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGKILL, signal.SIGTERM),
    *(signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS),
)
"""What ends programs: a shell's exit code tells of one."""
SUMMARY_OF = "GPUWATCH_SUMMARY_OF"
"""The variable with the PID of the recorder that has a summary written by this process."""
RUNNING = Status(State.RUNNING, "running", live=True)
STARTING = Status(State.STARTING, "starting", live=True)
_LIVE = {
    "queued": Status(State.QUEUED, "waiting for its scheduler", live=True),
    "starting": STARTING,
    "paused": Status(State.RUNNING, "running, but paused by somebody else", live=True),
    "lost": Status(
        State.LOST,
        "the run cannot be followed just now; its recorder waits for it to come back",
        live=True,
    ),
}


def status(meta: Mapping[str, JSON], path: Path) -> Status:
    """The state of the session that ``meta`` was read from."""
    result = meta.get("result")
    if isinstance(result, dict):
        return _told_to_end(meta, result, path) or _ended(result)
    if mapping(meta.get("workload")).get("kind") == "machine" and "closed" in meta:
        return Status(State.FINISHED, "recorded the machine", 0)
    if mapping(meta.get("workload")).get("kind") == "import" and "closed" in meta:
        return Status(State.FINISHED, "imported profile")
    placement = read_placement(path.parent)
    if placement is not None:
        return _placed(meta, path, placement)
    name = str(mapping(meta.get("session")).get("id") or path)
    recorder = process_id(meta.get("recorder"))
    alive = recorder.alive() if recorder else False
    if recorder is not None and alive is None:
        return _elsewhere(path, recorder.place)
    # Of a recorder that has a summary written no run goes on: it could not save the end.
    if recorder is not None and alive and str(recorder.pid) != os.environ.get(SUMMARY_OF):
        state = _LIVE.get(str(mapping(meta.get("run_state")).get("state")), RUNNING)
        full = _full(path, number(meta.get("interval_seconds")) or 0.0)
        return replace(state, text=f"{state.text}; {full}", warning=full) if full else state
    if goes_on_alone(meta):
        return Status(
            State.LOST,
            f"the recorder died, the workload still runs: {takes_over(name)}",
        )
    if meta.get("handle"):
        return Status(
            State.LOST,
            "the recorder died or could not save the end: "
            f"`{to_paste('attach --record', name)}` reads what is left of it, "
            f"`{to_paste('stop', name)}` ends what may still run",
        )
    return Status(State.LOST, "the recorder died")


def takes_over(name: str | Path) -> str:
    """What helps the run or study ``name`` that lost its recorder and goes on."""
    attach, stop = (to_paste(word, name) for word in ("attach --record", "stop"))
    return f"`{attach}` takes it over, `{stop}` ends it"


def _full(path: Path, interval: float) -> str:
    """That the disk is full, where nothing was written for a while; else empty."""
    try:
        silent = time.time() - path.stat().st_mtime
        disk = os.statvfs(path.parent)
    except OSError:
        return ""
    room = disk.f_bavail * disk.f_frsize >= _LEAST_FREE
    if room or silent <= max(SILENT_SECONDS, 4 * interval):
        return ""
    return f"nothing can be recorded: the disk of {clean(path.parent)} is full; free some space"


def _placed(meta: Mapping[str, JSON], path: Path, placement: Placement) -> Status:
    """The state of a run without a result that takes place elsewhere."""
    hint = f"; {placement.hint}" if placement.hint else ""
    if not placement.going_on and (told := in_part.of_session(path, placement.in_part)):
        text = f"fetched in part; what was left of it says: {told.text}{hint}"
        return Status(State.IN_PART, text)
    if not placement.going_on:
        text = f"its end was not seen: {placement.text}{hint}"
        return Status(State.LOST, text)
    if not placement.followed:
        again = to_paste("attach", path.parent.name)
        text = f"nobody here follows it on {placement.place}: `{again}` does"
        return Status(State.UNKNOWN, text)
    if placement.state is JobState.UNKNOWN:
        return Status(State.UNKNOWN, f"{placement.text}{hint}", live=True)
    if placement.state is JobState.ORPHANED:
        return Status(State.LOST, f"{placement.text}{hint}")
    text = f"running on {placement.where or placement.place}"
    state = _LIVE.get(str(mapping(meta.get("run_state")).get("state")))
    if state is not None:
        return replace(state, text=f"{state.text} ({text})")
    return Status(State.RUNNING, text, live=True)


def process_id(value: JSON) -> ProcessId | None:
    """The process that a session names; ``None`` if it is missing or malformed."""
    try:
        return typed(ProcessId, value)
    except (TypeError, ValueError):
        return None


def goes_on_alone(meta: Mapping[str, JSON]) -> bool:
    """Whether the workload still runs here without its recorder."""
    recorder = process_id(meta.get("recorder"))
    holder = process_id(mapping(meta.get("handle")).get("holder"))
    recorded = "result" in meta or (recorder is not None and recorder.alive() is not False)
    return not recorded and holder is not None and holder.alive() is True


def writer_alive(connection: BoundedConnection) -> bool:
    """Whether the recorder named in the file still runs here."""
    rows = connection.rows("SELECT value FROM meta WHERE key = 'recorder' LIMIT 1")
    recorder = process_id(json_of(rows[0][0])) if rows else None
    return recorder is not None and recorder.alive() is True


def _ended(result: Mapping[str, JSON]) -> Status:
    code, number = _int(result.get("code")), _int(result.get("signal"))
    if number is None and code is not None and code > 128 and code - 128 in _ENDS:
        number = code - 128
    exit_code = 128 + number if number is not None else code
    output_note = f"; {result.get('text')}" if _int(result.get("output_until")) is not None else ""
    if result.get("stopped"):
        return Status(State.STOPPED, _stopped(str(result["stopped"])) + output_note, exit_code)
    memory_note = " (out of memory)" if result.get("out_of_memory") else ""
    reason = f": {result['text']}" if result.get("text") else ""
    if number is not None:
        return Status(
            State.KILLED, f"ended by {signal_name(number)}{memory_note}{reason}", exit_code
        )
    if code == 0:
        return Status(State.FINISHED, f"finished{output_note}", 0)
    if result.get("launcher_failed"):
        return Status(State.FAILED, f"could not be started{reason}")
    if code is None:
        return Status(State.LOST, f"the end of the workload was not seen{reason}")
    return Status(State.FAILED, f"exit code {code}{memory_note}{reason}", exit_code)


def _told_to_end(meta: Mapping[str, JSON], result: Mapping[str, JSON], path: Path) -> Status | None:
    """Why a run elsewhere was told to end, as its place tells it; ``None``: it does not. Schedulers
    and gpuwatch itself end a job there by the same signal."""
    placement = read_placement(path.parent) if result.get("stopped") == "SIGTERM" else None
    if placement is None:
        return None
    began = number(mapping(meta.get("clock")).get("unix_ns")) or 0.0
    state = placement.ended_after((began + (number(result.get("t")) or 0.0)) / 1e9)
    if state is JobState.CANCELLED:
        return _ended({**result, "stopped": "stop"})
    if state is None or not state.cut_off:
        return None
    # The exit code is of how it took the signal.
    ended = State.TIMED_OUT if state is JobState.TIMED_OUT else State.KILLED
    return Status(ended, placement.text if state is placement.state else state.value)


def _stopped(reason: str) -> str:
    """Who or what stopped it."""
    if reason == "stop":  # by `gpuwatch stop`, also on a key of a screen
        return "stopped on request"
    return f"stopped by {reason}" if reason.startswith("SIG") else f"stopped: {reason}"


def _elsewhere(path: Path, place: str) -> Status:
    try:
        silent = time.time() - path.stat().st_mtime
    except OSError:
        silent = SILENT_SECONDS + 1
    if silent > SILENT_SECONDS:
        return Status(
            State.LOST,
            f"recorded on {place}; nothing was written for {SILENT_SECONDS:.0f} s, and whether it "
            "is still running cannot be checked here",
        )
    return Status(State.RUNNING, f"running on {place}", live=True)


def _int(value: JSON) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def signal_name(number: int) -> str:
    """Such as ``SIGKILL``, or ``signal 37`` for one without a name, like most real-time signals."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
