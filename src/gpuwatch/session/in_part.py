"""A few figures of runs whose sessions stayed where they were recorded and are gone: less than 4 KB
of JSON, which a pod leaves behind.

``{"gpuwatch": 1, "more": 0, "runs": [[1, "finished", 12.3, 100, 0.0102, 6270.0, 1234567], ...]}``:
of each run what :data:`KEYS` names. It may come from anybody, and is only shown.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON

SCHEMA = 1
MOST_BYTES = 4000
"""Kubernetes cuts what a container leaves behind after 4,096."""
STATUSES = frozenset({"finished", "failed", "killed", "stopped", "lost"})
"""Statuses of a run that is over."""
_LARGEST = 1e18
_MOST_RUNS = 1_000_000


class Refused(ValueError):
    """It is not such a summary; the text says why, in a few words."""


@dataclass(frozen=True)
class RunInPart:
    """What is known of a run; ``None``: not known."""

    run: int
    """Its position in the plan, from 1."""
    status: str
    seconds: float | None
    """From its start to its end."""
    steps: int | None
    step_median_seconds: float | None
    samples_per_second: float | None
    peak_gpu_memory_bytes: float | None

    @property
    def text(self) -> str:
        """``finished after 0:12, 100 steps, median 10.2 ms``."""
        words = [self.status]
        if self.seconds is not None:
            words[0] += f" after {units.clock_time(round(self.seconds))}"
        if self.steps is not None:
            words.append(units.counted(self.steps, "step"))
        if self.step_median_seconds is not None:
            words.append(f"median {units.quantity(self.step_median_seconds, 's')}")
        if self.samples_per_second is not None:
            words.append(f"{units.digits(self.samples_per_second)} samples/s")
        if self.peak_gpu_memory_bytes is not None:
            words.append(f"peak GPU memory {units.binary(self.peak_gpu_memory_bytes)}")
        return ", ".join(words)


KEYS = tuple(RunInPart.__annotations__)
"""What a row has of a run, in its order."""


@dataclass(frozen=True)
class InPart:
    """What was left of the runs of a job."""

    runs: tuple[RunInPart, ...]
    more: int = 0
    """Runs that had no room."""


def document(part: InPart) -> dict[str, JSON]:
    """``part`` as JSON."""
    rows = [[getattr(run, key) for key in KEYS] for run in part.runs]
    return {"gpuwatch": SCHEMA, "more": part.more, "runs": rows}


def message(rows: Sequence[Mapping[str, JSON]]) -> str:
    """``rows``, each with :data:`KEYS`, as text of at most :data:`MOST_BYTES`; the last are left
    out where they have no room."""
    short = [[_short(row[key]) for key in KEYS] for row in rows]
    count = len(short)
    while True:
        found = {"gpuwatch": SCHEMA, "more": len(short) - count, "runs": short[:count]}
        text = json.dumps(found, separators=(",", ":"))
        if len(text) <= MOST_BYTES:
            return text
        count -= 1


def parse(text: str) -> InPart:
    """What a message says.

    Raises:
        Refused: it is none.
    """
    if len(text.encode("utf-8", "replace")) > MOST_BYTES:
        raise Refused(f"it has more than {MOST_BYTES} bytes")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise Refused("it is not JSON") from None
    return of_document(found)


def of_document(found: JSON) -> InPart:
    """
    Raises:
        Refused: it is not such a document.
    """
    if not isinstance(found, dict) or "gpuwatch" not in found:
        raise Refused("gpuwatch did not write it")
    if found["gpuwatch"] != SCHEMA:
        raise Refused("another version of gpuwatch wrote it")
    rows, more = found.get("runs"), _count(found.get("more"))
    if not isinstance(rows, list) or more is None:
        raise Refused("it names no runs")
    runs = tuple(map(_run, rows))
    if len({run.run for run in runs}) < len(runs):
        raise Refused("it names a run twice")
    return InPart(runs, more)


def of_session(path: Path, part: InPart | None) -> RunInPart | None:
    """What was left of the run of the session at ``path``, whose name begins with its number."""
    number = path.name.partition("-")[0]
    runs = () if part is None or not number.isdecimal() else part.runs
    return next((run for run in runs if run.run == int(number)), None)


def _run(row: JSON) -> RunInPart:
    if not isinstance(row, list) or len(row) != len(KEYS):
        raise Refused(f"a run does not have {len(KEYS)} values")
    index, status, seconds, steps, *rest = row
    run = _count(index)
    if run is None or not 0 < run <= _MOST_RUNS:
        raise Refused("a run has no number")
    if not isinstance(status, str) or status not in STATUSES:
        raise Refused("a run has no status")
    if steps is not None and _count(steps) is None:
        raise Refused("a number of steps is invalid")
    return RunInPart(run, status, _figure(seconds), steps, *map(_figure, rest))


def _count(value: JSON) -> int | None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 <= value <= _LARGEST else None


def _figure(value: JSON) -> float | None:
    """
    Raises:
        Refused: it is neither a number from 0 to 1e18 nor null.
    """
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= _LARGEST:
        raise Refused("a figure is not a number")
    return float(value)


def _short(value: JSON) -> JSON:
    """A figure with six digits."""
    return float(f"{value:.6g}") if isinstance(value, float) else value
