"""What a list of sessions says of one: cheap, from its small tables."""

from __future__ import annotations

from datetime import datetime, timezone

from gpuwatch.analysis.summary import steps_of
from gpuwatch.models import JSON
from gpuwatch.session.reader import SessionReader
from gpuwatch.session.status import status

_FIRST_STEP_LINES = 2000


def listing(reader: SessionReader) -> dict[str, JSON]:
    """Identity, status and speed; the speed over at most the first 2,000 step lines."""
    meta = reader.meta()
    session, clock = meta.get("session") or {}, meta.get("clock") or {}
    state = status(meta, reader.path)
    ended = (meta.get("result") or {}).get("t")
    last = reader.last_tick()
    if ended is None and last is not None:
        ended = last[1]
    steps = steps_of(list(reader.steps(limit=_FIRST_STEP_LINES)))
    unix = clock.get("unix_ns")
    started = (
        datetime.fromtimestamp(unix / 1e9, tz=timezone.utc).isoformat(timespec="seconds")
        if isinstance(unix, int) and 0 <= unix < 2**62
        else ""
    )
    return {
        "id": str(session.get("id", "")),
        "path": str(reader.path),
        "status": state.state.value,
        "status_text": state.text,
        "workload": str((meta.get("workload") or {}).get("name", "")),
        "environment": str((meta.get("environment") or {}).get("label", "")),
        "started": started,
        "seconds": ended / 1e9 if isinstance(ended, (int, float)) else None,
        "steps": reader.step_count(),
        "step_median_seconds": steps.median_seconds,
        "samples_per_second": steps.samples_per_second,
        "study": reader.path.parent.name,
    }
