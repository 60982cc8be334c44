"""``placement.json`` in a study's folder: where the study runs, if not on this machine.

It is written by the process that follows the study, and only describes: what may be called,
cancelled or submitted stands in this user's state folder (:mod:`gpuwatch.places.placements`).
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from enum import Enum
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.paths import end_of, read_regular
from gpuwatch.core.text import clean
from gpuwatch.session import in_part
from gpuwatch.session.in_part import InPart

PLACEMENT = "placement.json"
CAPSULE, JOB_LOG, CANCELLED = ".gpuwatch.pyz", "job.log", ".cancelled"
START_LOG, STARTING, STEP_SCRIPT = "start.log", "starting", ".step.sh"
WORK, POD = ".work.tar", ".pod"
FILES_OF_A_JOB = (CAPSULE, JOB_LOG, CANCELLED, START_LOG, STARTING, STEP_SCRIPT, WORK, POD)
"""In a study's folder at a place: gpuwatch as one file, what its job prints, which attempt was
cancelled last, whether one is being started, what a step of another job runs, the
working folder that a pod is sent, and the pod that records."""
SILENT_SECONDS = 45.0
"""Whoever follows a study writes the file more often than this."""
_LARGEST = 256 << 10
_MOST_CHANGES = 1000
_LONGEST = 300


class JobState(str, Enum):
    """What became of a job at a place."""

    QUEUED = "queued"
    STARTING = "starting"
    RUNNING = "running"
    PAUSED = "paused"
    ORPHANED = "orphaned"
    """Its recorder died, and a workload still runs there."""
    ENDED = "ended"
    """Its recorder ended by itself; how the runs ended is in their sessions."""
    TIMED_OUT = "timed out"
    CANCELLED = "cancelled"
    """As this user asked gpuwatch."""
    ENDED_BY_OTHERS = "ended by others"
    """Not by gpuwatch: by hand, or by an administrator."""
    PREEMPTED = "preempted"
    OUT_OF_MEMORY = "out of memory"
    FAILED = "failed"
    """It could not start."""
    LOST = "lost"
    """It ended, and nobody knows how: its node failed, or its scheduler has forgotten it."""
    IN_PART = "fetched in part"
    """It ended before its sessions were fetched; a few figures of its runs are here."""
    UNKNOWN = "unknown"
    """The place cannot be asked just now."""

    @property
    def over(self) -> bool:
        """Whether nothing more comes of the job."""
        return self not in _GOING_ON

    @property
    def cut_off(self) -> bool:
        """Whether it was ended before its runs were over, and nobody asked gpuwatch for that."""
        return self.over and self not in (JobState.ENDED, JobState.CANCELLED, JobState.IN_PART)


_GOING_ON = frozenset(
    {JobState.QUEUED, JobState.STARTING, JobState.RUNNING, JobState.PAUSED}
    | {JobState.ORPHANED, JobState.UNKNOWN}
)


@dataclass(frozen=True)
class Placement:
    """Where a study runs, and what is known of its job."""

    place: str
    """As on the command line: ``ssh=gpu1``."""
    attempt: str
    state: JobState
    reason: str | None = None
    """The scheduler's own word, or what went wrong."""
    hint: str | None = None
    """The command or action that helps."""
    native: str | None = None
    """The place's own id of the job."""
    where: str | None = None
    """The host or node on which it runs."""
    starts: float | None = None
    """Expected start of a queued job, in Unix seconds."""
    fetched: bool = False
    """Whether everything is here that the place has."""
    written: float = 0.0
    """Unix seconds of the last look at it."""
    in_part: InPart | None = None
    """What was left of runs whose sessions were not fetched."""
    changes: tuple[tuple[str, float], ...] = ()
    """Its states so far, each with the Unix seconds of its begin."""

    @property
    def going_on(self) -> bool:
        """Whether more may come: the job is not over, or not everything is here yet."""
        return not (self.state.over and self.fetched)

    def ended_after(self, at: float) -> JobState | None:
        """How the job ended that a run was of which was told to end ``at`` these Unix seconds;
        ``None``: it goes on, or was over, and the run was taken over."""
        later = (JobState(state) for state, since in self.changes if since >= at)
        return next((state for state in later if state.over), None)

    @property
    def followed(self) -> bool:
        """Whether somebody follows it: whoever does writes the file every few seconds."""
        return abs(time.time() - self.written) < SILENT_SECONDS

    @property
    def short(self) -> str:
        """Place and node without options: ``ssh=gpu1``, ``slurm n1``."""
        kind = self.place.partition(",")[0]
        named = self.where in (None, kind.partition("=")[2])
        return kind if named else f"{kind} {self.where}"

    @property
    def job(self) -> str:
        """Slurm's number of one that is not over; else empty."""
        known = self.place.startswith("slurm") and (self.native or "").isdecimal()
        return self.native or "" if known and not self.state.over else ""

    @property
    def known_as(self) -> str | None:
        """What the place's own tools call its job, once it is submitted."""
        in_kubernetes = self.native and self.place.startswith("kubernetes")
        return kubernetes_job(self.attempt) if in_kubernetes else self.native

    @property
    def text(self) -> str:
        """Its state in a few words: ``queued in slurm (Resources)``."""
        job = f" (job {self.job})" if self.job else ""
        words = f"{self.state.value} on {self.where or self.place}{job}"
        if self.state is JobState.QUEUED:
            words = f"queued on {self.place}{job}"
            if self.starts is not None:
                starts = time.localtime(min(max(self.starts, 0.0), 1e11))
                words += f", expected to start at {time.strftime('%H:%M', starts)}"
        if self.state is JobState.ORPHANED:
            where = self.where or self.place
            words = f"the recorder on {where} died, the workload still runs there"
        if self.state is JobState.UNKNOWN:
            words = f"{self.place} does not answer"
        return f"{words}: {self.reason}" if self.reason else words


def kubernetes_job(attempt: str) -> str:
    """The name of an attempt's Job."""
    return f"gpuwatch-{attempt}"


def seen_now(placement: Placement, before: Placement | None) -> Placement:
    """``placement`` as of this moment, with the states of ``before`` in front of its own."""
    now, changes = time.time(), () if before is None else before.changes
    if not changes or changes[-1][0] != placement.state.value:
        changes = (*changes, (placement.state.value, now))
    return replace(placement, written=now, changes=changes)


def write(folder: Path, placement: Placement) -> None:
    """Replace the file in ``folder``.

    Raises:
        OSError: it cannot be written.
    """
    part = placement.in_part
    document = {
        **asdict(placement),
        "schema": 1,
        "state": placement.state.value,
        "in_part": None if part is None else in_part.document(part),
    }
    output.write_text(folder / PLACEMENT, json.dumps(document, indent=1) + "\n")


def read(folder: Path) -> Placement | None:
    """The placement of the study in ``folder``; ``None`` if it runs here. It may come from anybody:
    texts are cleaned and cut, and everything else is checked."""
    try:
        raw = read_regular(folder / PLACEMENT, _LARGEST)
        return _parse(json.loads(raw)) if len(raw) <= _LARGEST else None
    except (OSError, ValueError, TypeError, RecursionError, OverflowError):
        return None


def job_log(folder: Path) -> list[str]:
    """The last of what the job of the study in ``folder`` printed outside its sessions, safe to
    print on a terminal; empty where that is not here."""
    return [clean(line, _LONGEST) for line in end_of(folder / JOB_LOG, _LARGEST).splitlines()]


def elsewhere(folder: Path) -> str:
    """The host or place where the study in ``folder`` runs or ran; empty: here."""
    placement = read(folder)
    return "" if placement is None else placement.where or placement.place


def _parse(value: JSON) -> Placement | None:
    found = mapping(value)
    place, attempt = _text(found.get("place")), _text(found.get("attempt"))
    if place is None or attempt is None:
        return None
    changes = found.get("changes")
    return Placement(
        place=place,
        attempt=attempt,
        state=JobState(found.get("state")),
        reason=_text(found.get("reason")),
        hint=_text(found.get("hint")),
        native=_text(found.get("native")),
        where=_text(found.get("where")),
        starts=number(found.get("starts")),
        fetched=found.get("fetched") is True,
        written=number(found.get("written")) or 0.0,
        in_part=_in_part(found.get("in_part")),
        changes=tuple(
            (JobState(state).value, float(at))
            for state, at in (changes if isinstance(changes, list) else [])[:_MOST_CHANGES]
        ),
    )


def _in_part(value: JSON) -> InPart | None:
    try:
        return None if value is None else in_part.of_document(value)
    except in_part.Refused:
        return None


def _text(value: JSON) -> str | None:
    return clean(value, _LONGEST) if isinstance(value, str) and value else None
