"""What ``--on kubernetes,KEY=VALUE...`` accepts."""

from __future__ import annotations

import re
from dataclasses import field

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.places.base import PlaceSpec

FORM = (
    "write --on kubernetes,image=IMAGE[,gpu=RESOURCE:N][,node=LABEL:VALUE][,context=][,namespace=]"
    "[,cpu=][,memory=][,queue=][,python=][,pvc=CLAIM][,linger=][,jobs=block|image][,root=writable]"
)
LINGER_SECONDS = 15 * 60
_SHORTEST_LINGER, _LONGEST_LINGER = 30, 24 * 3600
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_CLAIM = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_CONTEXT = re.compile(r"[A-Za-z0-9_][\w.@:/+-]{0,252}", re.ASCII)
_IMAGE = re.compile(r"[A-Za-z0-9][\w./:@-]{0,511}", re.ASCII)
_RESOURCE = re.compile(r"[a-z0-9][a-z0-9./-]{0,250}")
_LABEL = re.compile(r"[A-Za-z0-9][\w./-]{0,316}", re.ASCII)
_LABEL_VALUE = re.compile(r"[A-Za-z0-9]([\w.-]{0,61}[A-Za-z0-9])?", re.ASCII)
_QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|[kKMGT]i?)?")
_PYTHON = re.compile(r"[A-Za-z0-9/_.][\w./+-]{0,255}", re.ASCII)
_TIME = re.compile(r"([0-9]{1,6})(s|m|h)")
_MOST_GPUS = 1024


@dataclass(frozen=True)
class Options:
    """What is asked of a cluster."""

    context: str | None = None
    """Of the user's kubectl; ``None``: the current one."""
    namespace: str | None = None
    """``None``: the context's."""
    image: str | None = None
    gpu: tuple[str, int] | None = None
    """A resource of a node, such as ``nvidia.com/gpu``, and how many of it."""
    nodes: dict[str, str] = field(default_factory=dict)
    """Labels that the node must have."""
    queue: str | None = None
    """A local queue of Kueue."""
    cpu: str | None = None
    memory: str | None = None
    python: str = "python3"
    """The Python of the image that gpuwatch itself runs with."""
    claim: str | None = None
    """A PersistentVolumeClaim of the user's, into which sessions are written."""
    linger: int = LINGER_SECONDS
    """Seconds for which a pod waits to be fetched, after its recorder ended."""
    jobs: str = "study"
    """What is a Job: the ``study``, a ``block``, or the runs of one ``image`` in a block."""
    writable_root: bool = False


def parse(spec: PlaceSpec) -> Options:
    """The options of a place.

    Raises:
        UsageError: one is unknown or misspelt.
    """
    if spec.target is not None:
        raise UsageError(f"--on kubernetes takes options, not the name {spec.target!r}", FORM)
    known = {**_TEXTS, "gpu": None, "node": None, "linger": None, "jobs": None, "root": None}
    for key in spec.options:
        if key not in known:
            raise UsageError(f"unknown option {key!r} in --on kubernetes", FORM)
    found = spec.options
    texts = {key: _text(key, found[key]) for key in _TEXTS if key in found}
    return Options(
        context=texts.get("context"),
        namespace=texts.get("namespace"),
        image=texts.get("image"),
        gpu=_gpu(found["gpu"]) if "gpu" in found else None,
        nodes=_nodes(found["node"]) if "node" in found else {},
        queue=texts.get("queue"),
        cpu=texts.get("cpu"),
        memory=texts.get("memory"),
        python=texts.get("python", "python3"),
        claim=texts.get("pvc"),
        linger=_seconds(found["linger"]) if "linger" in found else LINGER_SECONDS,
        jobs=_one_of("jobs", found.get("jobs", "study"), "study", "block", "image"),
        writable_root=_one_of("root", found.get("root", "read-only"), "read-only", "writable")
        == "writable",
    )


_TEXTS = {
    "context": (_CONTEXT, "a context of kubectl: kubectl config get-contexts"),
    "namespace": (_NAME, "a namespace: kubectl get namespaces"),
    "image": (_IMAGE, "an image: image=pytorch/pytorch:2.6.0-cuda12.4-cudnn9-runtime"),
    "pvc": (_CLAIM, "a PersistentVolumeClaim of the namespace: kubectl get pvc"),
    "queue": (_NAME, "a local queue of Kueue: kubectl get localqueues"),
    "cpu": (_QUANTITY, "a number of cores: cpu=4, cpu=500m"),
    "memory": (_QUANTITY, "an amount: memory=16Gi"),
    "python": (_PYTHON, "a Python of the image: python=/opt/conda/bin/python"),
}
"""Keys whose value is kept as it is: its form, and what to write."""


def check_context(name: str) -> None:
    """
    Raises:
        UsageError: gpuwatch cannot write a context of this name.
    """
    _text("context", name)


def _text(key: str, value: str) -> str:
    pattern, hint = _TEXTS[key]
    if not pattern.fullmatch(value):
        raise UsageError(f"{key}={value!r} in --on kubernetes is not understood", f"write {hint}")
    return value


def _gpu(text: str) -> tuple[str, int]:
    resource, colon, number = text.rpartition(":")
    if not colon or not _RESOURCE.fullmatch(resource) or not number.isdecimal():
        raise UsageError(
            f"gpu={text!r} in --on kubernetes is not understood", "write gpu=nvidia.com/gpu:1"
        )
    if not 0 < int(number) <= _MOST_GPUS:
        raise UsageError(f"gpu={text} asks for {number} GPUs", "write gpu=nvidia.com/gpu:1")
    return resource, int(number)


def _nodes(text: str) -> dict[str, str]:
    label, _, value = text.partition(":")
    if not _LABEL.fullmatch(label) or not _LABEL_VALUE.fullmatch(value):
        raise UsageError(
            f"node={text!r} in --on kubernetes is not understood",
            "write node=LABEL:VALUE, such as node=nvidia.com/gpu.product:NVIDIA-A100-SXM4-40GB; "
            "gpuwatch doctor --on kubernetes lists the labels",
        )
    return {label: value}


def _seconds(text: str) -> int:
    match = _TIME.fullmatch(text)
    seconds = int(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]] if match is not None else 0
    if not _SHORTEST_LINGER <= seconds <= _LONGEST_LINGER:
        raise UsageError(f"linger={text} in --on kubernetes is not understood", "write linger=15m")
    return seconds


def _one_of(key: str, text: str, default: str, *others: str) -> str:
    if text not in (default, *others):
        rest = " or ".join(f"{key}={other}" for other in others)
        raise UsageError(
            f"{key}={text} in --on kubernetes is unknown",
            f"write {key}={default} (the default), {rest}",
        )
    return text
