"""What a relay tells, as one JSON object a line. Whoever parses it trusts nothing of it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple
from typing import TypeAlias

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, Problem
from gpuwatch.session.mirror.tables import Batch, Key, Row, has_blobs
from gpuwatch.session.study.attempts import ATTEMPT

LONGEST_LINE = 16 << 20
"""Bytes of the longest line."""
GREETING = "gpuwatch-relay"
"""The first word of a relay's first line; the second is a marker that its caller chose."""
MOST_ATTEMPTS = 1_000
_MOST_PROBLEMS = 10_000
_LONGEST_TEXT = 4_096


class BadFrame(Exception):
    """A line that no relay writes."""


@dataclass(frozen=True)
class Beat:
    """A sign of life."""

    n: int
    """The number of the frame, from 1."""


@dataclass(frozen=True)
class StudyFrame:
    """What is known of the study besides its sessions."""

    n: int
    held: bool
    """Whether its recorder lives."""
    problems: Mapping[int, tuple[Problem, ...]]
    """Why runs were not started, by their index in the plan."""
    attempts: tuple[str, ...]
    """The attempts that were started."""


@dataclass(frozen=True)
class BatchFrame:
    """What changed in one session."""

    n: int
    batch: Batch


@dataclass(frozen=True)
class EndFrame:
    """Everything was sent, and nobody records any more."""

    n: int
    digests: Mapping[str, str]
    """The digest of each session, by file."""


Frame: TypeAlias = Beat | StudyFrame | BatchFrame | EndFrame


def encode(frame: Frame) -> bytes:
    """``frame`` as a line."""
    return _encode({"n": frame.n, **_document(frame)}).encode() + b"\n"


def _document(frame: Frame) -> dict[str, JSON]:
    if isinstance(frame, Beat):
        return {"beat": True}
    if isinstance(frame, StudyFrame):
        problems = [
            [index, [list(map(_cut, astuple(problem))) for problem in found]]
            for index, found in frame.problems.items()
        ]
        return {"held": frame.held, "problems": problems, "attempts": frame.attempts}
    if isinstance(frame, EndFrame):
        return {"end": frame.digests}
    return vars(frame.batch)


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_LONGEST_TEXT]


_encode = json.JSONEncoder(
    separators=(",", ":"), default=lambda blob: {"b": base64.b64encode(blob).decode()}
).encode


def parse(line: bytes) -> Frame:
    """The frame in a line.

    Raises:
        BadFrame: no relay writes it.
    """
    if len(line) > LONGEST_LINE or not line.endswith(b"\n"):
        raise BadFrame("a line that is too long, or cut off")
    try:
        document = _decode(line.decode("ascii"))
        return _parsers[frozenset(document) - {"n"}](_number(document["n"]), document)
    except BadFrame:
        raise
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise BadFrame(f"a line that is not a frame ({type(error).__name__})") from error


def _object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise BadFrame("a key that occurs twice")
    return found


def _constant(name: str) -> float:
    if name == "NaN":
        raise BadFrame("NaN instead of a number")
    return float(name)


_decode: Callable[[str], dict[str, JSON]] = json.JSONDecoder(
    object_pairs_hook=_object, parse_constant=_constant
).decode


def _beat(n: int, document: dict[str, JSON]) -> Beat:
    if document["beat"] is not True:
        raise BadFrame("an invalid sign of life")
    return Beat(n)


def _study(n: int, document: dict[str, JSON]) -> StudyFrame:
    held, attempts = document["held"], _list(document["attempts"], MOST_ATTEMPTS)
    if not isinstance(held, bool):
        raise BadFrame("whether a recorder lives, that is neither true nor false")
    if not all(ATTEMPT.fullmatch(attempt) for attempt in attempts):
        raise BadFrame("an attempt with an invalid name")
    problems = {
        _number(index): tuple(_problem(*values) for values in _list(found, _MOST_PROBLEMS))
        for index, found in _list(document["problems"], _MOST_PROBLEMS)
    }
    return StudyFrame(n, held, problems, tuple(attempts))


def _problem(code: JSON, text: JSON, hint: JSON) -> Problem:
    return Problem(_text(code), _text(text), None if hint is None else _text(hint))


def _end(n: int, document: dict[str, JSON]) -> EndFrame:
    digests = document["end"]
    return EndFrame(n, {file: _text(digest) for file, digest in digests.items()})


def _batch(n: int, document: dict[str, JSON]) -> BatchFrame:
    new = document["new"]
    if not isinstance(new, bool):
        raise BadFrame("a session that is neither new nor known")
    batch = Batch(
        file=_text(document["file"]),
        session=_text(document["session"]),
        new=new,
        channels=_rows("channel", document["channels"]),
        removed=[(_number(first), _number(last)) for first, last in _list(document["removed"])],
        rows=_tables(document["rows"]),
        put=_tables(document["put"]),
        gone=_tables(document["gone"]),
    )
    return BatchFrame(n, batch)


_parsers: Mapping[frozenset[str], Callable[[int, dict[str, JSON]], Frame]] = {
    frozenset({"beat"}): _beat,
    frozenset({"held", "problems", "attempts"}): _study,
    frozenset({"end"}): _end,
    frozenset({"file", "session", "new", "channels", "removed", "rows", "put", "gone"}): _batch,
}


def _tables(value: JSON) -> dict[str, list[Row] | list[Key]]:
    return {table: _rows(table, rows) for table, rows in value.items()}


def _rows(table: str, value: JSON) -> list[Row]:
    rows = _list(value)
    if not all(isinstance(row, list) for row in rows):
        raise BadFrame("a row that is not a list")
    if has_blobs(table):
        return [tuple(map(_cell, row)) for row in rows]
    return [tuple(row) for row in rows]


def _cell(value: JSON) -> JSON:
    if isinstance(value, dict):
        (encoded,) = value.values()
        if "b" not in value:
            raise BadFrame("a value of an unknown kind")
        return base64.b64decode(encoded, validate=True)
    return value


def _list(value: JSON, most: int = LONGEST_LINE) -> Sequence[JSON]:
    if not isinstance(value, list) or len(value) > most:
        raise BadFrame("not a list, or too long")
    return value


def _number(value: JSON) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise BadFrame("not an integer of 64 bits")
    return value


def _text(value: JSON) -> str:
    if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
        raise BadFrame("not text, or too long")
    return value
