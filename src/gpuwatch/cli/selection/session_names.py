"""What names a session, for the completions of shells: quick, for it is asked at every Tab."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuwatch.cli.selection.session_lookup import known_sessions
from gpuwatch.core import paths
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean
from gpuwatch.session.study.label import Label
from gpuwatch.session.study.labels import LABELS, read

OPTION = "--complete-sessions"
"""Of ``gpuwatch`` itself, in the scripts alone."""
_LARGEST_CACHE = 8 << 20
"""Bytes: a larger one takes too long; there are no identifiers then."""


def show() -> None:
    """One a line: names, tags, ``last``, names of studies' folders, identifiers of sessions that
    are over and were listed before."""
    sys.stdout.write("".join(f"{name}\n" for name in dict.fromkeys(_names()) if name))


def _names() -> Iterator[str]:
    found = known_sessions()
    labels: dict[Path, Mapping[str, Label]] = {}
    for path in reversed(found):
        if path.parent not in labels and os.path.lexists(path.parent / LABELS):
            labels[path.parent] = read(path.parent)
    known = [each for of_folder in labels.values() for each in of_folder.values()]
    yield from (each.name for each in known)
    yield from (f"tag:{tag}" for each in known for tag in each.tags)
    if found:
        yield "last"
    yield from (_whole(path.parent.name) for path in reversed(found))
    listed = _listed()
    yield from (_whole(_identifier(listed.get(str(path)))) for path in reversed(found))


def _whole(name: str) -> str:
    """``name`` if a line can hold it as it is; else nothing, for a cleaned one names nothing."""
    return name if clean(name) == name else ""


def _listed() -> Mapping[str, JSON]:
    """What the list of sessions keeps, by path: see :mod:`gpuwatch.cli.selection.session_index`."""
    file = paths.cache_home() / "sessions.json"
    try:
        content = paths.read_regular(file, _LARGEST_CACHE)
        if len(content) > _LARGEST_CACHE:
            return {}
        found = json.loads(content)["files"]
    except (OSError, ValueError, RecursionError, TypeError, LookupError):
        return {}
    return found if isinstance(found, dict) else {}


def _identifier(entry: JSON) -> str:
    try:
        found = entry[1]["id"]
    except (TypeError, LookupError):
        return ""
    return found if isinstance(found, str) else ""
