"""What environments are called: kind and image, and the options in which they differ."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from gpuwatch.core.models import Environment

_FEWEST_PARTS, _MOST_PARTS = 2, 8
"""Of a path, from its end."""


def labels(environments: Sequence[Environment]) -> list[str]:
    """What tells each of ``environments``, whose own labels are not looked at, from the others.

    ``docker=IMAGE``, an image that is a path by its last part. Those that this does not tell apart
    also have what they differ in: ``docker=IMAGE,shm=1g``, ``bare,python=.../bin/python``, of a
    path as many parts as are needed. Two labels are the same only where the environments are.
    """
    short = [_label(each, (), 1) for each in environments]
    return [
        _told(each, [other for other, name in zip(environments, short, strict=True) if name == own])
        for each, own in zip(environments, short, strict=True)
    ]


def _told(environment: Environment, alike: Sequence[Environment]) -> str:
    """What tells it from those of the same kind and image name."""
    differing = [name for name, of in _FACTS.items() if len({of(each, 0) for each in alike}) > 1]
    kinds = len({tuple(of(each, 0) for of in _FACTS.values()) for each in alike})
    for parts in (*range(_FEWEST_PARTS, _MOST_PARTS + 1), 0):
        if len({_label(each, differing, parts) for each in alike}) == kinds:
            return _label(environment, differing, parts)
    raise AssertionError("whole values differ where the environments do")


def _label(environment: Environment, differing: Sequence[str], parts: int) -> str:
    image = _image(environment, parts if "image" in differing else 1)
    told = [
        f",{name}={value}"
        for name in differing
        if name != "image" and (value := _FACTS[name](environment, parts))
    ]
    return "".join([environment.kind, f"={image}" if image else "", *told])


def _image(environment: Environment, parts: int) -> str:
    """An image's name, or so many parts of its path."""
    image = environment.image or ""
    is_path = image.startswith(("/", ".", "~"))
    if parts == 1 and is_path:
        return os.path.basename(os.path.normpath(image))
    return _end(image, parts) if is_path else image


def _mounts(environment: Environment, parts: int) -> str:
    """``.../my/data:/data:rw``, several with ``+`` between them."""
    told = []
    for each in environment.mounts:
        target = "" if each.target == each.source else f":{each.target}"
        told.append(_end(each.source, parts) + target + ":rw" * each.writable)
    return "+".join(told)


def _end(path: str, parts: int) -> str:
    """The last ``parts`` of a path; 0: all."""
    last = path.split("/")[-parts:]
    return path if not parts or len(last) >= path.count("/") else "/".join(["...", *last])


def _size(count: int | None) -> str:
    """As ``--env`` takes it: ``512m``, ``8g``."""
    if count is None:
        return ""
    power = max(power for power in range(5) if count % (1 << 10 * power) == 0)
    return f"{count >> 10 * power}{' kmgt'[power].strip()}"


_FACTS: dict[str, Callable[[Environment, int], str]] = {
    "image": _image,
    "python": lambda environment, parts: _end(environment.python or "", parts),
    "mount": _mounts,
    "shm": lambda environment, _: _size(environment.shm_bytes),
    "memory": lambda environment, _: _size(environment.memory_bytes),
    "network": lambda environment, _: environment.network or "",
}
"""By option: its value in few words, paths by so many parts (0: all); empty where it is not set."""
