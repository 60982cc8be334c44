"""The identity of a session: its GPUs, settings and time, and what tells it from others."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gpuwatch.analysis.summary.summary import DeviceSummary, Summary
from gpuwatch.core.models import JOINED_JOB, JSON, mapping
from gpuwatch.core.text import clean
from gpuwatch.session.reading.status import State

_NO_TRAINING = frozenset({"profile", "counters", "device", "data", "download"})
"""Settings that do not affect the timed steps, or whose outcome ``run`` reports."""
_LONGEST = 30
"""Most characters of a heading."""
_CLOCK_STEP = 1.0
"""Seconds by which the clock may be adjusted between runs."""


def used_gpus(session: Summary) -> list[DeviceSummary]:
    """The GPUs that the run used."""
    return [device for device in session.devices if device.used and device.kind == "gpu"]


def unknown_gpus(session: Summary) -> bool:
    """Whether it is unknown which of the watched GPUs the run used, if any."""
    return any(device.used is None for device in session.devices)


def device_names(session: Summary) -> list[str]:
    """Product names of the run's GPUs, else of the machine's CPU; where it is not known which GPUs
    it used, if any, those of all."""
    if unknown := dict.fromkeys(device.name for device in session.devices if device.used is None):
        return [f"GPU use not known ({', '.join(unknown)})"]
    gpus = [gpu.name for gpu in used_gpus(session)]
    return gpus or [device.name for device in session.devices if device.kind == "cpu"][:1]


def baseline(sessions: Sequence[Summary]) -> int | None:
    """Index of the first session that did not fail; ``None``: all failed."""
    return next((at for at, session in enumerate(sessions) if sound(session)), None)


def sound(session: Summary) -> bool:
    """Whether the run did not fail: it is live, finished, or was stopped."""
    status = session.status
    return status.live or status.state in (State.FINISHED, State.STOPPED)


def session_title(session: Summary) -> str:
    """The session's label; of a recording of the devices alone, the name of the machine."""
    workload = session.workload
    if workload.get("kind") != "machine" or JOINED_JOB in mapping(workload.get("parameters")):
        return session.label
    return clean(str(mapping(session.facts.get("host")).get("host.name") or "a machine"))


def work_name(session: Summary) -> str:
    """The label of the run's command, else the name of what ran."""
    workload = session.workload
    return str(workload.get("label") or workload.get("name") or session.label)


def headings(sessions: Sequence[Summary]) -> list[str]:
    """Short, unique column headings for the sessions: those of one label have the settings in which
    they differ, such as a sweep's values."""
    names = set(map(work_name, sessions))
    titles = [
        session.given.name
        or clean(session.environment.get("label") if len(names) == 1 else session_title(session))
        for session in sessions
    ]
    short_names = []
    for title, session in zip(titles, sessions, strict=True):
        same = [s for s, other in zip(sessions, titles, strict=True) if other == title]
        own = _distinctive(session, same)
        shown = own if len(set(titles)) == 1 else [title, *own]
        name = ", ".join(shown or [title])
        cut = f"{name[: _LONGEST - 1].rstrip()}…"
        short_names.append(name if len(name) <= _LONGEST else cut)
    return [
        f"{name} {clean(s.id)[:6]}" if short_names.count(name) > 1 else name
        for name, s in zip(short_names, sessions, strict=True)
    ]


def _distinctive(session: Summary, others: Sequence[Summary]) -> list[str]:
    """The settings that were given to a session and differ among ``others``: ``dtype bfloat16``."""
    own, *given = (mapping(each.workload.get("parameters")) for each in (session, *others))
    return [
        clean(f"{key.replace('_', ' ')} {own.get(key, 'default')}")
        for key in dict.fromkeys(itertools.chain(*given))
        if key not in _NO_TRAINING and any(each.get(key) != own.get(key) for each in given)
    ]


def at_once(sessions: Sequence[Summary]) -> bool:
    """Whether two sessions on the same host overlap in time by more than a second.

    A shorter overlap may come from a clock adjustment. Sessions of an unknown host are ignored.
    """
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
    """The run's settings: its flags, overridden by what it reported itself."""
    return {**mapping(session.workload.get("parameters")), **mapping(session.run.get("parameters"))}


def training(session: Summary) -> dict[str, JSON]:
    """The settings that define the work of a step."""
    return {
        key: value
        for key, value in settings(session).items()
        if key not in _NO_TRAINING and value is not None and value is not False
    }


def parameter_text(value: JSON) -> str:
    """A parameter's value in words; ``None`` is the workload's default."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "the default" if value is None else str(value)
