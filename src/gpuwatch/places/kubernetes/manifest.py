"""The objects that a study is in a cluster: a Job, and two ConfigMaps that it owns."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import field
from hashlib import sha256
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping
from gpuwatch.places.kubernetes import in_pod, sharing
from gpuwatch.places.kubernetes.options import Options
from gpuwatch.session.placement import kubernetes_job

CONTAINER = "gpuwatch"
OWNER, ATTEMPT = "gpuwatch/owner", "gpuwatch/attempt"
"""Labels: a random name of this user's state folder, and the attempt."""
_NODE = "gpuwatch/node"
"""Annotation: the node that the pod must be on."""
_QUEUE = "kueue.x-k8s.io/queue-name"
_GRACE_SECONDS = 60
"""In which a workload that is told to end may save."""
_PROGRAM = f"{in_pod.SENT}/{in_pod.PROGRAM}"
_START = """\
import hashlib, sys
path, digest = sys.argv[1:3]
with open(path, "rb") as file:
    data = file.read()
if hashlib.sha256(data).hexdigest() != digest:
    sys.exit(path + " is not what was sent")
sys.argv[:3] = [path]
exec(compile(data, path, "exec"))
"""
"""Runs the program of the pod if it is what was sent: another user of the namespace may have made a
ConfigMap of that name first, but cannot change the Job."""
_FORGOTTEN_SECONDS = 7 * 24 * 3600
"""After its end, a Job that nobody has deleted is deleted by the cluster, and what its pod left
behind with it."""


@dataclass(frozen=True)
class Turn:
    """What one container of the pod does. They run one after the other, on the same GPU."""

    image: str
    words: tuple[str, ...] = ()
    """Further words for the recorder."""
    rest: float = 0.0
    """Seconds of rest before it."""


@dataclass(frozen=True)
class Sent:
    """What a Job is made of."""

    attempt: str
    owner: str
    study: str
    """The name of the study's folder there."""
    turns: tuple[Turn, ...]
    """At least one."""
    plan: str
    capsule: bytes
    work: bool
    """Whether a working folder is sent after its start."""
    shared: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """How pods share a GPU, each with the names of the nodes where they do it so."""
    node: str | None = None
    """The node that the pod must be on; ``None``: any."""

    @property
    def name(self) -> str:
        """The name of the Job."""
        return kubernetes_job(self.attempt)

    @property
    def labels(self) -> dict[str, JSON]:
        """The labels of every object."""
        return {
            "app.kubernetes.io/managed-by": "gpuwatch",
            OWNER: self.owner,
            ATTEMPT: self.attempt,
        }


def job(sent: Sent, options: Options) -> dict[str, JSON]:
    """The Job: one pod, which is never started again."""
    labels = dict(sent.labels)
    if options.queue is not None:
        labels[_QUEUE] = options.queue
    spec: dict[str, JSON] = {
        "backoffLimit": 0,
        "completions": 1,
        "parallelism": 1,
        # What waits in a claim holds no GPU, and is fetched with what the Job owns.
        **({} if options.claim else {"ttlSecondsAfterFinished": _FORGOTTEN_SECONDS}),
        # Servers before 1.28 and 1.26 leave these out.
        "podReplacementPolicy": "Failed",
        "podFailurePolicy": {
            "rules": [{"action": "FailJob", "onPodConditions": [{"type": "DisruptionTarget"}]}]
        },
        "template": {
            "metadata": {
                "labels": sent.labels,
                **({"annotations": {_NODE: sent.node}} if sent.node is not None else {}),
            },
            "spec": _pod(sent, options),
        },
    }
    if options.queue is not None:
        spec["suspend"] = True
    return _job({"name": sent.name, "labels": labels}, spec)


def _job(metadata: dict[str, JSON], spec: dict[str, JSON]) -> dict[str, JSON]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def node_of(pod: Mapping[str, JSON]) -> str | None:
    """The node that a pod must be on; ``None``: any."""
    noted = mapping(mapping(pod.get("metadata")).get("annotations")).get(_NODE)
    return noted if isinstance(noted, str) else None


def _only_on(node: str) -> dict[str, JSON]:
    """Has the scheduler, which knows what is free there, put a pod on this node. A node's label of
    its host name may be another than its name."""
    field: JSON = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms: JSON = [{"matchFields": [field]}]
    required: JSON = {"nodeSelectorTerms": terms}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}


def _least() -> dict[str, JSON]:
    """What every pod has, and has not."""
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": _GRACE_SECONDS,
        "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    }


def _rights(*, writable_root: bool) -> dict[str, JSON]:
    return {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": not writable_root,
    }


def _program(options: Options) -> list[JSON]:
    """The command that runs the program of the pod, checked."""
    digest = sha256(program()).hexdigest()
    return [options.python, "-I", "-c", _START, _PROGRAM, digest]


def _homes(cache: str) -> list[JSON]:
    """Where gpuwatch has its own files in a pod."""
    folders = {"CACHE": cache, "DATA": "share", "STATE": "state"}
    return [
        {"name": f"XDG_{name}_HOME", "value": f"{in_pod.DATA}/{folder}"}
        for name, folder in folders.items()
    ]


def _pod(sent: Sent, options: Options) -> dict[str, JSON]:
    *before, last = (_container(sent, number, options) for number in range(1, len(sent.turns) + 1))
    of_images = [
        volume
        for number in range(1, len(_images(sent)) + 1)
        for volume in (
            {"name": f"tmp-{number}", "emptyDir": {}},
            # A runtime's own has 64 MB, too little for the workers of a data loader.
            {"name": f"shm-{number}", "emptyDir": {"medium": "Memory"}},
        )
    ]
    return {
        **_least(),
        **({"nodeSelector": {**options.nodes}} if options.nodes else {}),
        **({"affinity": _only_on(sent.node)} if sent.node is not None else {}),
        # Those run one after the other, and a device plugin gives each the same GPUs.
        **({"initContainers": before} if before else {}),
        "containers": [last],
        "volumes": [
            _sent_volume(sent.attempt),
            {"name": "data", "emptyDir": {}},
            *([_claim_volume(options.claim)] if options.claim else []),
            *of_images,
        ],
    }


def _sent_volume(attempt: str) -> dict[str, JSON]:
    """What the pods of an attempt read."""
    names = [f"{kubernetes_job(attempt)}-{part}" for part in ("capsule", "plan")]
    sources: list[JSON] = [{"configMap": {"name": name}} for name in names]
    return {"name": "sent", "projected": {"defaultMode": 0o444, "sources": sources}}


def _claim_volume(claim: str) -> dict[str, JSON]:
    return {"name": "claim", "persistentVolumeClaim": {"claimName": claim}}


def _claim_mount(study: str, attempt: str) -> dict[str, JSON]:
    """Of the claim a pod sees the folder of its attempt alone."""
    folder = f"gpuwatch/{study}/{attempt}"
    return {"name": "claim", "mountPath": in_pod.STUDIES, "subPath": folder}


def fetcher(sent: Sent, job_id: str, claim: str, options: Options) -> dict[str, JSON]:
    """A Job of the Job with this id, whose pod has the claim and no GPU, records nothing, and
    stays until it is deleted with its owner, or ``linger=`` is over."""
    attempt = sent.attempt
    labels: dict[str, JSON] = {**sent.labels, ATTEMPT: fetching(attempt)}
    container: dict[str, JSON] = {
        "name": CONTAINER,
        "image": sent.turns[0].image,
        "imagePullPolicy": "IfNotPresent",
        "command": [*_program(options), "wait", str(options.linger)],
        "env": _homes("cache"),
        "securityContext": _rights(writable_root=False),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "sent", "mountPath": in_pod.SENT, "readOnly": True},
            {"name": "data", "mountPath": in_pod.DATA},
            {"name": "data", "mountPath": "/tmp", "subPath": "tmp"},  # noqa: S108 - the pod's own
            _claim_mount(sent.study, attempt),
        ],
    }
    volumes: list[JSON] = [
        _sent_volume(attempt),
        {"name": "data", "emptyDir": {}},
        _claim_volume(claim),
    ]
    pod = {**_least(), "containers": [container], "volumes": volumes}
    spec = {"backoffLimit": 0, "template": {"metadata": {"labels": labels}, "spec": pod}}
    return _job(_of_job(sent, job_id, kubernetes_job(fetching(attempt)), labels), spec)


def fetching(attempt: str) -> str:
    """What the Job is named after that fetches what an attempt kept in a claim."""
    return f"{attempt}-fetch"


def _images(sent: Sent) -> list[str]:
    """The images of the pod, each once."""
    return list(dict.fromkeys(turn.image for turn in sent.turns))


def _container(sent: Sent, number: int, options: Options) -> dict[str, JSON]:
    """The container of the turn with this number, from 1. What an image keeps for later runs is
    its own."""
    turn, last = sent.turns[number - 1], number == len(sent.turns)
    own = _images(sent).index(turn.image) + 1
    gpus = {} if options.gpu is None else {options.gpu[0]: str(options.gpu[1])}
    others = {"cpu": options.cpu, "memory": options.memory}
    amounts = {**gpus, **{name: amount for name, amount in others.items() if amount is not None}}
    return {
        "name": CONTAINER if last else f"{CONTAINER}-{number}",
        "image": turn.image,
        "imagePullPolicy": "IfNotPresent",
        "command": [
            *_program(options),
            *("begin", json.dumps(_told(sent, turn, options, last=last))),
        ],
        "env": [
            *_homes(f"cache-{own}"),
            {"name": "GPUWATCH_POD_IMAGE", "value": turn.image},
            _field("GPUWATCH_POD", "metadata.name"),
            _field("GPUWATCH_POD_NAMESPACE", "metadata.namespace"),
            _field("GPUWATCH_POD_NODE", "spec.nodeName"),
        ],
        **({"resources": {"limits": amounts, "requests": amounts}} if amounts else {}),
        "securityContext": _rights(writable_root=options.writable_root),
        "terminationMessagePath": in_pod.MESSAGE,
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": "sent", "mountPath": in_pod.SENT, "readOnly": True},
            {"name": "data", "mountPath": in_pod.DATA},
            *([_claim_mount(sent.study, sent.attempt)] if options.claim else []),
            {"name": f"tmp-{own}", "mountPath": "/tmp"},  # noqa: S108 - the pod's own
            {"name": f"shm-{own}", "mountPath": "/dev/shm"},  # noqa: S108
        ],
    }


def _field(name: str, path: str) -> dict[str, JSON]:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _told(sent: Sent, turn: Turn, options: Options, *, last: bool) -> dict[str, JSON]:
    """What the program of the pod is told."""
    return {
        "study": sent.study,
        "sha256": {
            in_pod.CAPSULE: sha256(sent.capsule).hexdigest(),
            in_pod.PLAN: sha256(sent.plan.encode()).hexdigest(),
        },
        "words": turn.words,
        "rest": turn.rest,
        "last": last,
        "linger": 0 if options.claim else options.linger,
        "work": sent.work,
        "shared": {text: list(names) for text, names in sent.shared.items()},
        # As what is asked for says it by itself.
        "shared_elsewhere": options.gpu and sharing.shared(options.gpu[0], options.nodes),
    }


def program() -> bytes:
    """The program of the pod."""
    return Path(in_pod.__file__).read_bytes()


def config_maps(sent: Sent, job_id: str) -> list[dict[str, JSON]]:
    """What the Job with this id reads. They are its own: the cluster deletes them with it."""
    capsule = {in_pod.CAPSULE: base64.b64encode(sent.capsule).decode()}
    texts = {in_pod.PLAN: sent.plan, in_pod.PROGRAM: program().decode()}
    return [
        _config_map(sent, job_id, "capsule", {"binaryData": capsule}),
        _config_map(sent, job_id, "plan", {"data": texts}),
    ]


def _config_map(sent: Sent, job_id: str, part: str, data: dict[str, JSON]) -> dict[str, JSON]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": _of_job(sent, job_id, f"{sent.name}-{part}", sent.labels),
        "immutable": True,
        **data,
    }


def _of_job(sent: Sent, job_id: str, name: str, labels: dict[str, JSON]) -> dict[str, JSON]:
    """The metadata of an object that goes with its Job."""
    owner: JSON = {"apiVersion": "batch/v1", "kind": "Job", "name": sent.name, "uid": job_id}
    return {"name": name, "labels": labels, "ownerReferences": [owner]}


def of_owner(owner: str) -> str:
    """Selects the objects of this user."""
    return f"{OWNER}={owner}"


def selector(owner: str, attempt: str) -> str:
    """Selects the objects of one attempt of this user's."""
    return f"{of_owner(owner)},{ATTEMPT}={attempt}"


def image_of(job: Mapping[str, JSON]) -> JSON:
    """The image of the last container of a Job's pod."""
    pod = mapping(mapping(mapping(job.get("spec")).get("template")).get("spec"))
    containers = pod.get("containers")
    return mapping(containers[-1]).get("image") if isinstance(containers, list) else None


def attempt_of(value: Mapping[str, JSON]) -> str:
    """The attempt that an object names."""
    labels = mapping(mapping(value.get("metadata")).get("labels"))
    return str(labels.get(ATTEMPT))


def call(python: str, *words: str) -> list[str]:
    """The command that has the pod's program answer."""
    return [python, "-I", _PROGRAM, *words]
