"""Reads ``--on KIND[=TARGET][,KEY[=VALUE]...]``."""

from __future__ import annotations

import re

from gpuwatch.core.errors import UsageError
from gpuwatch.core.key_values import parse as key_values
from gpuwatch.places.base import PlaceSpec

_FORM = "write --on KIND[=TARGET][,KEY[=VALUE]...], such as --on ssh=gpu1"
_KIND = re.compile(r"[a-z][a-z0-9_-]*")


def parse(text: str) -> PlaceSpec:
    """The place that ``text`` names; which keys it knows is checked by the place itself.

    Raises:
        UsageError: it is malformed.
    """
    head, *options = key_values(text)
    if not _KIND.fullmatch(head.key) or head.value == "":
        raise UsageError(f"--on {text} names no place" if text else "--on names no place", _FORM)
    found: dict[str, str] = {}
    for option in options:
        if not option.key or option.key in found:
            what = f"{option.key} is given twice" if option.key else "a key is missing"
            raise UsageError(f"{what} in --on {text}", _FORM)
        found[option.key] = option.value or ""
    return PlaceSpec(head.key, head.value, found)
