"""What a row of a list is of: a session, or a study with its runs."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from gpuwatch.analysis.summary import listing
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading import status
from gpuwatch.session.reading.status import State

GOING_ON = frozenset(state.value for state in (State.QUEUED, State.STARTING, State.RUNNING))
_STOPPABLE = GOING_ON | {State.LOST.value, State.UNKNOWN.value}
BAD = (*status.BAD, "unreadable")
"""States of a run that did not end well."""


@dataclass(frozen=True)
class Item:
    """One row: a session, or a study with its runs."""

    entry: listing.ListedSession | None = None
    """The session; ``None`` of a study's row."""
    study: listing.ListedStudy | None = None
    """The study, also of a session that stands below it."""
    runs: tuple[listing.ListedSession, ...] = ()
    """Of a study's row: its sessions that the filter lets through."""
    every: tuple[listing.ListedSession, ...] = ()
    """All of them."""
    opened: bool = False
    alike: bool = False
    """All runs of its study are of one command."""
    last: bool = False
    """The last session below its study's row."""

    @property
    def of(self) -> listing.ListedSession | listing.ListedStudy:
        """What the row is of."""
        of = self.entry or self.study
        assert of is not None
        return of

    @property
    def path(self) -> Path:
        """The session's file or the study's folder."""
        return self.of.path

    @property
    def title(self) -> str:
        """The name that was given, else what ran."""
        titled = self.study.title if self.entry is None and self.study is not None else ""
        return self.of.name or titled or self.ran

    @property
    def failed(self) -> listing.ListedSession | None:
        """The run, or the first of a study, that ended badly."""
        ended = (run for run in self.sessions if run.status in BAD)
        return min(ended, key=lambda run: run.path, default=None)

    @property
    def ran(self) -> str:
        """What ran; of a study with several commands their labels, or workloads."""
        planned = () if self.study is None else self.study.commands
        if self.entry is None and planned and not self.every:
            return ", ".join(planned)
        return listing.what_ran(self.sessions, planned) or "unknown"

    @property
    def environment(self) -> str:
        """With the place and the job; of a study its baseline, and how many others there are."""
        if self.entry is not None:
            job = f" (job {self.entry.job})" if self.entry.job else ""
            return listing.at_place(self.of.place, self.entry.environment) + job
        first, *others = (self.study and self.study.environments) or ("",)
        return listing.at_place(self.of.place, f"{first} +{len(others)}" if others else first)

    @property
    def sessions(self) -> tuple[listing.ListedSession, ...]:
        """The session, of a study all of them."""
        return self.every if self.entry is None else (self.entry,)

    @property
    def goes_on(self) -> bool:
        if self.entry is not None:
            return self.entry.status in GOING_ON
        going = any(run.status in GOING_ON for run in self.every)
        return going or (self.study is not None and self.study.going_on)

    @property
    def state(self) -> tuple[str, str]:
        """A state, and the words for it: of a study what became of its runs."""
        if self.entry is not None:
            return self.entry.status, self.entry.status
        assert self.study is not None
        if self.study.waits:
            return self.study.waits, self.study.waits
        many, planned = len(self.every), self.study.runs or len(self.every)
        ends = Counter(run.status for run in self.every)
        bad = [state for state in ends if state in BAD]
        if self.goes_on:
            return State.RUNNING.value, f"run {many}/{planned}"
        if bad:
            word = bad[0] if len(bad) == 1 else State.FAILED.value
            return State.FAILED.value, f"{sum(ends[state] for state in bad)} {word}"
        if many < planned or ends[State.STOPPED.value]:
            return State.STOPPED.value, f"{ends[State.FINISHED.value]}/{planned} runs"
        return State.FINISHED.value, f"{many} runs"

    @property
    def stoppable(self) -> bool:
        """Whether something of it may go on."""
        return self.goes_on or (self.entry is not None and self.entry.status in _STOPPABLE)

    @property
    def lost(self) -> bool:
        """Whether it is a run whose recorder died, which can be recorded on."""
        return self.entry is not None and self.entry.status == State.LOST.value

    @property
    def first_start(self) -> str | None:
        """When it, or the first run of a study, was started, without any when that was sent to its
        place; ``None``: that is not known."""
        placed = {} if self.study is None or self.sessions else self.study.placement or {}
        sent = placed.get("sent") or None
        return min((run.started for run in self.sessions if run.started), default=sent)

    @property
    def elapsed(self) -> float | None:
        """Seconds, of a study from the start of its first run to the last end; ``None``: not
        known."""
        if self.entry is not None:
            return self.entry.elapsed_seconds
        return listing.elapsed((run.started, run.elapsed_seconds) for run in self.every)
