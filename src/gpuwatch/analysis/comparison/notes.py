"""Notes on one session."""

from __future__ import annotations

from gpuwatch.analysis.hardware.profile import derived_times
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.session.reading.status import State

_NOT_WHOLE = frozenset({State.LOST, State.IN_PART})
"""States of a run whose session says too little to be compared."""


def session_notes(session: Summary) -> list[str]:
    """The notes on one session."""
    own = [*session.notes, *_profile_notes(session)]
    if session.status.exit_code not in (0, None) or session.status.state in _NOT_WHOLE:
        own.insert(0, session.end)
    return own


def _profile_notes(session: Summary) -> list[str]:
    """Notes on the counters and on an imported profile."""
    counters, profile = session.counters, session.profile
    notes = [] if counters is None else [f"counters: {note}" for note in counters.notes]
    if profile is not None and session.workload.get("kind") == "import":
        source = profile.time_source
        own = [*([derived_times(source)] if source else []), *profile.notes]
        notes += [f"profile: {note}" for note in own]
    return notes
