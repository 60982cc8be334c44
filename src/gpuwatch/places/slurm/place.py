"""``--on slurm[,OPTION=VALUE...]``: one job of Slurm, submitted from here.

The study's folder must be on a file system that the nodes share: the job writes its sessions there.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core import units
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import Problem
from gpuwatch.core.paths import end_of
from gpuwatch.places import base, job_notes
from gpuwatch.places.base import Description, Job, JobState, JobStatus, Preview, Refused
from gpuwatch.places.slurm import commands, nodes, script, states
from gpuwatch.places.slurm.cluster import Cluster, may_still_run
from gpuwatch.places.slurm.states import Seen
from gpuwatch.session.placement import CAPSULE, JOB_LOG
from gpuwatch.session.reading.status import takes_over
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.attempts import attempts
from gpuwatch.session.study.outcomes import missing
from gpuwatch.session.study.plan import Part
from gpuwatch.session.study.plan import read as read_plan

_ID = re.compile(r"\b(\d+)\b")
_MEMORY = re.compile(r"^slurmstepd\S*: .*(exceeded memory limit|oom[-_]kill)", re.IGNORECASE | re.M)
"""In a job's log: Slurm killed it, or the kernel did."""
_HELP = "see sbatch --help for its options, and sinfo for the partitions"


class SlurmPlace(Cluster):
    """A cluster whose commands run here, and whose nodes share the study's folder."""

    kinds_outside = frozenset({"docker"})
    names_machine = False
    needed = commands.NEEDED

    def job_per_block(self, parts: Sequence[Part]) -> bool:
        """As the options say."""
        return self._options.job_per_block

    def preflight(self) -> list[Problem]:
        """Whether Slurm answers, and would take a job with these options."""
        try:
            self.connect(person=False)
            ping = commands.run(["scontrol", "ping"])
            if ping.code != 0:
                hint = "wait until it is back, or ask an administrator"
                text = f"Slurm's controller does not answer: {ping.problem}"
                return [Problem("slurm-away", text, hint)]
            answer = self._tried()
        except NotAvailable as error:
            return [Problem("slurm", error.message, error.hint)]
        if answer.code == 0:
            return []
        return [Problem("slurm-options", f"Slurm refuses such a job: {answer.problem}", _HELP)]

    def _tried(self) -> commands.Answer:
        """What sbatch says of such a job, without a submission."""
        return commands.run(["sbatch", "--test-only", *self._options.words], "#!/bin/sh\n")

    def describe(self) -> Description:
        """The cluster's partitions: Slurm gives a node for a job alone.

        Raises:
            NotAvailable: Slurm cannot be asked.
        """
        found = nodes.partitions(self._clusters)
        ask = ["srun", *self._options.words] if self._tried().code == 0 else []
        return nodes.described(found, ask, self._obstacles())

    @property
    def _partition(self) -> str | None:
        return self._options.partition or os.environ.get("SBATCH_PARTITION")

    def _obstacles(self) -> list[Problem]:
        try:
            found = nodes.partitions(self._clusters)
        except NotAvailable:  # a site without sinfo
            return []
        return nodes.obstacles(found, self._partition, self._options.limit)

    def preview(self, parts: Sequence[Part]) -> Preview:
        """Of several nodes only one is recorded; not every partition starts the job."""
        notes = [f"{problem.text}; {problem.hint}" for problem in self._obstacles()]
        if (several := states.parse_nodes(self._tried().errors)) is not None:
            notes.append(f"of its nodes, as {several}, the first alone runs and records the study")
        return Preview(tuple(notes))

    def expected_start(self) -> float | None:
        """As the scheduler expects it, which looks at no partition's state and limit."""
        return None if self._obstacles() else states.parse_start(self._tried().errors)

    def find(self, job: Job) -> str | None:
        """The id of this user's job of that name, as far as Slurm remembers it."""
        found = self._find(job)
        return None if found is None else found.id

    def submit(self, job: Job) -> str:
        """Submit the job, unless there is one of its name.

        Raises:
            Refused: Slurm does not take it.
            NotAvailable: Slurm cannot be asked.
        """
        if (found := self._find(job)) is not None:
            return found.id
        if "\\" in str(job.folder):
            raise Refused(
                f"Slurm cannot write to a path with a backslash: {job.folder}",
                "choose another folder: --out DIR",
            )
        job_notes.keep(job, CAPSULE, self._capsule)
        command = script.arguments(self._options, job.folder, job.attempt)
        text = script.batch(self._options, job.folder, _working(job), job.attempt)
        try:
            answer = commands.run(command, text)
        except NotAvailable:
            # The answer was lost, perhaps not the job.
            if (found := self._find(job)) is not None:
                return found.id
            raise
        if answer.code != 0:
            raise Refused(f"Slurm does not take the job: {answer.problem}", _HELP)
        # A site's own sbatch may print more: `ID[;CLUSTER]` is in its last line.
        ids = _ID.findall((answer.output.strip().splitlines() or [""])[-1])
        if not ids:
            if (found := self._find(job)) is not None:
                return found.id
            raise Refused(f"sbatch printed no job id: {answer.problem}", "try sbatch by hand")
        return str(ids[0])

    def _find(self, job: Job, native: str | None = None) -> Seen | None:
        """This user's job of that name, and of the id ``native``, as far as Slurm remembers it."""
        named = (f"--name={script.name(job.folder, job.attempt)}", f"--user={os.geteuid()}")
        told = self._queue("--states=all", *named, f"--format={states.FORMAT}")
        jobs = [seen for seen in states.parse_queue(told) if native in (None, seen.id)]
        return jobs[0] if jobs else None

    def state(self, job: Job, native: str) -> JobStatus:
        """What Slurm says of the job; once it has forgotten it, what its recorder left."""
        unless = " unless --on slurm,... names another"
        return base.resumable(self._state(job, native), job.folder, unless)

    def _state(self, job: Job, native: str) -> JobStatus:
        try:
            seen = self._find(job, native)
            begun = job.attempt in attempts(job.folder)
            if seen is None:
                return self._forgotten(job, native, begun=begun)
            status = states.status(seen, begun=begun)
            if status.state.over and job_notes.was_cancelled(job):
                return JobStatus(JobState.CANCELLED, where=status.where)
            if status.state is JobState.ENDED:
                return self._ended(job, native, status)
        except NotAvailable as error:
            return JobStatus(JobState.UNKNOWN, error.message, hint=error.hint)
        if status.state is JobState.FAILED and not self.log(job, native):
            hint = f"see that {job.folder} is on a file system that the nodes share"
            reason = status.reason or "the job ended before it could write its log"
            return JobStatus(JobState.FAILED, reason, hint=hint, where=status.where)
        return status

    def _ended(self, job: Job, native: str, status: JobStatus) -> JobStatus:
        """How a recorder ended that began: Slurm does not tell when it was asked to."""
        shown = ["scontrol", "show", "job", "--oneliner", *self._clusters, native]
        ended = states.parse_ended(commands.run(shown).output)
        if ended is not None and ended.signal == signal.SIGKILL:
            if _MEMORY.search(self.log(job, native)):
                return states.status(Seen(native, "OUT_OF_MEMORY", node=status.where), begun=True)
            killed, left, hint = "its recorder was killed", self.left(job), base.RESUME
            if left is not None:
                killed += f"; {left}"
                hint = f"on {status.where}: {takes_over(job.folder.name)}"
            return JobStatus(JobState.LOST, killed, hint=hint, where=status.where)
        if (
            ended is not None
            and ended.limit is not None
            and states.at_its_limit(ended, self._options.notice)
            and _incomplete(job.folder)
        ):
            early = max(0, ended.limit - ended.ran)
            limit = f"its limit of {units.clock_time(ended.limit)}"
            reason = f"job {native} closed {early} s before {limit}"
            return JobStatus(JobState.TIMED_OUT, reason, hint=base.RESUME, where=status.where)
        return status

    def _forgotten(self, job: Job, native: str, *, begun: bool) -> JobStatus:
        if job_notes.was_cancelled(job):
            return JobStatus(JobState.CANCELLED)
        word = self._accounted(native)
        if word is not None:
            return states.status(Seen(native, word), begun=begun)
        if begun and study_folder.is_held(job.folder):
            return JobStatus(JobState.RUNNING)
        if begun and not any(map(study_folder.is_open, study_folder.sessions_in(job.folder))):
            return JobStatus(JobState.ENDED)
        return JobStatus(JobState.LOST, f"Slurm has forgotten the job {native}", hint=base.RESUME)

    def _accounted(self, native: str) -> str | None:
        """Slurm's accounting of the job, where a site has one."""
        if shutil.which("sacct") is None:
            return None
        asked = ["sacct", "--noheader", "--parsable2", "--allocations", "--format=State"]
        try:
            answer = commands.run([*asked, *self._clusters, f"--jobs={native}"])
        except NotAvailable:
            return None
        return states.parse_accounting(answer.output) if answer.code == 0 else None

    def cancel(self, job: Job, native: str) -> None:
        """Take a job that waits from the queue; tell a recorder to end, and so to close its
        sessions. Only a job of this user with the attempt's name is touched.

        Raises:
            NotAvailable: Slurm cannot be asked.
        """
        seen = self._find(job, native)
        if seen is None:
            return
        status = states.status(seen, begun=True)
        if status.state.over:
            return
        told: list[str] = []
        if status.state is JobState.RUNNING:
            told = ["--batch", "--signal=TERM"]
        job_notes.note_cancelled(job)
        told.append(f"--name={script.name(job.folder, job.attempt)}")
        self._cancel(seen.id, *told, f"--user={os.geteuid()}")

    def left(self, job: Job) -> str | None:
        """What may still run on its node, unless Slurm ends all of a job by its control group.

        Raises:
            NotAvailable: Slurm cannot be asked.
        """
        if "proctrack/cgroup" in commands.run(["scontrol", "show", "config"]).output:
            return None
        return may_still_run(job.folder)

    def log(self, job: Job, native: str) -> str:
        """The end of what the job printed."""
        return end_of(job.folder / JOB_LOG)


def _working(job: Job) -> Path:
    """The folder in which the study was started, as its plan tells."""
    plan = read_plan(job.folder)
    return Path((plan and plan.settings.working_directory) or job.folder)


def _incomplete(folder: Path) -> bool:
    """Whether runs of the study are missing; one of the machine ends whenever it is told."""
    plan = read_plan(folder)
    return plan is None or (not plan.of_machine and bool(missing(folder, plan)))
