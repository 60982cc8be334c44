"""The environments that ``--env`` names, ``KIND[=IMAGE][,option...]``, and their labels."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from gpuwatch import runners
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.errors import UsageError
from gpuwatch.core.key_values import parse as key_values
from gpuwatch.core.models import LABEL, Environment, Mount

_FORM = (
    "write KIND[=IMAGE][,label=NAME][,set=VAR=VALUE][,python=PATH][,mount=SRC:DST[:rw]]"
    "[,shm=SIZE][,memory=SIZE][,network=host|bridge|none]"
)
_OPTIONS = ("label", "set", "python", "mount", "shm", "memory", "network")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OF_GPUS = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
"""Variables by which gpuwatch gives every environment the same GPUs."""
_NETWORKS = ("host", "bridge", "none")


def environments(
    texts: Sequence[str], python: str | None = None, *, pull: bool = False
) -> tuple[Environment, ...]:
    """The environments in order; one given twice gets ``#1``, ``#2`` after its label.

    Without ``label=`` the label is made from what sets the environment apart.

    ``python`` is the value of ``--python``, for bare ones; ``pull`` allows fetching images.

    Raises:
        UsageError: a text is malformed, names an unknown kind, or has the label of another.
    """
    parsed = [_environment(text, python, pull) for text in texts]
    if python is not None and all(environment.kind != "bare" for environment in parsed):
        raise UsageError(
            "--python sets the interpreter of the bare environment only",
            f"for a container write --env {texts[0]},python=PATH",
        )
    named = [
        replace(environment, label=environment.label or made)
        for environment, made in zip(parsed, labels(parsed), strict=True)
    ]
    of_label = grouped((environment.label, environment) for environment in named)
    for label, (first, *others) in of_label.items():
        if any(other != first for other in others):
            raise UsageError(
                f"two different environments are labelled {label}", "give each its own label="
            )
    seen = Counter[str]()
    for at, environment in enumerate(named):
        label = environment.label
        seen[label] += 1
        if len(of_label[label]) > 1:
            named[at] = replace(environment, label=f"{label}#{seen[label]}")
    return tuple(named)


def _environment(text: str, python: str | None, pull: bool) -> Environment:
    head, *rest = key_values(text)
    kind, image = head.key, head.value
    if not runners.known(kind):
        raise UsageError(
            f"unknown environment {kind!r}", f"choose from: {', '.join(runners.kinds())}"
        )
    if image == "":
        raise UsageError(f"--env {text} names no image", f"write {kind}=IMAGE, or {kind} alone")
    values: dict[str, list[str]] = {name: [] for name in _OPTIONS}
    for option in rest:
        if option.key not in values or not option.value:
            before = next((each.text for each in rest if each.key == "set"), None)
            hint = f'a comma ends {before}: put its value in quotes, set=NAME="VALUE"'
            raise UsageError(
                f"unknown option {option.text!r} in --env {text}", _FORM if before is None else hint
            )
        values[option.key].append(option.value)
    last = {name: given[-1] if given else None for name, given in values.items()}
    if last["label"] is not None and not LABEL.fullmatch(last["label"]):
        raise UsageError(
            f"invalid label={last['label']} in --env",
            "begin with a small letter; then small letters, digits and . _ - may follow",
        )
    if last["network"] not in (None, *_NETWORKS):
        raise UsageError(
            f"unknown network {last['network']!r}", f"choose from: {', '.join(_NETWORKS)}"
        )
    return Environment(
        kind=kind,
        label=last["label"] or "",
        image=image,
        python=last["python"] or (python if kind == "bare" else None),
        mounts=tuple(_mount(mount) for mount in values["mount"]),
        shm_bytes=_size(last["shm"]),
        memory_bytes=_size(last["memory"]),
        network=last["network"],
        pull=pull,
        variables=_variables(values["set"]),
    )


def _variables(texts: Sequence[str]) -> dict[str, str]:
    """The variables of ``set=NAME=VALUE``, by name."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not _VARIABLE.fullmatch(name):
            raise UsageError(f"set={text} in --env sets no variable", "write set=NAME=VALUE")
        if name in _OF_GPUS:
            raise UsageError(
                f"set={name}: gpuwatch sets it, so that all environments get the same GPUs",
                "choose the GPUs of the study with --gpus",
            )
        if name in found:
            raise UsageError(f"--env sets {name} twice", "set it once")
        found[name] = value
    return found


def _mount(text: str) -> Mount:
    """``SRC:DST[:rw|:ro]``, or ``SRC`` for the same path inside."""
    parts = text.split(":")
    mode = parts.pop() if len(parts) > 1 and parts[-1] in ("rw", "ro") else "ro"
    source, target = parts[0], parts[-1]
    if len(parts) > 2 or not source or not target:
        raise UsageError(f"invalid mount={text}", "write mount=SRC:DST or mount=SRC:DST:rw")
    source = os.path.abspath(os.path.expanduser(source))
    target = source if len(parts) == 1 else target
    if not target.startswith("/") or os.path.normpath(target) == "/":
        raise UsageError(
            f"invalid mount={text}: {target} is not an absolute path below /",
            "write mount=SRC:DST, such as mount=./data:/data",
        )
    return Mount(source, os.path.normpath(target), mode == "rw")


def _size(text: str | None) -> int | None:
    if text is None:
        return None
    match = re.fullmatch(r"(\d+)([kmgt]?)(i?b)?", text.lower())
    if not match or not int(match[1]):
        raise UsageError(
            f"invalid size {text!r}", "write a number with an optional unit, such as 512m or 8g"
        )
    return int(match[1]) << (10 * " kmgt".index(match[2] or " "))


_FEWEST_PARTS, _MOST_PARTS = 2, 8
"""Limits on the path components shown, counted from the end."""


def labels(environments: Sequence[Environment]) -> list[str]:
    """A short label for each environment, distinct unless two environments are equal.

    ``docker=IMAGE``; an image path is shortened to its last component. Where that is ambiguous,
    the differing options follow: ``docker=IMAGE,shm=1g``, ``bare,python=.../bin/python``, with as
    many path components as needed. The ``label`` fields of ``environments`` are ignored.
    """
    short = [_made(environment, (), 1) for environment in environments]
    named = list(zip(environments, short, strict=True))
    return [_distinct(each, [other for other, name in named if name == own]) for each, own in named]


def _distinct(environment: Environment, alike: Sequence[Environment]) -> str:
    """The label that sets it apart from those of the same kind and image name."""
    differing = [
        name for name, fact in _FACTS.items() if len({fact(other, 0) for other in alike}) > 1
    ]
    kinds = len({tuple(fact(other, 0) for fact in _FACTS.values()) for other in alike})
    for parts in (*range(_FEWEST_PARTS, _MOST_PARTS + 1), 0):
        if len({_made(other, differing, parts) for other in alike}) == kinds:
            return _made(environment, differing, parts)
    raise AssertionError("full values differ where the environments do")


def _made(environment: Environment, differing: Sequence[str], parts: int) -> str:
    image = _image(environment, parts if "image" in differing else 1)
    options = [
        f",{name}={value}"
        for name in differing
        if name != "image" and (value := _FACTS[name](environment, parts))
    ]
    return "".join([environment.kind, f"={image}" if image else "", *options])


def _image(environment: Environment, parts: int) -> str:
    """An image's name, or the last ``parts`` components of its path."""
    image = environment.image or ""
    if not image.startswith(("/", ".", "~")):
        return image
    return os.path.basename(os.path.normpath(image)) if parts == 1 else _end(image, parts)


def _mounts(environment: Environment, parts: int) -> str:
    """``.../my/data:/data:rw``; several joined with ``+``."""
    mounts = []
    for mount in environment.mounts:
        target = "" if mount.target == mount.source else f":{mount.target}"
        mounts.append(_end(mount.source, parts) + target + ":rw" * mount.writable)
    return "+".join(mounts)


def _end(path: str, parts: int) -> str:
    """The last ``parts`` components of a path; 0: all."""
    last = path.split("/")[-parts:]
    return path if not parts or len(last) >= path.count("/") else "/".join(["...", *last])


def _size_text(count: int | None) -> str:
    """Bytes in the form that ``--env`` accepts: ``512m``, ``8g``."""
    if count is None:
        return ""
    power = max(power for power in range(5) if count % (1 << 10 * power) == 0)
    return f"{count >> 10 * power}{' kmgt'[power].strip()}"


_FACTS: dict[str, Callable[[Environment, int], str]] = {
    "image": _image,
    "set": lambda environment, _: "+".join(
        f"{name}={value}" for name, value in environment.variables.items()
    ),
    "python": lambda environment, parts: _end(environment.python or "", parts),
    "mount": _mounts,
    "shm": lambda environment, _: _size_text(environment.shm_bytes),
    "memory": lambda environment, _: _size_text(environment.memory_bytes),
    "network": lambda environment, _: environment.network or "",
}
"""Option name -> short value, given the number of path components (0: all); empty if not set."""
