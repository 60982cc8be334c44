"""Session names for shell completion; must be quick, because every Tab asks for them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuwatch.cli.selection.session_lookup import known_sessions
from gpuwatch.core import paths
from gpuwatch.core.text import clean
from gpuwatch.session.study.label import Label
from gpuwatch.session.study.labels import LABELS, read

_LARGEST_CACHE = 8 << 20
"""Size in bytes above which the cache is too slow to read; then no ids are offered."""


def session_names() -> list[str]:
    """Names, tags, ``last``, study folders, and the ids of finished sessions that were listed
    before."""
    return [name for name in dict.fromkeys(_names()) if name]


def _names() -> Iterator[str]:
    sessions = known_sessions()
    labels: dict[Path, Mapping[str, Label]] = {}
    for path in reversed(sessions):
        if path.parent not in labels and os.path.lexists(path.parent / LABELS):
            labels[path.parent] = read(path.parent)
    known = [label for of_folder in labels.values() for label in of_folder.values()]
    yield from (label.name for label in known)
    yield from (f"tag:{tag}" for label in known for tag in label.tags)
    if sessions:
        yield "last"
    yield from (_printable(path.parent.name) for path in reversed(sessions))
    listed = _listed()
    yield from (_printable(listed.get(str(path), "")) for path in reversed(sessions))


def _printable(name: str) -> str:
    """``name`` if it fits on a line unchanged, else ``""``: a cleaned name matches no session."""
    return name if clean(name) == name else ""


def _listed() -> Mapping[str, str]:
    """The ids of the cached session list, by path: see
    :mod:`gpuwatch.cli.selection.session_index`."""
    try:
        file = paths.cache_home() / "sessions.json"
        content = file.read_bytes() if file.stat().st_size <= _LARGEST_CACHE else b"{}"
        known = json.loads(content)["files"].items()
        return {path: value["id"] for path, (_, value) in known if "id" in value}
    except (OSError, ValueError, TypeError, LookupError):
        return {}
