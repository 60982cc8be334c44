"""What a place implements: somewhere else where a recorder runs.

An environment says how a workload runs, a place says where. A place takes gpuwatch itself there as
one file (:mod:`gpuwatch.places.capsule`), and that records as it would here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from subprocess import Popen
from typing import IO, Protocol

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Problem
from gpuwatch.core.text import to_paste
from gpuwatch.session.in_part import InPart
from gpuwatch.session.placement import JobState as JobState
from gpuwatch.session.study.plan import Part

STUDY = "@study"
"""In the arguments of :meth:`Place.open`: the study's folder there."""


class NeedsPerson(NotAvailable):
    """The place asks for a password or the like, and nobody is at the terminal."""


class Refused(NotAvailable):
    """The place was reached and refuses: trying again changes nothing."""


class Gone(NotAvailable):
    """The place has nothing of the study: not yet, or not any more."""


@dataclass(frozen=True)
class PlaceSpec:
    """``--on KIND[=TARGET][,KEY=VALUE...]``, parsed."""

    kind: str
    target: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, hash=False)
    """In the order given; a key without a value has an empty one."""


@dataclass(frozen=True)
class Job:
    """One attempt to run a study at a place, or what is left of it."""

    attempt: str
    """16 random hexadecimal digits, stored here before the submission: a job that has it is
    taken up, not submitted again."""
    study: str
    """The name of the study's folder there, where that is another than here."""
    folder: Path
    """The study's folder here, with its ``plan.json``."""
    work: bool = False
    """Whether the folder that its commands run in was sent: without it nothing may start there."""


@dataclass(frozen=True)
class JobStatus:
    """The state of a job, with the place's own words."""

    state: JobState
    reason: str | None = None
    """The scheduler's own word, or what went wrong."""
    starts: float | None = None
    """Expected start of a queued job, in Unix seconds; ``None``: not told."""
    hint: str | None = None
    """The command or action that helps."""
    where: str | None = None
    """The host or node on which it runs."""
    in_part: InPart | None = None
    """What was left of its runs, where their sessions are gone."""


RESUME = "start the runs that are missing"
"""The hint of a job without some of its runs."""


def resumable(status: JobStatus, folder: Path, unless: str = "") -> JobStatus:
    """``status``; where its hint is :data:`RESUME`, with the command that does it. ``unless``: how
    another time limit is had."""
    paste = f"{RESUME}: {to_paste('resume', folder.name)}"
    if status.state is JobState.TIMED_OUT:
        paste += (
            "; what was cut off starts again from its beginning, with the same limit"
            f"{unless}; its session is kept beside the new one"
        )
    return replace(status, hint=paste) if status.hint == RESUME else status


@dataclass(frozen=True)
class Preview:
    """What a place would make of parts of a study."""

    notes: tuple[str, ...] = ()
    """What to know before they are submitted."""
    images: tuple[str, ...] = ()
    """Images that are fetched there."""
    objects: str | None = None
    """What would be submitted, as text; ``None``: nothing to show."""


@dataclass(frozen=True)
class Description:
    """What ``gpuwatch doctor`` tells of a place itself."""

    lines: tuple[str, ...]
    """For people."""
    document: Mapping[str, JSON] = field(hash=False)
    """The same by key, see docs/json.md."""
    images: tuple[str, ...] = ()
    """Images that are fetched there, as ``--on`` names them."""
    problems: tuple[Problem, ...] = ()
    """Why a job, which it would take, would not start there."""


class Place(Protocol):
    """Somewhere else. Methods run in one thread and may block for as long as a connection takes.

    It is made of a :class:`PlaceSpec`, which it checks (``UsageError``), and the path of the
    capsule. What most places answer alike, they inherit. Everything that comes back from a place is
    untrusted: it is shown, never called or run.
    """

    shares_files: bool
    """Whether the study's folder is the same there as here: nothing has to be fetched."""
    takes_folder: bool
    """Whether a command's working folder is sent there, by :meth:`send_folder`."""

    kinds_outside: frozenset[str]
    """Kinds of environments whose containers run outside of the job, beyond its memory limit and
    accounting."""

    names_machine: bool
    """Whether it names one machine, which :meth:`watch` records; a cluster does not."""

    def connect(self, *, person: bool) -> None:
        """Reach the place; ``person``: somebody is at the terminal and can be asked for a password.

        Raises:
            NotAvailable: it cannot be reached, with what fixes that.
            NeedsPerson: it asks for something and nobody is there.
        """
        ...

    def job_per_block(self, parts: Sequence[Part]) -> bool:
        """Whether a job ends after one block of a study of these parts, or within one, and the next
        one is submitted then."""
        return False

    def preflight(self) -> list[Problem]:
        """Why nothing can run there, each with its fix; changes nothing."""
        ...

    def exact(self, text: str) -> str:
        """``text``, as ``--on`` names the place, with what it leaves to the user's settings of this
        moment: so the study's follower finds the same place.

        Raises:
            NotAvailable: those settings name no place.
        """
        return text

    def describe(self) -> Description | None:
        """The place itself, where gpuwatch cannot run without a job; ``None``: it can.

        Raises:
            NotAvailable: the place cannot be reached.
        """
        return None

    def preview(self, parts: Sequence[Part]) -> Preview:
        """What would be submitted for these parts of a study, and what to know of it.

        Raises:
            Refused: the place does not take it.
        """
        return Preview()

    def expected_start(self) -> float | None:
        """When a job that is submitted now would start, in Unix seconds; ``None``: at once, or that
        is not told. Nothing is submitted.

        Raises:
            NotAvailable: the place cannot be reached.
        """
        return None

    def send_folder(self, job: Job, archive: Path) -> None:
        """Send a tar file, which becomes the folder that the study's commands run in.

        Raises:
            NotAvailable: it does not arrive.
        """
        return

    def find(self, job: Job) -> str | None:
        """The place's own id of ``job``, if it was submitted.

        Raises:
            NotAvailable: the place cannot be reached.
        """
        ...

    def submit(self, job: Job) -> str:
        """Submit ``job`` and return the place's own id of it. A job of that name that exists
        already is taken up.

        Raises:
            Refused: the place does not take it.
            NotAvailable: the place cannot be reached.
        """
        ...

    def state(self, job: Job, native: str) -> JobStatus:
        """What became of the job with this id. Raises nothing: the state may be ``UNKNOWN``."""
        ...

    def open(self, job: Job, arguments: Sequence[str]) -> Popen[bytes]:
        """Start ``gpuwatch ARGUMENTS`` there, with its standard input and output as pipes.

        Raises:
            Gone: nothing of the study is there.
            NotAvailable: the place cannot be reached.
        """
        ...

    def watch(self, arguments: Sequence[str], errors: IO[bytes]) -> Popen[bytes]:
        """Start ``gpuwatch ARGUMENTS`` on the machine that the place names, with its standard input
        and output as pipes; its standard error goes to the file ``errors``. It needs no study, and
        ends with its standard input. The capsule is there: :meth:`preflight` found nothing amiss.

        Raises:
            Refused: the machine is not to be had any more, as of a job that is over.
            NotAvailable: the place cannot be reached, or its machine is not given yet.
        """
        raise Refused("it names no machine")

    def cancel(self, job: Job, native: str) -> None:
        """End the job so that its sessions are closed; nothing happens if it is over.

        Raises:
            NotAvailable: the place cannot be reached.
        """
        ...

    def left(self, job: Job) -> str | None:
        """What may still run of a job that is over; ``None``: nothing, as far as is known."""
        return None

    def let_go(self, job: Job, native: str) -> None:
        """Remove what the place keeps of a job that is over and fetched.

        Raises:
            NotAvailable: the place cannot be reached.
        """
        return

    def log(self, job: Job, native: str) -> str:
        """The last lines that the job wrote outside its sessions: why it could not start."""
        ...
