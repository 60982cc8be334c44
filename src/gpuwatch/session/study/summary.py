"""What the summary in a study's folder says, for lists and for screens that follow the study.

The file may be anybody's: its size is limited, and values of a wrong type are left out. Only the
parts that are asked for are parsed: what stands around them, all figures of all runs, is large.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number
from gpuwatch.core.paths import read_regular
from gpuwatch.core.text import clean
from gpuwatch.session.study.study_folder import SUMMARY_JSON

KINDS = ("same", "slower", "faster", "small", "can't tell", "invalid", "described")
"""A verdict in one word."""
LARGEST = 32 << 20
"""Bytes of the file."""
MOST_CONTRASTS, MOST_SAYINGS = 32, 12
_LONGEST_NAME, _LONGEST_SAYING = 200, 400
_MOST_PAIRS = 1e6


@dataclass(frozen=True)
class Contrast:
    """What a study says of one environment against its baseline."""

    case: str
    baseline: str
    other: str
    kind: str
    """One of :data:`KINDS`."""
    estimate: float | None
    """Relative change: 0.031 is +3.1 %."""
    low: float | None
    high: float | None
    pairs: int
    """Blocks (unpaired: runs of a side) that it rests on."""


@dataclass(frozen=True)
class SummarySentence:
    """A sentence of the summary."""

    kind: str
    """The verdict's kind, ``sweeps`` or ``noise``."""
    text: str


def contrasts(folder: Path) -> tuple[Contrast, ...]:
    """Every contrast that has a verdict; empty without a summary that can be read."""
    content = _content(folder / SUMMARY_JSON)
    return tuple(_contrasts(_part(content, "questions")))[:MOST_CONTRASTS]


def sayings(folder: Path) -> tuple[SummarySentence, ...]:
    """The sentences of verdicts, then of sweeps and of the noise; empty without a summary that can
    be read."""
    content = _content(folder / SUMMARY_JSON)
    said = (
        SummarySentence(clean(kind, 20), clean(text, _LONGEST_SAYING))
        for kind, text in _said(content)
        if isinstance(text, str) and text
    )
    return tuple(each for each, _ in zip(said, range(MOST_SAYINGS), strict=False))


def _content(path: Path) -> bytes:
    """What is in the file; nothing of one that is too large, or no regular file."""
    try:
        content = read_regular(path, LARGEST)
    except OSError:
        return b""
    return content if len(content) <= LARGEST else b""


def _part(content: bytes, key: str) -> JSON:
    """A value of the document, found by how ``report.session.json.dumps`` begins each: on a
    line of its own, two blanks in. No string of JSON holds a line's end."""
    begin = f'\n  "{key}": '.encode()
    at = content.find(begin)
    if at < 0:
        return None
    at += len(begin)
    ends = [end for mark in (b'\n  "', b"\n}") if (end := content.find(mark, at)) >= 0]
    try:
        return json.loads(content[at : min(ends, default=at)].rstrip().removesuffix(b","))
    except (ValueError, RecursionError):
        return None


def _contrasts(questions: JSON) -> Iterator[Contrast]:
    for question in _dicts(questions):
        cells = question.get("cells")
        cells = cells if isinstance(cells, list) else []
        labels = [_name(mapping(cell).get("label")) for cell in cells]
        for contrast in _dicts(question.get("contrasts")):
            verdict = mapping(contrast.get("verdict"))
            change = mapping(verdict.get("change"))
            kind = verdict.get("kind")
            baseline, other = (_at(labels, contrast.get(side)) for side in ("baseline", "other"))
            if kind not in KINDS or baseline is None or other is None:
                continue
            yield Contrast(
                case=_name(question.get("label")) or "",
                baseline=baseline,
                other=other,
                kind=kind,
                estimate=number(verdict.get("estimate")),
                low=number(change.get("low")),
                high=number(change.get("high")),
                pairs=int(min(_MOST_PAIRS, max(0.0, number(verdict.get("pairs")) or 0.0))),
            )


def _said(content: bytes) -> Iterator[tuple[JSON, JSON]]:
    for question in _dicts(_part(content, "questions")):
        for contrast in _dicts(question.get("contrasts")):
            yield mapping(contrast.get("verdict")).get("kind"), contrast.get("sentence")
    for kind in ("sweeps", "noise"):
        for each in _dicts(_part(content, kind)):
            yield kind, each.get("sentence")


def _dicts(value: JSON) -> list[dict[str, JSON]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _name(value: JSON) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) else None


def _at(labels: list[str | None], place: JSON) -> str | None:
    whole = isinstance(place, int) and not isinstance(place, bool)
    return labels[place] if whole and 0 <= place < len(labels) else None
