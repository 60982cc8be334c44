"""What ``gpuwatch doctor --on kubernetes`` tells: the cluster, rights, the nodes' GPUs; and what is
with the node that a pod waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from urllib.parse import quote

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Problem, mapping, sequence
from gpuwatch.core.text import clean
from gpuwatch.places.base import Description
from gpuwatch.places.kubernetes import rights, sharing
from gpuwatch.places.kubernetes.kubectl import Kubectl
from gpuwatch.places.kubernetes.options import Options
from gpuwatch.places.kubernetes.states import condition

_LABELS = (
    "nvidia.com/gpu.product",
    "cloud.google.com/gke-accelerator",
    "karpenter.k8s.aws/instance-gpu-name",
    "gpu.nvidia.com/class",
)
"""Labels that tell a node's accelerator, by who sets them."""
_QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)")
_UNITS = {
    "m": 1e-3,
    **{unit: 1e3**power for power, unit in enumerate(("", "k", "M", "G", "T", "P"))},
    **{unit: 1024.0**power for power, unit in enumerate(("", "Ki", "Mi", "Gi", "Ti", "Pi"))},
}
_MOST_TOLD = 3
_OVER = ("Succeeded", "Failed")
_NO_ROOM = "has no room for it"
_MOST_NODES = 500
"""Of which a pod is told whether they share their GPUs."""


@dataclass(frozen=True)
class Offer:
    """A resource of a node that is a GPU."""

    count: int
    free: int | None
    """``None``: not told."""
    shared: str | None = None
    """How pods share one, or that they do not; ``None``: not told."""
    mig: bool = False
    """Whether each is a MIG device, a part of a GPU."""

    @property
    def text(self) -> str:
        """For people."""
        free = f"{self.count}, how many are free is unknown"
        words = [free if self.free is None else f"{self.free} of {self.count} free"]
        words += ["each a MIG device, a part of a GPU"] if self.mig else []
        if self.shared not in (None, sharing.NOT_SHARED):
            words.append(f"pods share a GPU ({self.shared}), its time and its metrics")
        return ", ".join(words)


@dataclass(frozen=True)
class Node:
    """One node of the cluster."""

    name: str
    ready: bool
    takes_pods: bool
    gpus: dict[str, Offer]
    """By resource."""
    labels: dict[str, str]
    """Those that tell its accelerator."""

    @property
    def line(self) -> str:
        """For people."""
        words = [f"node        {self.name}"]
        if not self.ready:
            words.append("not ready")
        elif not self.takes_pods:
            words.append("takes no pods")
        words += [f"{resource}: {offer.text}" for resource, offer in self.gpus.items()]
        words += [] if self.gpus else ["no GPU"]
        return ", ".join([*words, *(f"node={key}:{value}" for key, value in self.labels.items())])

    @property
    def document(self) -> dict[str, JSON]:
        """The same by key."""
        gpus = [{"resource": resource, **asdict(offer)} for resource, offer in self.gpus.items()]
        return {**asdict(self), "gpus": gpus}


def described(kubectl: Kubectl, options: Options) -> Description:
    """The cluster, what this user may do there, the GPUs of its nodes, and whether one could take
    a pod with these options.

    Raises:
        NotAvailable: the cluster does not answer.
    """
    server = clean(str(kubectl.get("/version").get("gitVersion")), 60)
    client = kubectl.version()
    where = f"context {kubectl.context}, namespace {kubectl.namespace}"
    lines = [f"cluster     Kubernetes {server}, {where}", f"kubectl     {client}"]
    given = rights.allowed(kubectl, (*rights.NEEDED, *rights.USEFUL))
    for right, has in given.items():
        if not has:
            word = "needed" if right in rights.NEEDED else "some reasons are missing"
            lines.append(f"rights      you may not {right} ({word})")
    if all(given.values()):
        lines.append(f"rights      all {len(given)} that gpuwatch uses")
    found, nodes, why = list[Mapping[str, JSON]](), None, None
    try:
        found = kubectl.items("/api/v1/nodes")
        nodes = of_nodes(found, _pods(kubectl, "/api/v1/pods"))
    except NotAvailable as error:
        why = error.message
    lines += [node.line for node in nodes or ()]
    if why is not None:
        lines.append(f"nodes       unknown: {why}")
    if options.image is not None:
        lines.append(f"image       {options.image}, not checked: known when the pod starts")
    document = {
        "version": server,
        "client": client,
        "context": kubectl.context,
        "namespace": kubectl.namespace,
        "rights": [
            {"right": str(right), "given": has, "needed": right in rights.NEEDED}
            for right, has in given.items()
        ],
        "nodes": None if nodes is None else [node.document for node in nodes],
        "nodes_unavailable": why,
    }
    images = () if options.image is None else (options.image,)
    return Description(tuple(lines), document, images, tuple(too_small(found, options)))


def too_small(nodes: Sequence[Mapping[str, JSON]], options: Options) -> list[Problem]:
    """That none of the nodes could take a pod with these options, if it were empty; nothing where
    what they tell does not decide that."""
    lacks = [_lacks(node, options) for node in nodes]
    if not lacks or None in lacks:
        return []
    told = [f"{_name(node)} has {lack}" for node, lack in zip(nodes, lacks, strict=True)]
    more = f", and {len(told) - _MOST_TOLD} others" if len(told) > _MOST_TOLD else ""
    text = f"no node takes it: {', '.join(told[:_MOST_TOLD])}{more}"
    return [Problem("kubernetes-nodes", text, "ask for what a node has, unless nodes are added")]


def _lacks(node: Mapping[str, JSON], options: Options) -> str | None:
    """What a node lacks for these options: ``no amd.com/gpu``, ``2 cpu, not 64``."""
    labels = mapping(mapping(node.get("metadata")).get("labels"))
    for label, value in options.nodes.items():
        if labels.get(label) != value:
            return f"no label {label}:{value}"
    offered = mapping(mapping(node.get("status")).get("allocatable"))
    asked = [] if options.gpu is None else [(options.gpu[0], str(options.gpu[1]))]
    for resource, amount in (*asked, ("cpu", options.cpu), ("memory", options.memory)):
        has = offered.get(resource, "0")
        there, least = _amount(has), _amount(amount)
        if there is not None and least is not None and there < least:
            return f"{clean(has, 40)} {resource}, not {amount}" if there else f"no {resource}"
    return None


def _amount(value: JSON) -> float | None:
    """A quantity such as ``500m``, ``24Gi``; ``None``: it is none, or of another form."""
    match = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    return float(match[1]) * _UNITS[match[2]] if match and match[2] in _UNITS else None


def _pods(kubectl: Kubectl, path: str) -> list[Mapping[str, JSON]] | None:
    """The pods there; ``None``: this user may not see them."""
    try:
        return kubectl.items(path)
    except NotAvailable:
        return None


def of_nodes(
    nodes: Sequence[Mapping[str, JSON]], pods: Sequence[Mapping[str, JSON]] | None
) -> list[Node]:
    """What is told of each node; ``pods``: all of the cluster, ``None``: this user may not see
    them."""
    return [_node(node, pods) for node in nodes]


def _name(node: Mapping[str, JSON]) -> str:
    return clean(str(mapping(node.get("metadata")).get("name")), 80)


def _node(node: Mapping[str, JSON], pods: Sequence[Mapping[str, JSON]] | None) -> Node:
    name = str(mapping(node.get("metadata")).get("name"))
    offered = mapping(mapping(node.get("status")).get("allocatable"))
    labels = mapping(mapping(node.get("metadata")).get("labels"))
    gpus: dict[str, Offer] = {}
    for resource, value in offered.items():
        if _is_gpu(resource):
            total = _count(value)
            free = None if pods is None else total - _used(pods, name, resource)
            gpus[clean(resource, 250)] = Offer(
                total, free, sharing.shared(resource, labels), sharing.is_part(resource, labels)
            )
    return Node(
        name=clean(name, 80),
        ready=condition(mapping(node.get("status")), "Ready").get("status") == "True",
        takes_pods=mapping(node.get("spec")).get("unschedulable") is not True,
        gpus=gpus,
        labels={key: clean(labels[key], 100) for key in _LABELS if key in labels},
    )


def sharing_by_node(
    kubectl: Kubectl, resource: str, selected: Mapping[str, str]
) -> dict[str, list[str]]:
    """How pods share a GPU of this resource, as :func:`sharing.shared` says it, each with the names
    of the nodes that bear the labels ``selected``; without those that do not tell."""
    selector = quote(",".join(f"{label}={value}" for label, value in selected.items()))
    try:
        found = kubectl.items(f"/api/v1/nodes?limit={_MOST_NODES}&labelSelector={selector}")
    except NotAvailable:
        return {}
    by_text: dict[str, list[str]] = {}
    for node in found:
        told = mapping(node.get("metadata"))
        text = sharing.shared(resource, mapping(told.get("labels")))
        if text is not None:
            by_text.setdefault(text, []).append(clean(str(told.get("name")), 253))
    return by_text


def why_not(kubectl: Kubectl, name: str, gpu: tuple[str, int] | None) -> str:
    """Why the node of this name takes no pod now that asks for so many of a resource, as far as
    this user may look."""
    try:
        found = kubectl.items(f"/api/v1/nodes?fieldSelector={quote(f'metadata.name={name}')}")
    except NotAvailable:
        return _NO_ROOM
    if not found:
        return "is gone"
    pods = _pods(kubectl, f"/api/v1/pods?fieldSelector={quote(f'spec.nodeName={name}')}")
    return in_the_way(of_nodes(found, pods)[0], gpu)


def in_the_way(node: Node, gpu: tuple[str, int] | None) -> str:
    """Why a node takes no pod that asks for so many of a resource."""
    if not node.ready:
        return "is not ready"
    if not node.takes_pods:
        return "takes no pods"
    offer = None if gpu is None else node.gpus.get(gpu[0])
    if gpu is None or offer is None or offer.free is None or offer.free >= gpu[1]:
        return _NO_ROOM
    return "has no free GPU" if offer.free <= 0 else f"has {offer.free} free GPU, not {gpu[1]}"


def _is_gpu(resource: str) -> bool:
    """Whether it is a GPU, or a part of one: ``nvidia.com/gpu``, ``nvidia.com/mig-1g.5gb``."""
    return resource.endswith(("/gpu", "/gpu.shared")) or "/mig-" in resource


def _used(pods: Sequence[Mapping[str, JSON]], node: str, resource: str) -> int:
    """How many of a resource the pods of a node hold."""
    used = 0
    for pod in pods:
        spec = mapping(pod.get("spec"))
        if spec.get("nodeName") != node or mapping(pod.get("status")).get("phase") in _OVER:
            continue
        # Those before the others run one by one, and hold what the largest asks for; but sidecars
        # stay, and run beside the others.
        before, beside = list[int](), list[int]()
        for kind in ("initContainers", "containers"):
            for each in map(mapping, sequence(spec.get(kind))):
                asked = mapping(mapping(each.get("resources")).get("requests")).get(resource)
                alone = kind == "initContainers" and each.get("restartPolicy") != "Always"
                (before if alone else beside).append(_count(asked))
        used += max(sum(beside), *before, 0)
    return used


def _count(value: JSON) -> int:
    return int(value) if isinstance(value, str) and value.isdecimal() else 0
