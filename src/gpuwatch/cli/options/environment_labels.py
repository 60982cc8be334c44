"""Labels of environments: kind, image, and the options in which they differ."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from gpuwatch.core.models import Environment

_FEWEST_PARTS, _MOST_PARTS = 2, 8
"""Limits on the path components shown, counted from the end."""


def labels(environments: Sequence[Environment]) -> list[str]:
    """A short label for each environment, distinct unless two environments are equal.

    ``docker=IMAGE``; an image path is shortened to its last component. Where that is ambiguous,
    the differing options follow: ``docker=IMAGE,shm=1g``, ``bare,python=.../bin/python``, with as
    many path components as needed. The ``label`` fields of ``environments`` are ignored.
    """
    short = [_label(environment, (), 1) for environment in environments]
    return [
        _distinct(
            environment,
            [other for other, name in zip(environments, short, strict=True) if name == own_name],
        )
        for environment, own_name in zip(environments, short, strict=True)
    ]


def _distinct(environment: Environment, alike: Sequence[Environment]) -> str:
    """The label that sets it apart from those of the same kind and image name."""
    differing = [
        name for name, fact in _FACTS.items() if len({fact(other, 0) for other in alike}) > 1
    ]
    kinds = len({tuple(fact(other, 0) for fact in _FACTS.values()) for other in alike})
    for parts in (*range(_FEWEST_PARTS, _MOST_PARTS + 1), 0):
        if len({_label(other, differing, parts) for other in alike}) == kinds:
            return _label(environment, differing, parts)
    raise AssertionError("full values differ where the environments do")


def _label(environment: Environment, differing: Sequence[str], parts: int) -> str:
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
    is_path = image.startswith(("/", ".", "~"))
    if parts == 1 and is_path:
        return os.path.basename(os.path.normpath(image))
    return _end(image, parts) if is_path else image


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


def _size(count: int | None) -> str:
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
    "shm": lambda environment, _: _size(environment.shm_bytes),
    "memory": lambda environment, _: _size(environment.memory_bytes),
    "network": lambda environment, _: environment.network or "",
}
"""Option name -> short value, given the number of path components (0: all); empty if not set."""
