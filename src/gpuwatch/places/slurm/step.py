"""``--on slurm,job=ID``: a step that records inside a job of the user's that is there already.

The step overlaps with the job's own: it takes nothing away, and the job neither waits for it nor
ends with it. It is named after the attempt. ``srun`` itself runs here, beyond
the end of whoever started it.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import IO

from gpuwatch.core import output, paths
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import Problem
from gpuwatch.core.text import clean
from gpuwatch.places import job_notes
from gpuwatch.places.base import Description, Job, JobState, JobStatus, PlaceSpec, Refused
from gpuwatch.places.slurm import commands, nodes, script, states
from gpuwatch.places.slurm.cluster import LOGIN, Cluster
from gpuwatch.places.slurm.states import Seen
from gpuwatch.session.placement import CAPSULE, JOB_LOG, START_LOG, STARTING, STEP_SCRIPT
from gpuwatch.session.study.attempts import attempts
from gpuwatch.session.study.study_folder import is_open, sessions_in

_MINE = "list yours: squeue --me"
_GONE = "Invalid job id"
_PATIENCE_SECONDS = 30
"""How long Slurm may take to give the step a place, as during a prolog."""
_FROM_FILE = 'exec /bin/bash "$0"'


class SlurmStep(Cluster):
    """A job of this user's, on whose first node one step records."""

    kinds_outside = frozenset[str]()
    names_machine = True
    needed = ("srun", "squeue", "scancel")

    def __init__(self, spec: PlaceSpec, capsule: Path) -> None:
        """See :class:`Cluster`; the options name the job."""
        super().__init__(spec, capsule)
        assert self._options.job is not None
        self._id = self._options.job

    def preflight(self) -> list[Problem]:
        """Whether there is such a job, it is this user's, and it is not over."""
        try:
            self._waiting_or_running()
        except NotAvailable as error:
            return [Problem("slurm-job", error.message, error.hint)]
        return []

    def describe(self) -> Description:
        """The job.

        Raises:
            Refused, NotAvailable: as :meth:`preflight` says.
        """
        seen = self._waiting_or_running()
        text = f"{seen.state.lower()}, on {seen.node}" if seen.node else seen.state.lower()
        ask = ["srun", *self._clusters, f"--jobid={self._id}", "--overlap"]
        lines = (f"job         {self._id}: {text}", nodes.unknown(ask))
        return Description(lines, {"job": self._id, "state": seen.state, "node": seen.node})

    def expected_start(self) -> float | None:
        """When the job itself starts; ``None``: it runs already.

        Raises:
            Refused, NotAvailable: as :meth:`preflight` says.
        """
        return states.status(self._waiting_or_running(), begun=True).starts

    def _waiting_or_running(self) -> Seen:
        """The job as Slurm sees it now.

        Raises:
            Refused: it is over, unknown, or another user's.
            NotAvailable: Slurm cannot be asked.
        """
        seen = self._job()
        if seen is None:
            raise Refused(f"Slurm knows no job {self._id}, or has forgotten it", _MINE)
        if seen.state == "COMPLETING" or states.status(seen, begun=True).state.over:
            raise Refused(f"the job {self._id} is over: {seen.state}", _MINE)
        return seen

    def _job(self) -> Seen | None:
        """The job; ``None``: Slurm knows no such job.

        Raises:
            Refused: it is another user's.
            NotAvailable: Slurm cannot be asked.
        """
        asked = ("--states=all", f"--jobs={self._id}", f"--format={states.FORMAT_WITH_USER}")
        for user, seen in states.parse_queue_with_user(self._queue(*asked, absent=_GONE)):
            if seen.id == self._id:
                if user != os.geteuid():
                    raise Refused(f"the job {self._id} is another user's", _MINE)
                return seen
        return None

    def _step(self, job: Job) -> str | None:
        """The id of the step of that name, while it is there."""
        asked = ("--steps", f"--jobs={self._id}", f"--format={states.STEP_FORMAT}")
        return states.parse_steps(self._queue(*asked, absent=_GONE)).get(job.attempt)

    def find(self, job: Job) -> str | None:
        """The job's id, once the step was started."""
        started = job.attempt in attempts(job.folder) or (job.folder / START_LOG).exists()
        return self._id if started else None

    def submit(self, job: Job) -> str:
        """Prepare the step; :meth:`state` starts it once the job runs.

        Raises:
            Refused: the job is over, unknown, or another user's.
            NotAvailable: Slurm cannot be asked, or the study's folder not be written.
        """
        self._waiting_or_running()
        job_notes.keep(job, CAPSULE, self._capsule)
        return self._id

    def state(self, job: Job, native: str) -> JobStatus:
        """What became of the step. A step that waited for its job is started, once."""
        try:
            step = self._step(job)
            begun = job.attempt in attempts(job.folder)
            if step is None and begun:
                return _ended(job)
            if step is None and not _srun_is_here(job.folder):
                return self._started(job)
            if job_notes.was_cancelled(job) and step is not None:
                self._cancel(step, "--signal=TERM")  # perhaps it did not listen yet
            seen = self._job()
        except Refused as error:
            return JobStatus(JobState.FAILED, error.message, hint=error.hint)
        except NotAvailable as error:
            return JobStatus(JobState.UNKNOWN, error.message, hint=error.hint)
        if step is None or seen is None:
            return JobStatus(JobState.STARTING, where=None if seen is None else seen.node)
        return states.status(seen, begun=begun)

    def _started(self, job: Job) -> JobStatus:
        """Start the step if its job runs, unless that was done before.

        Raises:
            Refused: the job is over, unknown, or another user's.
            NotAvailable: Slurm cannot be asked, or the study's folder not be written.
        """
        if job_notes.was_cancelled(job):
            return JobStatus(JobState.CANCELLED)
        if (job.folder / START_LOG).exists():
            last = (self.log(job, self._id).strip().splitlines() or ["srun did not say why"])[-1]
            return JobStatus(JobState.FAILED, f"the step did not begin: {clean(last)}")
        seen = self._waiting_or_running()
        status = states.status(seen, begun=False)
        if status.state is not JobState.STARTING:
            return status
        self._srun(job)
        return status

    def _srun(self, job: Job) -> None:
        """Start ``srun`` here, in the background; while it lives, it holds a lock."""
        text = script.batch(self._options, job.folder, job.folder, job.attempt)
        command = [
            *self._overlapping(job.attempt),
            "--input=none",
            *("/bin/sh", "-c", _FROM_FILE, str(job.folder / STEP_SCRIPT)),
        ]
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        try:
            output.write_text(job.folder / STEP_SCRIPT, script.logged(text, job.folder))
            with (
                os.fdopen(output.private_file(str(job.folder / STARTING), flags)) as lock,
                os.fdopen(output.private_file(str(job.folder / START_LOG), flags), "wb") as log,
            ):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                subprocess.Popen(
                    command,
                    env=commands.environment(os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    pass_fds=(lock.fileno(),),
                    start_new_session=True,
                    cwd="/",
                )
        except OSError as error:
            raise NotAvailable(f"srun cannot be started: {error.strerror}", LOGIN) from error

    def watch(self, arguments: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        """Start gpuwatch in a step of the job, which ends with its standard input.

        Raises:
            Refused: the job is over, unknown, or another user's.
            NotAvailable: Slurm cannot be asked, the job waits, or the cache cannot be written.
        """
        status = states.status(self._waiting_or_running(), begun=True)
        if status.state is JobState.QUEUED:
            raise NotAvailable(f"the job {self._id} waits: {status.reason or 'no reason given'}")
        words = [*arguments, "--joined-job", self._id]
        capsule = _kept(self._capsule.read_bytes(), ".pyz")
        text = script.watching(self._options, capsule, words)
        file = _kept(text.encode(), ".sh")
        try:
            return subprocess.Popen(
                [*self._overlapping("gpuwatch"), "/bin/sh", "-c", _FROM_FILE, str(file)],
                env=commands.environment(os.environ),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
                cwd="/",
            )
        except OSError as error:
            raise NotAvailable(f"srun cannot be started: {error.strerror}", LOGIN) from error

    def _overlapping(self, name: str) -> list[str]:
        """The words that start a step of that name beside the job's own.

        ``--overlap`` did not cover memory before Slurm 22.05: ``--mem=0`` takes none away. The
        job's GPUs (``--gres``) stay the step's: without them it may not see them.
        """
        return [
            *("srun", *self._clusters, f"--jobid={self._id}", f"--job-name={name}"),
            *("--overlap", "--mem=0", f"--immediate={_PATIENCE_SECONDS}"),
            *("--nodes=1", "--ntasks=1", "--export=ALL"),
        ]

    def cancel(self, job: Job, native: str) -> None:
        """Tell the step to end, or no longer wait for the job. The job itself is never touched.

        Raises:
            NotAvailable: Slurm cannot be asked.
        """
        step = self._step(job)
        if step is None and job.attempt in attempts(job.folder):
            return
        job_notes.note_cancelled(job)
        if step is not None:
            self._cancel(step, "--signal=TERM")

    def log(self, job: Job, native: str) -> str:
        """The end of what srun and the step printed."""
        return "".join(paths.end_of(job.folder / name) for name in (START_LOG, JOB_LOG))


def _kept(data: bytes, suffix: str) -> Path:
    """A file of the user's cache that has ``data``, where a node finds it that shares the home
    folder; it is named after what it has.

    Raises:
        NotAvailable: the cache cannot be written.
    """
    path = paths.cache_home() / "capsules" / f"{sha256(data).hexdigest()}{suffix}"
    try:
        paths.make_private(path.parent)
        output.write_once(path, data)
    except OSError as error:
        raise job_notes.unwritten(path.parent, error) from error
    return path


def _ended(job: Job) -> JobStatus:
    """How a step ended that had begun: with its job, or because it was told to."""
    if job_notes.was_cancelled(job):
        return JobStatus(JobState.CANCELLED, "the recording alone, not the job")
    if any(map(is_open, sessions_in(job.folder))):
        return JobStatus(JobState.LOST, "its recorder was killed")
    return JobStatus(JobState.ENDED)


def _srun_is_here(folder: Path) -> bool:
    """Whether the ``srun`` of the study still lives, on this host."""
    try:
        with (folder / STARTING).open() as file:
            return not paths.locked(file.fileno(), fcntl.LOCK_SH)
    except OSError:
        return False
