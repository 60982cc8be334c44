"""Notes on one session."""

from __future__ import annotations

from gpuwatch.analysis.hardware.profile import derived_times
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.session.reading.status import State

_NOT_WHOLE = frozenset({State.LOST, State.IN_PART})
"""States of a run whose session says too little to be compared."""


def session_notes(session: Summary) -> list[str]:
    """The notes on one session."""
    own, counters, profile = list(session.notes), session.counters, session.profile
    if counters is not None:
        own += [f"counters: {note}" for note in counters.notes]
    if profile is not None and session.workload.get("kind") == "import":
        source = profile.time_source
        told = [*([derived_times(source)] if source else []), *profile.notes]
        own += [f"profile: {note}" for note in told]
    if session.status.exit_code not in (0, None) or session.status.state in _NOT_WHOLE:
        own.insert(0, session.end)
    return own
