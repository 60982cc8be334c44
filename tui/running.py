"""The comparison of a study that goes on, from its summary, which is written after each run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.models import JSON, mapping, number
from gpuwatch.session.study import SUMMARY_JSON
from gpuwatch.tui.snapshot import SoFar

KINDS = ("same", "slower", "faster", "small", "can't tell", "invalid", "described")
"""A verdict in one word."""
_LARGEST = 32 << 20
_QUESTIONS = '\n  "questions": '
"""Where the verdicts begin: what stands around them, all figures of all runs, is not parsed."""
_MOST = 32
_MOST_NAME = 200


def so_far(folder: Path) -> tuple[SoFar, ...]:
    """Every contrast of ``summary.json`` in ``folder``; empty where there is none to be read.

    The file may be anybody's: at most 32 MiB are read, values of a wrong type are left out.
    """
    path = folder / SUMMARY_JSON
    try:
        if not path.is_file():  # a pipe of that name would be waited for
            return ()
        with path.open("rb") as file:
            raw = file.read(_LARGEST + 1)
        text = raw.decode() if len(raw) <= _LARGEST else ""
        at = text.find(_QUESTIONS)
        found = json.JSONDecoder().raw_decode(text, at + len(_QUESTIONS))[0] if at >= 0 else None
        return tuple(_contrasts(found))[:_MOST]
    except (OSError, ValueError, RecursionError):
        return ()


def _contrasts(questions: JSON) -> Iterator[SoFar]:
    for question in map(mapping, _list(questions)):
        cells = [_name(mapping(cell).get("label")) for cell in _list(question.get("cells"))]
        for contrast in map(mapping, _list(question.get("contrasts"))):
            verdict = mapping(contrast.get("verdict"))
            change = mapping(verdict.get("change"))
            kind = verdict.get("kind")
            baseline, other = (_at(cells, contrast.get(side)) for side in ("baseline", "other"))
            if kind not in KINDS or baseline is None or other is None:
                continue
            yield SoFar(
                case=_name(question.get("label")) or "",
                baseline=baseline,
                other=other,
                kind=kind,
                estimate=number(verdict.get("estimate")),
                low=number(change.get("low")),
                high=number(change.get("high")),
                pairs=int(min(1e6, max(0.0, number(verdict.get("pairs")) or 0.0))),
            )


def _list(value: JSON) -> list[JSON]:
    return value if isinstance(value, list) else []


def _name(value: JSON) -> str | None:
    return value[:_MOST_NAME] if isinstance(value, str) else None


def _at(cells: list[str | None], place: JSON) -> str | None:
    whole = isinstance(place, int) and not isinstance(place, bool)
    return cells[place] if whole and 0 <= place < len(cells) else None
