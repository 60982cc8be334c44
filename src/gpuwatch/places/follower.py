"""Follows a study at a place until it is over: fetches what its recorder writes, notes the state of
its job, and rewrites the summary.

It may end at any time: the study goes on, and whoever follows it next goes on from what is here.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.errors import GpuwatchError, NotAvailable
from gpuwatch.core.text import clean, to_paste
from gpuwatch.own_command import OWN_COMMAND
from gpuwatch.places import placements
from gpuwatch.places.base import Gone, JobState, JobStatus, NeedsPerson, Place, Refused
from gpuwatch.places.fetching import Fetching
from gpuwatch.places.placements import Lease, Placed
from gpuwatch.session import placement
from gpuwatch.session.placement import Placement
from gpuwatch.session.study.plan import read as read_plan
from gpuwatch.session.study.study_folder import is_open, sessions_in

_SOON, _LATER = 2.0, 10.0
"""Seconds between two questions about a job: while nothing is recorded, and else."""
_SHORTEST_WAIT, _LONGEST_WAIT = 1.0, 30.0
"""Seconds between two tries to reach a place."""
_LET_GO_SECONDS = 900.0
"""How long it is tried to have a place remove what it keeps."""
_LAST_SECONDS = 60.0
"""How long the rest of a job that is over may take to arrive, from the last part of it on."""


def follow(placed: Placed, place: Place) -> None:
    """Follow a study until it is over, or until a person is needed.

    Raises:
        UsageError: somebody else follows it.
        StorageError: this user's state folder cannot be written.
    """
    with placements.lease(placed) as lease:
        Follower(placed, place, lease).run()


class Follower:
    """One process that follows one study, while it holds the lease."""

    def __init__(self, placed: Placed, place: Place, lease: Lease) -> None:
        self._placed, self._place, self._lease = placed, place, lease
        self._folder = Path(placed.study)
        self._known = placement.read(self._folder)
        plan = read_plan(self._folder)
        self._parts = () if plan is None else plan.parts
        self._has_summary = plan is not None and not plan.of_machine
        self._summary: subprocess.Popen[bytes] | None = None
        self._summarised: set[str] = set()
        self._answered = False
        """Whether the place told the state of the job since it was reached last."""

    def run(self) -> None:
        """Follow it until it is over, a person is needed, somebody else has the lease, or the
        study's folder is gone."""
        if (placements.read(self._placed.id) or self._placed).whole:
            self._close()  # somebody followed it to its end, and was killed then
            return
        wait = _SHORTEST_WAIT
        while self._lease.renew() and self._folder.is_dir():
            self._answered = False
            try:
                self._place.connect(person=False)
                native = self._submitted()
                if self._until_over(native):
                    return
            except NeedsPerson as error:
                hint = f"enter it: {to_paste('attach', self._folder.name)}"
                self._note(JobStatus(JobState.UNKNOWN, error.message, hint=hint))
                return
            except Refused as error:
                self._over(JobStatus(JobState.FAILED, error.message, hint=error.hint))
                return
            except NotAvailable as error:
                self._note(_away(error.message, error.hint))
            if self._answered:
                wait = _SHORTEST_WAIT
            time.sleep(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _submitted(self) -> str:
        """The place's id of the job, which is submitted if it was not yet."""
        placed = placements.read(self._placed.id) or self._placed
        if placed.native is None:
            self._note(JobStatus(JobState.STARTING))
            native = self._place.submit(placed.job)
            placed = placements.update(placed, native=native)
        self._placed = placed
        assert placed.native is not None
        return placed.native

    def _until_over(self, native: str) -> bool:
        """Follow it until the job is over and all is here; ``False``: somebody else has the lease.

        Raises:
            NotAvailable: the connection is lost.
        """
        while (status := self._until_job_over(native)) is not None:
            # Only what a relay tells that began after the end of the job is known to be all.
            whole = self._place.shares_files or self._fetch_rest()
            if not self._has_next_block(status):
                self._over(self._with_reason(status, native), fetched=whole)
                return True
            self._place.let_go(self._placed.job, native)
            self._placed = placements.new_attempt(self._placed)
            native = self._submitted()
        return False

    def _has_next_block(self, status: JobStatus) -> bool:
        """Whether another job is submitted: not after one that did nothing, or was ended."""
        if status.state is not JobState.ENDED or not self._place.job_per_block(self._parts):
            return False
        return 0 < placements.missing_runs(self._folder) < self._placed.missing

    def _until_job_over(self, native: str) -> JobStatus | None:
        """The state of the job once it is over; ``None``: somebody else has the lease."""
        with contextlib.ExitStack() as stack:
            fetching, fetches, due = None, not self._place.shares_files, 0.0
            orphaned = False  # its relay has told all, and it may go on for long
            while self._lease.renew():
                if fetching is not None:
                    fetching.take(1.0)
                elif due:
                    time.sleep(1.0)
                asks = fetching is not None and fetching.asks and not orphaned
                if time.monotonic() >= due or asks:
                    status = self._place.state(self._placed.job, native)
                    if status.state is JobState.UNKNOWN:
                        if fetches:
                            raise NotAvailable(status.reason or "it does not answer", status.hint)
                        status = _away(status.reason, status.hint)
                    self._answered = True
                    self._note(status)
                    if status.state.over:
                        return status
                    if fetches and fetching is None and status.state is not JobState.QUEUED:
                        with contextlib.suppress(Gone):  # not there yet
                            fetching = Fetching(self._place, self._placed.job)
                            stack.enter_context(fetching)
                    orphaned = status.state is JobState.ORPHANED
                    later = orphaned or any(map(is_open, sessions_in(self._folder)))
                    due = time.monotonic() + (_LATER if later else _SOON)
                self._summarise()
        return None

    def _fetch_rest(self) -> bool:
        """Fetch what a job that is over has left; returns whether all is here that is there."""
        try:
            with Fetching(self._place, self._placed.job) as fetching:
                lately = time.monotonic()
                while not fetching.whole and time.monotonic() - lately < _LAST_SECONDS:
                    if fetching.take(1.0):
                        lately = time.monotonic()
                    self._lease.renew()
                return fetching.whole
        except Gone:
            return True

    def _with_reason(self, status: JobStatus, native: str) -> JobStatus:
        """``status``, for a job that did not begin with the last line that it wrote."""
        failed = status.state is JobState.FAILED
        if status.reason or (sessions_in(self._folder) and not failed):
            return status
        with contextlib.suppress(GpuwatchError):
            lines = self._place.log(self._placed.job, native).strip().splitlines()
            if lines:
                text = clean(lines[-1]).removeprefix("gpuwatch: ").removeprefix("error: ")
                return replace(status, state=JobState.FAILED, reason=text)
        return status

    def _over(self, status: JobStatus, *, fetched: bool = True) -> None:
        """The job is over, and nothing more is fetched.

        Raises:
            NotAvailable: figures that are nowhere else cannot be written.
        """
        if status.in_part is not None:
            self._note(status, fetched=fetched)
            written = placement.read(self._folder)
            if written is None or written.in_part != status.in_part:
                raise NotAvailable(f"cannot write to {self._folder}", "free some space")
        if status.state is not JobState.ENDED:
            self._summarised = set()  # why a run was told to end is known only now
        self._summarise(last=True)
        self._note(status, fetched=fetched)
        if fetched:
            placements.update(self._placed, whole=True)
            self._close()
        else:
            placements.update(self._placed, done=True)

    def _close(self) -> None:
        """Have the place remove what it keeps, and note that there is nothing more to do."""
        if self._placed.native is not None:
            self._let_go(self._placed.native)
        placements.update(self._placed, done=True)

    def _let_go(self, native: str) -> None:
        """Try it until the place answers; after long it removes that by itself."""
        until = time.monotonic() + _LET_GO_SECONDS
        while self._lease.renew() and time.monotonic() < until:
            try:
                self._place.let_go(self._placed.job, native)
            except NotAvailable:
                time.sleep(_LONGEST_WAIT)
            else:
                return

    def _note(self, status: JobStatus, *, fetched: bool = False) -> None:
        """Write the placement, if it changed or is old."""
        known = self._known
        if status.where is None and known is not None:
            status = replace(status, where=known.where)
        if status.state is JobState.CANCELLED and known is not None:
            status = replace(status, reason=status.reason or _waited(known))
        new = Placement(
            place=self._placed.place,
            attempt=self._placed.attempt,
            native=self._placed.native,
            fetched=fetched,
            **vars(status),
        )
        new = placement.seen_now(new, known)
        if (
            known is None
            or new.written - known.written > _LATER
            or new != replace(known, written=new.written)
        ):
            with contextlib.suppress(OSError):  # a full disk: the next look writes it again
                placement.write(self._folder, new)
                self._known = new

    def _summarise(self, *, last: bool = False) -> None:
        """Rewrite the summary in a process of its own, if more runs are over than in the last."""
        if not self._has_summary:
            return
        if self._summary is not None:
            if not last and self._summary.poll() is None:
                return
            self._summary.wait()
        over = {path.name for path in sessions_in(self._folder) if not is_open(path)}
        if over <= self._summarised:
            return
        self._summarised = over
        self._summary = subprocess.Popen(
            [*OWN_COMMAND, "report", "--short", str(self._folder)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if last:
            self._summary.wait()


def _away(reason: str | None, hint: str | None) -> JobStatus:
    """The state of a job whose place cannot be asked just now."""
    again = f"it is tried again; {hint}" if hint else "it is tried again"
    return JobStatus(JobState.UNKNOWN, reason, hint=again)


def _waited(known: Placement) -> str | None:
    """Why a job that is cancelled had not begun, by what was ``known`` of it before."""
    if known.reason is None or known.state is JobState.CANCELLED:
        return known.reason
    waits = known.state in (JobState.QUEUED, JobState.STARTING)
    return f"was {known.state.value}: {known.reason}" if waits else None
