"""``--on kubernetes[,KEY=VALUE...]``: one Job, whose pod runs the recorder.

The Job is named after the attempt, and owns what it reads: with it goes all that a study has in a
cluster. Sessions are fetched through ``kubectl exec``; the pod stays until that is done.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON, Problem, mapping
from gpuwatch.places import base, job_notes
from gpuwatch.places.base import (
    Description,
    Gone,
    Job,
    JobState,
    JobStatus,
    Place,
    PlaceSpec,
    Preview,
    Refused,
)
from gpuwatch.places.kubernetes import manifest, nodes, options, own_jobs, pod_plan, rights, states
from gpuwatch.places.kubernetes.kubectl import Denied, Kubectl
from gpuwatch.places.kubernetes.manifest import Sent, Turn
from gpuwatch.session.placement import WORK, kubernetes_job
from gpuwatch.session.study.outcomes import first_block, missing
from gpuwatch.session.study.plan import Part
from gpuwatch.session.study.plan import read as read_plan

_SEND_SECONDS = 3600.0
_NEXT_SECONDS = 10.0
"""For which it is waited that the API tells of a container's end."""
_ONE_NODE = (
    "each image of a block has a pod of its own, on the node of the block's first; of several GPUs "
    "there it may be given another one, and then there is no verdict"
)
_EXAMPLE, _EXAMPLE_NODE = "0" * 16, "node-of-the-first"


class KubernetesPlace(Place):
    """A namespace of a cluster, reached with the user's own kubectl."""

    shares_files = False
    kinds_outside = frozenset[str]()
    names_machine = False
    takes_folder = True

    def __init__(self, spec: PlaceSpec, capsule: Path) -> None:
        """``capsule``: gpuwatch as one file.

        Raises:
            UsageError: an option is unknown or misspelt.
        """
        self._options = options.parse(spec)
        self._capsule = capsule
        self._chosen: Kubectl | None = None

    @property
    def _kubectl(self) -> Kubectl:
        """kubectl, with the context and namespace written out: another current context must not
        turn it to another cluster.

        Raises:
            NotAvailable: there is no kubectl, or no such context.
        """
        if self._chosen is None:
            plain = Kubectl(self._options.context)
            view = plain.run("config", "view", "--minify", "--output=json")
            try:
                found = mapping(json.loads(view))
                current = str(found["current-context"])
                (context,) = (mapping(each)["context"] for each in found["contexts"])
            except (ValueError, KeyError, TypeError, AttributeError):
                raise NotAvailable(
                    "kubectl has no current context",
                    "choose one: kubectl config use-context NAME, or --on kubernetes,context=NAME",
                ) from None
            told = mapping(context).get("namespace")
            namespace = self._options.namespace or (told if isinstance(told, str) else "default")
            self._chosen = Kubectl(self._options.context or current, namespace or "default")
            options.check_context(str(self._chosen.context))
        return self._chosen

    def exact(self, text: str) -> str:
        """``text`` with the context and the namespace that it means now.

        Raises:
            NotAvailable: kubectl has no context.
        """
        chosen = self._kubectl
        if self._options.context is None:
            text += f",context={chosen.context}"
        if self._options.namespace is None:
            text += f",namespace={chosen.namespace}"
        return text

    def _list(self, kind: str, attempt: str) -> list[Mapping[str, JSON]]:
        """The Jobs or pods of an attempt."""
        selector = quote(manifest.selector(own_jobs.owner(), attempt))
        return self._kubectl.items(f"{self._kubectl.path(kind)}?labelSelector={selector}")

    def connect(self, *, person: bool) -> None:
        """See that the API server answers.

        Raises:
            NotAvailable: it does not, or kubectl is not here.
        """
        self._kubectl.get("/version")

    def job_per_block(self, parts: Sequence[Part]) -> bool:
        """As the options say, and where its images take turns."""
        images = pod_plan.images(parts, self._options.image)
        return self._options.jobs != "study" or len(images) > 1

    @property
    def _by_image(self) -> bool:
        """Whether each image of a block has a pod of its own."""
        return self._options.jobs == "image"

    def preflight(self) -> list[Problem]:
        """Whether this user may do what is needed, and the server would take such a Job."""
        try:
            for problem in rights.lacking(self._kubectl):
                return [problem]
            for problem in self._without_claim():
                return [problem]
            sent = self._example((self._options.image or "image",), later=self._by_image)
            tried = f"{self._kubectl.path('jobs')}?dryRun=All"
            self._kubectl.create(tried, manifest.job(sent, self._options))
        except Denied as error:
            if error.reason == "NotFound":
                text = f"there is no namespace {self._kubectl.namespace}"
                hint = f"make it: kubectl create namespace {self._kubectl.namespace}"
                return [Problem("kubernetes-namespace", text, hint)]
            text = f"the cluster refuses such a Job: {error.message}"
            return [Problem("kubernetes-job", text, error.hint)]
        except NotAvailable as error:
            return [Problem("kubernetes", error.message, error.hint)]
        return []

    def _without_claim(self) -> list[Problem]:
        """Why sessions cannot be written into the claim, as far as this user may look."""
        claim, namespace = self._options.claim, self._kubectl.namespace
        if claim is None:
            return []
        look = f"those that there are: kubectl get pvc --namespace={namespace}"
        try:
            found = self._kubectl.get(self._kubectl.path("persistentvolumeclaims", claim))
        except Denied as error:
            if error.reason != "NotFound":
                return []
            text = f"there is no PersistentVolumeClaim {claim} in the namespace {namespace}"
            return [Problem("kubernetes-claim", text, f"make it, or name another; {look}")]
        if mapping(found.get("status")).get("phase") == "Lost":
            text = f"the PersistentVolumeClaim {claim} has lost its volume"
            return [Problem("kubernetes-claim", text, f"name another; {look}")]
        return []

    def preview(self, parts: Sequence[Part]) -> Preview:
        """How long its pod may hold what it has, and the Job that would be made, as JSON.

        Raises:
            Refused: its environments are not those of a pod.
        """
        images = pod_plan.images(parts, self._options.image)
        examples = [self._example(images)]
        if self._by_image:
            examples = [self._example((image,), later=image != images[0]) for image in images[:2]]
        claim, most = self._options.claim, f"{self._options.linger / 60:g} min at most"
        stays = "stays" if self._options.gpu is None else "keeps its GPU"
        held = f"after its last run the pod {stays} until all is fetched, {most}"
        if claim is not None:
            held = (
                f"sessions are written into {claim}, and stay there; a pod without a GPU, {most}, "
            )
            held += "fetches what is missing when the last run is over"
        notes = (held, *([_ONE_NODE] if len(examples) > 1 else []))
        shown = [json.dumps(manifest.job(each, self._options), indent=1) for each in examples]
        return Preview(notes, images, "\n".join(shown))

    def _example(self, images: Sequence[str], *, later: bool = False) -> Sent:
        """What a Job is made of, before there is a study; ``later``: one that has to follow another
        one to its node."""
        turns, capsule = tuple(map(Turn, images)), self._capsule.read_bytes()
        node = _EXAMPLE_NODE if later else None
        return Sent(_EXAMPLE, own_jobs.owner(), "study", turns, "", capsule, work=False, node=node)

    def describe(self) -> Description:
        """The cluster, what this user may do there, the GPUs of its nodes, and the image.

        Raises:
            NotAvailable: the cluster does not answer.
        """
        return nodes.described(self._kubectl, self._options)

    def send_folder(self, job: Job, archive: Path) -> None:
        """Keep the tar file here until there is a pod that takes it.

        Raises:
            NotAvailable: it cannot be kept.
        """
        job_notes.keep(job, WORK, archive)

    def find(self, job: Job) -> str | None:
        """The id of this user's Job of that name."""
        found = self._find(job)
        return None if found is None else states.uid_of(found)

    def _find(self, job: Job, native: str | None = None) -> Mapping[str, JSON] | None:
        jobs = self._list("jobs", job.attempt)
        return next((each for each in jobs if native in (None, states.uid_of(each))), None)

    def submit(self, job: Job) -> str:
        """Make the Job, unless there is one of its name; then what it reads.

        Raises:
            Refused: the cluster does not take it, or its environments are not those of a pod.
            NotAvailable: the cluster cannot be asked.
        """
        sent = self._sent(job)
        own_jobs.note(self._kubectl)
        try:
            made = self._kubectl.create(
                self._kubectl.path("jobs"), manifest.job(sent, self._options)
            )
        except Denied as error:
            if error.reason != "AlreadyExists":
                raise Refused(f"the cluster refuses the Job: {error.message}", error.hint) from None
            found = self._find(job)
            if found is None:
                raise Refused(f"there is a Job {sent.name} of somebody else", "try again") from None
            made = dict(found)
        uid = states.uid_of(made)
        for each in manifest.config_maps(sent, uid):
            try:
                self._kubectl.create(self._kubectl.path("configmaps"), each)
            except Denied as error:
                if error.reason == "AlreadyExists":
                    continue
                self._delete(sent.name, uid)
                raise Refused(
                    f"the cluster refuses a ConfigMap: {error.message}", error.hint
                ) from None
        return uid

    def _sent(self, job: Job) -> Sent:
        plan = read_plan(job.folder)
        if plan is None:
            raise Refused(f"{job.folder} has no plan that can be read", "start the study again")
        runs = missing(job.folder, plan)
        node = None
        if self.job_per_block(plan.parts):
            runs = first_block(runs)
        if self._by_image:
            node = pod_plan.node_of_block(job.folder, plan, runs[0])
        turns = pod_plan.turns(plan, runs, job.attempt, self._options.image, rested=node is None)
        return Sent(
            attempt=job.attempt,
            owner=own_jobs.owner(),
            study=job.study,
            turns=turns[:1] if self._by_image else turns,
            plan=pod_plan.text(plan),
            capsule=self._capsule.read_bytes(),
            work=job.work,
            shared=self._sharing(),
            node=node,
        )

    def _sharing(self) -> dict[str, list[str]]:
        gpu = self._options.gpu
        if gpu is None:
            return {}
        return nodes.sharing_by_node(self._kubectl, gpu[0], self._options.nodes)

    def state(self, job: Job, native: str) -> JobStatus:
        """What became of the Job. A pod that waits for the working folder is sent it."""
        try:
            return base.resumable(self._state(job, native), job.folder)
        except NotAvailable as error:
            return JobStatus(JobState.UNKNOWN, error.message, hint=error.hint)

    def _state(self, job: Job, native: str) -> JobStatus:
        found, pods = self._find(job, native), self._list("pods", job.attempt)
        cancelled, noted = job_notes.was_cancelled(job), job_notes.noted_pod(job)
        pod = states.the_pod(pods, noted)
        silent = noted is None or pod is None or states.is_over(pod)
        events = self._events(job) if found is not None and silent else []
        status = states.job_status(found, pods, events, cancelled=cancelled, noted=noted)
        if found is not None and status.state.over and self._keeps(pod, noted):
            return self._of_kept(job, found, pod, status)
        if pod is None:
            return status
        node = manifest.node_of(pod)
        if status.state is JobState.QUEUED and node is not None:
            return states.of_node(
                status, node, nodes.why_not(self._kubectl, node, self._options.gpu)
            )
        if status.state is not JobState.STARTING or not states.is_running(pod):
            return status
        try:
            told = self._told(pod)
        except NotAvailable:
            if not self._goes_on(job, pod):
                raise
            return JobStatus(JobState.RUNNING, where=status.where)
        if noted is None and told.get("phase") in ("running", "ended"):
            job_notes.note_pod(job, states.uid_of(pod))
        if told.get("phase") == "waiting" and not cancelled:
            self._send_kept(job, pod)
        taken = self._taken(job, native, told, pod)
        return states.in_pod(told, pod, cancelled=cancelled, taken=taken)

    def _taken(
        self, job: Job, native: str, told: Mapping[str, JSON], pod: Mapping[str, JSON]
    ) -> JobStatus | None:
        """Why the cluster took a pod away, as far as it tells; it is asked after the pod."""
        if told.get("told_to_go") is not True:
            return None
        return states.taken_away(self._find(job, native) or {}, pod, self._events(job))

    def _keeps(self, pod: Mapping[str, JSON] | None, noted: str | None) -> bool:
        """Whether a pod that is over has left its sessions in a claim."""
        began = noted is not None or (pod is not None and states.ended_well(pod))
        return began and self._options.claim is not None

    def _of_kept(
        self,
        job: Job,
        found: Mapping[str, JSON],
        pod: Mapping[str, JSON] | None,
        status: JobStatus,
    ) -> JobStatus:
        """The state of a job that is over, once the pod is there that fetches what it kept; until
        then it goes on."""
        attempt = manifest.fetching(job.attempt)
        jobs, pods = self._list("jobs", attempt), self._list("pods", attempt)
        fetcher = states.the_pod(pods, None)
        if fetcher is not None and states.is_running(fetcher):
            if pod is None or not states.ended_well(pod) or status.state is JobState.CANCELLED:
                return status
            told = self._told(fetcher)
            taken = self._taken(job, states.uid_of(found), told, pod)
            return states.in_pod({**told, "phase": "ended"}, pod, cancelled=False, taken=taken)
        waits = states.job_status(jobs[0], pods) if jobs else JobStatus(JobState.STARTING)
        if not jobs:
            self._make_fetcher(job, found)
        elif waits.state.over:  # nobody came within `linger=`: another one is made at the next look
            self._delete(kubernetes_job(attempt), states.uid_of(jobs[0]))
        reason = (
            f"its runs are over, and a pod without a GPU is to fetch from {self._options.claim}"
        )
        if waits.reason:
            reason += f" ({waits.reason})"
        return JobStatus(JobState.RUNNING, reason, hint=waits.hint, where=status.where)

    def _make_fetcher(self, job: Job, found: Mapping[str, JSON]) -> None:
        plan, claim = read_plan(job.folder), self._options.claim
        if plan is None or claim is None:
            raise NotAvailable(f"{job.folder} has no plan that can be read", "put it back")
        images = pod_plan.images(plan.parts, self._options.image)
        # Of its own image, whose user may read what that wrote.
        image = next((each for each in images if each == manifest.image_of(found)), images[0])
        sent = Sent(job.attempt, own_jobs.owner(), job.study, (Turn(image),), "", b"", work=False)
        made = manifest.fetcher(sent, states.uid_of(found), claim, self._options)
        try:
            self._kubectl.create(self._kubectl.path("jobs"), made)
        except Denied as error:
            if error.reason != "AlreadyExists":
                raise

    def _goes_on(self, job: Job, pod: Mapping[str, JSON]) -> bool:
        """Whether a container of the pod that does not answer has ended, and others follow. The API
        tells that a moment later."""
        until = time.monotonic() + _NEXT_SECONDS
        while states.has_next(pod) and time.monotonic() < until:
            now = self._the_pod(job)
            if now is not None and states.container_of(now) != states.container_of(pod):
                return True
            time.sleep(0.3)
        return False

    def _the_pod(self, job: Job) -> Mapping[str, JSON] | None:
        return states.the_pod(self._list("pods", job.attempt), job_notes.noted_pod(job))

    def _events(self, job: Job) -> list[Mapping[str, JSON]]:
        """What was told of the Job and its pods, where this user may read that."""
        try:
            events = self._kubectl.items(self._kubectl.path("events"))
        except NotAvailable:
            return []
        prefix = kubernetes_job(job.attempt)
        return [
            event
            for event in events
            if str(mapping(event.get("involvedObject")).get("name")).startswith(prefix)
        ]

    def _told(self, pod: Mapping[str, JSON]) -> Mapping[str, JSON]:
        """What the program of a pod says."""
        try:
            return mapping(json.loads(self._call(pod, "state") or "{}"))
        except (ValueError, TypeError, RecursionError):
            return {}

    def _send_kept(self, job: Job, pod: Mapping[str, JSON]) -> None:
        data = job_notes.kept_folder(job)
        if data is None:
            raise NotAvailable("the working folder is not here any more", "start the study anew")
        size = str(len(data))
        self._call(pod, "receive", job.study, size, data=data, seconds=_SEND_SECONDS)

    def _call(
        self,
        pod: Mapping[str, JSON],
        *words: str,
        data: bytes = b"",
        seconds: float = 30.0,
    ) -> str:
        command = manifest.call(self._options.python, *words)
        container = states.container_of(pod)
        return self._kubectl.call(states.name_of(pod), container, command, data, seconds)

    def open(self, job: Job, arguments: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start gpuwatch in the pod; see :class:`gpuwatch.places.base.Place`.

        Raises:
            Gone: the pod does not record yet, is gone, or over.
        """
        pod = self._the_pod(job) if job_notes.noted_pod(job) is not None else None
        if self._options.claim is not None and (pod is None or not states.is_running(pod)):
            pod = states.the_pod(self._list("pods", manifest.fetching(job.attempt)), None)
        if pod is None or not states.is_running(pod):
            raise Gone("there is no pod to fetch from", "it is looked at again")
        command = manifest.call(self._options.python, "run", job.study, *arguments)
        return self._kubectl.start(
            states.name_of(pod), states.container_of(pod), command, subprocess.DEVNULL
        )

    def cancel(self, job: Job, native: str) -> None:
        """Have the recorder close its sessions; without a pod that runs, delete the Job.

        Raises:
            NotAvailable: the cluster cannot be asked.
        """
        found = self._find(job, native)
        pod = self._the_pod(job)
        if found is None and pod is None:
            return
        if job.folder.is_dir():
            job_notes.note_cancelled(job)
        if self._keeps(pod, job_notes.noted_pod(job)) and not (pod and states.is_running(pod)):
            return  # it is over, and what it kept is still to be fetched
        if pod is not None and states.is_running(pod):
            with contextlib.suppress(NotAvailable):  # it ends just now, or its node is away
                self._call(pod, "stop")
                return
        self.let_go(job, native)

    def let_go(self, job: Job, native: str) -> None:
        """Delete the Job and all that it owns.

        Raises:
            NotAvailable: the cluster cannot be asked.
        """
        self._delete(kubernetes_job(job.attempt), native)

    def _delete(self, name: str, uid: str) -> None:
        self._kubectl.delete(self._kubectl.path("jobs", name), uid)

    def log(self, job: Job, native: str) -> str:
        """The end of what the recorder printed."""
        pod = self._the_pod(job)
        if pod is None or not states.is_running(pod):
            return ""
        return self._call(pod, "log")
