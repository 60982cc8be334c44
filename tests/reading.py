"""What the sessions hold that a test recorded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpuwatch.session.reading.reader import SessionReader
from tests.session.samples import step_numbers as numbers_of

if TYPE_CHECKING:
    from gpuwatch.session.rows import EventRow, StepRow
    from tests.conftest import Cli

ALL = 10**6


def sessions(out: Path) -> list[Path]:
    """The sessions of all studies in a folder."""
    return sorted(out.glob("*/*.gpuwatch"))


def show(cli: Cli, path: Path) -> dict[str, Any]:
    """What ``gpuwatch show`` says of a session."""
    found: dict[str, Any] = json.loads(cli.read("show", path, "--format", "json").stdout)
    return found


def meta(path: Path) -> dict[str, Any]:
    with SessionReader(path) as reader:
        return reader.meta()


def log(path: Path) -> list[str]:
    """The lines of both streams, in order."""
    with SessionReader(path) as reader:
        return [row.text for row in reader.log(limit=ALL)]


def steps(path: Path) -> list[StepRow]:
    with SessionReader(path) as reader:
        return list(reader.steps(limit=ALL))


def step_numbers(path: Path) -> list[int]:
    """The number of each step, in the order in which they were reported."""
    with SessionReader(path) as reader:
        return numbers_of(reader)


def events(path: Path, kind: str | None = None) -> list[EventRow]:
    with SessionReader(path) as reader:
        rows = reader.events(limit=ALL)
    return [row for row in rows if kind in (None, row.kind)]


def facts(path: Path, scope: str = "process") -> dict[str, Any]:
    with SessionReader(path) as reader:
        return dict(reader.facts().get(scope, {}))
