"""How a container ended, from what the daemon says of it."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Mapping

import docker

from gpuwatch.core.models import JSON, Result
from gpuwatch.runners.docker import timestamps

_NOT_STARTED = re.compile(
    rb"\[FATAL tini \(\d+\)\] exec (?P<program>.+) failed: (?P<why>.+)"
    rb"|ERROR \(catatonit:\d+\): failed to exec pid1: (?P<reason>.+)"
)
"""What the container's init says when the workload's program cannot be executed."""

_NOT_EXECUTED = (126, 127)
_PROMPT_NS = 1_000_000_000
"""A daemon that is there tells of an end within a fraction of it; to start one takes longer."""


def over(state: Mapping[str, JSON]) -> bool:
    """Whether a container's ``State`` is one that it does not leave by itself."""
    return state.get("Status") in ("exited", "dead", "created")


def seen(api: docker.APIClient, name: str, state: Mapping[str, JSON]) -> bool:
    """Whether the daemon tells of the end of a container that it was there: by an event of that
    moment. One that comes back later tells of it then, or not at all, or has forgotten it.

    Raises:
        DockerException, OSError: the daemon did not answer.
    """
    finished = timestamps.unix_ns(str(state.get("FinishedAt") or ""))
    wanted = {"container": name, "event": "die"}
    # It waits for the end of that time, lest what happened in this second be left out.
    events = api.events(since=1, until=int(time.time()) + 1, filters=wanted, decode=True)
    with contextlib.closing(events):
        return finished is not None and any(
            abs(each["timeNano"] - finished) < _PROMPT_NS for each in events
        )


def result(
    state: Mapping[str, JSON],
    *,
    seen_dead_ns: int | None,
    not_before: int,
    cpu: tuple[float, float] | None,
    last_words: bytes,
    note: str | None,
    output_until: int | None,
) -> Result:
    """The result of a container that is :func:`over`; ``cpu`` is user and system seconds; ``note``
    says why its output after ``output_until`` is missing, if it is.

    ``seen_dead_ns`` is when its processes were seen to be gone: a daemon that was away tells the
    time of its return.
    """
    finished = timestamps.unix_ns(str(state.get("FinishedAt") or ""))
    times = [seen_dead_ns, None if finished is None else timestamps.monotonic_ns(finished)]
    known = [t for t in times if t is not None]
    t = max(not_before, min(known, default=time.monotonic_ns()))
    failure = _failure(state, last_words)
    user, system = cpu or (None, None)
    return Result(
        code=None if failure else state.get("ExitCode"),
        signal=None,
        t=t,
        user_seconds=user,
        sys_seconds=system,
        out_of_memory=bool(state.get("OOMKilled")),
        cpu_is_bound=cpu is not None,
        launcher_failed=failure is not None,
        text=failure or note,
        output_until=None if failure else output_until,
    )


def _failure(state: Mapping[str, JSON], last_words: bytes) -> str | None:
    """Why the workload was never executed; ``None``: it was."""
    if state.get("Status") == "created":
        return str(state.get("Error") or "its container was made and never started")
    said = _NOT_STARTED.search(last_words) if state.get("ExitCode") in _NOT_EXECUTED else None
    if said is None:
        return None
    why = (said["why"] or said["reason"]).decode(errors="replace").strip()
    program = (said["program"] or b"the program").decode(errors="replace")
    return f"{program} cannot be executed in the image: {why}"
