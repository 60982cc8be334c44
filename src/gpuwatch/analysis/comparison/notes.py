"""Notes on sessions that affect the ratios between them."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.hardware.profile import derived_times
from gpuwatch.analysis.summary.identity import (
    at_once,
    baseline,
    headings,
    parameter_text,
    settings,
    unknown_gpus,
    used_gpus,
)
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.session.reading.status import State

ONE_RUN_EACH = "one run each: this describes the runs; it does not say which is faster"
_NOT_WHOLE = frozenset({State.LOST, State.IN_PART})
"""States of a run whose session says too little to be compared."""


def session_notes(sessions: Sequence[Summary]) -> tuple[str, ...]:
    """Notes on decisive differences between sessions, and each session's own notes."""
    notes = []
    if len({str(session.workload.get("name")) for session in sessions}) > 1:
        notes.append("different workloads: ratios of times and rates mean little")
    else:
        notes += _parameter_notes(sessions)
    used = [
        tuple(sorted(str(gpu.uuid or gpu.name) for gpu in used_gpus(session)))
        for session in sessions
        if not unknown_gpus(session)
    ]
    if len(set(used)) > 1:
        notes.append("not on the same GPU: even identical cards differ by several per cent")
    for session in sessions:
        own = [*session.notes, *_profile_notes(session)]
        if session.status.exit_code not in (0, None) or session.status.state in _NOT_WHOLE:
            own.insert(0, session.status.text)
        named = f"{session.label}: " if len(sessions) > 1 else ""
        notes += [f"{named}{note}" for note in own]
    if at_once(sessions):
        notes.append("run at the same time on the same machine: they disturbed each other")
    base = baseline(sessions)
    if len(sessions) > 1 and base is not None:
        name = headings(sessions)[base]
        notes.append(f"ratios (×…) are against {name}; none from or to a run that failed")
    if len(sessions) > 1:
        notes.append(ONE_RUN_EACH)
    return tuple(notes)


def _profile_notes(session: Summary) -> list[str]:
    """Notes on the counters and on an imported profile."""
    counters, profile = session.counters, session.profile
    notes = [] if counters is None else [f"counters: {note}" for note in counters.notes]
    if profile is not None and session.workload.get("kind") == "import":
        source = profile.time_source
        own = [*([derived_times(source)] if source else []), *profile.notes]
        notes += [f"profile: {note}" for note in own]
    return notes


def _parameter_notes(sessions: Sequence[Summary]) -> list[str]:
    parameters = [settings(session) for session in sessions]
    keys = sorted({key for each in parameters for key in each})
    differing = [key for key in keys if len({str(each.get(key)) for each in parameters}) > 1]
    return [
        f"different {key}: "
        + " against ".join(parameter_text(each.get(key)) for each in parameters)
        for key in differing
    ]
