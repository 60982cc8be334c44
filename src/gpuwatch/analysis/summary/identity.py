"""What a session is of: its GPUs, its settings, its time; what tells it from another."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gpuwatch.analysis.summary.summary import DeviceSummary, Summary
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.session.reading.status import State

_NO_TRAINING = frozenset({"profile", "counters", "device", "data", "download"})
"""What is looked at after the timed steps, and what ``run`` tells the outcome of."""
_LONGEST = 30
"""Characters of a heading."""
_CLOCK_STEP = 1.0
"""Seconds by which clocks are set while runs go on."""


def used_gpus(session: Summary) -> list[DeviceSummary]:
    """The GPUs that the run used."""
    return [device for device in session.devices if device.used and device.kind == "gpu"]


def unknown_gpus(session: Summary) -> bool:
    """Whether it is not known which of the watched GPUs are the run's, if any."""
    return any(device.used is None for device in session.devices)


def device_names(session: Summary) -> list[str]:
    """The products that the run used: its GPUs, else the machine's CPU."""
    if unknown_gpus(session):
        return ["GPU not known"]
    gpus = [gpu.name for gpu in used_gpus(session)]
    return gpus or [each.name for each in session.devices if each.kind == "cpu"][:1]


def baseline(sessions: Sequence[Summary]) -> int | None:
    """The place of the first session that others may be compared with; ``None``: all failed."""
    return next((at for at, session in enumerate(sessions) if sound(session)), None)


def sound(session: Summary) -> bool:
    """Whether what the session says is of a run that did not fail."""
    status = session.status
    return status.live or status.state in (State.FINISHED, State.STOPPED)


def headings(sessions: Sequence[Summary]) -> list[str]:
    """What each session is called above its column: short, and no two the same."""
    names = {str(session.workload.get("name")) for session in sessions}
    found = [
        _short(
            session.given.name
            or clean(session.environment.get("label") if len(names) == 1 else session.label)
        )
        for session in sessions
    ]
    return [
        f"{name} {clean(s.id, 6)}" if found.count(name) > 1 else name
        for name, s in zip(found, sessions, strict=True)
    ]


def _short(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1].rstrip()}…"


def at_once(sessions: Sequence[Summary]) -> bool:
    """Whether two of the sessions overlap in time on one host by more than a second, which a clock
    that is set may make of runs one after the other. Those of an unknown host are left out."""
    spans = sorted(
        (str(host), s.started_unix, s.started_unix + s.seconds)
        for s in {session.id: session for session in sessions}.values()
        if s.started_unix is not None and s.seconds is not None
        if (host := mapping(s.facts.get("host")).get("host.name")) is not None
    )
    return any(
        first[0] == second[0] and second[1] + _CLOCK_STEP < first[2]
        for first, second in itertools.pairwise(spans)
    )


def settings(session: Summary) -> dict[str, JSON]:
    """What it ran with: the flags that were given, and over them what it said of itself."""
    return {
        **mapping(session.workload.get("parameters")),
        **mapping(session.run.get("parameters")),
    }


def training(session: Summary) -> dict[str, JSON]:
    """Of the settings those that decide what a step is; what they resolve to is reported apart."""
    return {
        key: value
        for key, value in settings(session).items()
        if key not in _NO_TRAINING and value is not None and value is not False
    }


def told(value: JSON) -> str:
    """The value of a parameter; one that is not recorded was left to the workload's default."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "the default" if value is None else str(value)
