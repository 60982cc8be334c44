"""``--on ssh=HOST[,python=PATH][,folder=DIR]``: a host that the user reaches with ``ssh HOST``."""

from __future__ import annotations

import hashlib
import re
import subprocess
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import IO

from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.models import Problem
from gpuwatch.core.text import clean
from gpuwatch.places.base import STUDY, Job, JobState, JobStatus, Place, PlaceSpec, Refused
from gpuwatch.places.ssh import scripts
from gpuwatch.places.ssh.connection import Answer, Connection
from gpuwatch.session.reading.status import takes_over
from gpuwatch.session.study.plan import PLAN

_HOST = re.compile(r"(\w[\w.%+-]*@)*[\w:][\w.:%-]*", re.ASCII)
"""Neither the user's name nor the host's begins with a hyphen: ssh would take it for an option."""
_OPTIONS = ("python", "folder")
_FORM = "write --on ssh=HOST[,python=PATH][,folder=DIR], where `ssh HOST` reaches the host"
_LOST = 255
"""Exit code of ssh itself."""
_STATES = {
    b"held": JobState.RUNNING,
    b"starting": JobState.STARTING,
    b"started": JobState.ENDED,
    b"orphaned": JobState.ORPHANED,
}
"""What became of an attempt by the word of :func:`scripts.state`; any other: it failed."""
_SEND_SECONDS = 3600.0
"""Limit for sending files."""


class SshPlace(Place):
    """A host with OpenSSH's server, a POSIX shell and Python 3.10 or newer; nothing else of it is
    needed, and nothing is installed."""

    shares_files = False
    kinds_outside = frozenset[str]()
    names_machine = True

    def __init__(self, spec: PlaceSpec, capsule: Path) -> None:
        """``capsule``: where gpuwatch is as one file, once the host is connected.

        Raises:
            UsageError: ``spec`` names no host, or an unknown option.
        """
        if spec.target is None or not _HOST.fullmatch(spec.target):
            raise UsageError(f"--on ssh names no host: {spec.target or ''}".rstrip(": "), _FORM)
        for name, value in spec.options.items():
            if name not in _OPTIONS or not value:
                raise UsageError(f"unknown option {name!r} in --on ssh={spec.target}", _FORM)
        self._python = spec.options.get("python")
        self._folder = spec.options.get("folder")
        self._connection = Connection(spec.target)
        self._host = spec.target
        self._capsule = capsule
        self.takes_folder = self._folder is None

    @cached_property
    def _digest(self) -> str:
        return hashlib.sha256(self._capsule.read_bytes()).hexdigest()

    def connect(self, *, person: bool) -> None:
        """Reach the host; see :class:`gpuwatch.places.base.Place`."""
        self._connection.connect(person=person)

    def preflight(self) -> list[Problem]:
        """Whether a Python is there, and gpuwatch's archive, which is sent if it is missing."""
        answer = self._connection.run(scripts.look(self._python, self._digest, self._folder))
        if answer.code == 0:
            if answer.output.split()[-1:] != [b"here"]:
                self._send_capsule()
            return []
        return [self._problem(answer)]

    def _problem(self, answer: Answer) -> Problem:
        last = clean((answer.errors.strip().splitlines() or ["it printed no reason"])[-1])
        if answer.code == scripts.NO_PYTHON:
            return Problem(
                "no-python",
                f"{self._host} has no Python 3.10 or newer ({last})",
                f"name one that it has: --on ssh={self._host},python=PATH",
            )
        if answer.code == scripts.NO_FOLDER:
            return Problem(
                "no-folder",
                f"{self._host} has no folder {self._folder}: {last}",
                f"name one that it has: --on ssh={self._host},folder=DIR",
            )
        if answer.code == scripts.NO_ROOM:
            return Problem(
                "no-room",
                f"files cannot be written on {self._host}: {last}",
                f"free some space there, or see what is in the way: ssh {self._host}",
            )
        if answer.code == scripts.NO_WORK:
            return Problem(
                "no-work",
                f"the working folder is not on {self._host}: it was not sent to its end, or was "
                "removed there",
                "start the study anew",
            )
        if answer.code == scripts.NO_TAR:
            return Problem(
                "no-tar",
                f"{self._host} has no tar to unpack the working folder with",
                "install it there, or use a folder that is there: "
                f"--on ssh={self._host},folder=DIR",
            )
        return Problem("ssh", f"{self._host}: {last}", f"try it by hand: ssh {self._host}")

    def _send_capsule(self) -> None:
        script = scripts.receive(self._python, self._digest)
        data = self._capsule.read_bytes()
        self._expect(self._connection.run(script, data, seconds=_SEND_SECONDS))

    def _expect(self, answer: Answer) -> Answer:
        """``answer`` if it is good.

        Raises:
            Refused: it is not.
            NotAvailable: the connection was lost meanwhile.
        """
        if answer.code == _LOST or answer.code < 0:
            raise NotAvailable(f"the connection to {self._host} was lost", "try again")
        if answer.code != 0:
            problem = self._problem(answer)
            raise Refused(problem.text, problem.hint)
        return answer

    def send_folder(self, job: Job, archive: Path) -> None:
        """Send the tar file ``archive`` as the working folder of the study.

        Raises:
            NotAvailable: it does not arrive.
        """
        data = archive.read_bytes()
        script = scripts.store_folder(job.study, len(data))
        self._expect(self._connection.run(script, data, seconds=_SEND_SECONDS))

    def find(self, job: Job) -> str | None:
        """The study's name there, if a recorder begins with the attempt or has begun."""
        status = self.state(job, job.study)
        if status.state is JobState.UNKNOWN:
            raise NotAvailable(status.reason or f"{self._host} does not answer", status.hint)
        return None if status.state is JobState.FAILED else job.study

    def submit(self, job: Job) -> str:
        """Start the recorder there, unless the attempt was started already."""
        plan = (job.folder / PLAN).read_bytes()
        self._expect(self._connection.run(scripts.store_plan(job.study, len(plan)), plan))
        start = scripts.start(
            self._python, self._digest, job.study, job.attempt, self._folder, work=job.work
        )
        answer = self._connection.run(start)
        if answer.code == scripts.NO_CAPSULE:
            self._send_capsule()
            answer = self._connection.run(start)
        self._expect(answer)
        return job.study

    def state(self, job: Job, native: str) -> JobStatus:
        """Whether its recorder runs; why it could not start is in the log."""
        try:
            script = scripts.state(self._python, job.study, job.attempt)
            *_, word = self._expect(self._connection.run(script)).output.split() or [b""]
        except NotAvailable as error:
            return JobStatus(JobState.UNKNOWN, error.message, hint=error.hint)
        state = _STATES.get(word, JobState.FAILED)
        hint = takes_over(job.folder.name) if state is JobState.ORPHANED else None
        return JobStatus(state, hint=hint, where=self._host)

    def open(self, job: Job, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start gpuwatch there; see :class:`gpuwatch.places.base.Place`."""
        script = scripts.run(self._python, self._digest, job.study, arguments)
        return self._connection.open(script)

    def watch(self, arguments: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start gpuwatch there without a study; see :class:`gpuwatch.places.base.Place`."""
        script = scripts.watch(self._python, self._digest, arguments)
        return self._connection.open(script, errors)

    def cancel(self, job: Job, native: str) -> None:
        """Stop the study as ``gpuwatch stop`` does there."""
        if self.state(job, native).state.over:
            return
        script = scripts.run(self._python, self._digest, job.study, ["stop", STUDY])
        self._expect(self._connection.run(script, seconds=120.0))

    def log(self, job: Job, native: str) -> str:
        """What the recorder there wrote at last."""
        return self._connection.run(scripts.log(job.study)).output.decode(errors="replace")
