"""Reads a study's summary, for lists and for screens that follow the study.

The file may come from anybody: its size is limited, and values of a wrong type are left out.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping, number, sequence
from gpuwatch.core.paths import read_regular
from gpuwatch.core.text import clean
from gpuwatch.session.study.study_folder import SUMMARY_JSON

KINDS = ("same", "slower", "faster", "small", "can't tell", "invalid", "described")
"""One word for each verdict."""
NO_LOSS = "the loss is no finite number"
"""Stands in the sentence on a verdict, and in a list, where it is so."""
LARGEST = 32 << 20
"""Most bytes of the file."""
MOST_CONTRASTS, MOST_SAYINGS = 32, 12
_LONGEST_NAME, _LONGEST_SAYING = 200, 400
_MOST_PAIRS = 1e6
_FULL, _TEN = 99.95, 9.95
"""Per cent from which on a change, and the ends of an interval, have no decimals."""


@dataclass(frozen=True)
class Contrast:
    """The verdict of a study on one environment against its baseline."""

    case: str
    baseline: str
    other: str
    kind: str
    """One of :data:`KINDS`."""
    estimate: float | None
    """Relative change of the value that decides: 0.031 is +3.1 %."""
    low: float | None
    high: float | None
    pairs: int
    """Blocks behind it (unpaired: runs per side)."""
    by_total: bool = False
    """Whether the time of all steps decides, and not the typical step."""


@dataclass(frozen=True)
class SummarySentence:
    """A sentence of the summary."""

    kind: str
    """The verdict's kind, ``sweeps`` or ``noise``."""
    text: str
    short: str
    """Of a verdict in a few words, ``SLOWER +3.1 % docker``; else the text."""


def contrasts(folder: Path) -> tuple[Contrast, ...]:
    """Every contrast with a verdict; empty without a readable summary."""
    return tuple(
        known for _, known in _verdicts(_content(folder).get("questions")) if known is not None
    )[:MOST_CONTRASTS]


def sayings(folder: Path) -> tuple[SummarySentence, ...]:
    """The sentences on verdicts, then on sweeps and noise; empty without a readable summary."""
    sentences = (
        SummarySentence(clean(kind, 20), clean(text, _LONGEST_SAYING), short or clean(text, 80))
        for kind, text, short in _sentences(_content(folder))
        if isinstance(text, str) and text
    )
    return tuple(sentence for sentence, _ in zip(sentences, range(MOST_SAYINGS), strict=False))


def _content(folder: Path) -> Mapping[str, JSON]:
    """The summary; empty if it is too large, no summary, or not a regular file."""
    try:
        content = read_regular(folder / SUMMARY_JSON, LARGEST)
        return mapping(json.loads(content)) if len(content) <= LARGEST else {}
    except (OSError, ValueError, RecursionError):
        return {}


def _verdicts(questions: JSON) -> Iterator[tuple[dict[str, JSON], Contrast | None]]:
    """Each contrast as it is written, and what it says; ``None``: it has no verdict."""
    for question in _dicts(questions):
        cells = sequence(question.get("cells"))
        labels = [_name(mapping(cell).get("label")) for cell in cells]
        for contrast in _dicts(question.get("contrasts")):
            verdict = mapping(contrast.get("verdict"))
            kind = verdict.get("kind")
            # Where it cannot be told, the value that is open decides.
            open_alone = kind == "can't tell" and verdict.get("typical") not in (None, kind)
            by_total = verdict.get("by_total") is True or open_alone
            decisive = mapping(verdict.get("total")) if by_total else verdict
            change = mapping(decisive.get("change"))
            baseline, other = (_at(labels, contrast.get(side)) for side in ("baseline", "other"))
            if kind not in KINDS or baseline is None or other is None:
                yield contrast, None
                continue
            yield (
                contrast,
                Contrast(
                    case=_name(question.get("label")) or "",
                    baseline=baseline,
                    other=other,
                    kind=kind,
                    estimate=number(decisive.get("estimate")),
                    low=number(change.get("low")),
                    high=number(change.get("high")),
                    pairs=int(min(_MOST_PAIRS, max(0.0, number(verdict.get("pairs")) or 0.0))),
                    by_total=by_total,
                ),
            )


def _sentences(content: Mapping[str, JSON]) -> Iterator[tuple[JSON, JSON, str]]:
    several = len(_dicts(content.get("questions"))) > 1
    for contrast, known in _verdicts(content.get("questions")):
        kind = mapping(contrast.get("verdict")).get("kind")
        text = contrast.get("sentence")
        lost = NO_LOSS in str(text)
        yield kind, text, "" if known is None else _short(known, case=several, lost=lost)
    for kind in ("sweeps", "noise"):
        for entry in _dicts(content.get(kind)):
            yield kind, entry.get("sentence"), ""


def _short(contrast: Contrast, *, case: bool, lost: bool) -> str:
    """``SLOWER +3.1 % docker``, ``CAN'T TELL -3.0 to +8.2 % docker``: the change where it is
    decided, else its interval, of the typical step where no other is named; with the ``case`` where
    there are several; ``lost``: a loss is no number."""
    word = "NO VERDICT" if contrast.kind == "described" else contrast.kind.upper()
    open_ = contrast.kind in ("described", "can't tell")
    told = (contrast.low, contrast.high) if open_ else (contrast.estimate,)
    percents = [math.inf if each is None else 100 * each for each in told]
    places = 0 if max(map(abs, percents)) >= (_TEN if open_ else _FULL) else 1
    rounded = [round(each, places) + 0.0 for each in percents]  # no -0
    change = " to ".join(f"{each:+.{places}f}" for each in rounded)
    known = all(map(math.isfinite, percents)) and contrast.kind != "described"
    what = "(no finite loss) " if lost else ""
    what += (f"{clean(contrast.case)}: " if case else "") + clean(contrast.other)
    what += ", steady mean" if contrast.by_total else ""
    return clean(f"{word} {change} % {what}" if known else f"{word} {what}", 80)


def _dicts(value: JSON) -> list[dict[str, JSON]]:
    return [entry for entry in sequence(value) if isinstance(entry, dict)]


def _name(value: JSON) -> str | None:
    return value[:_LONGEST_NAME] if isinstance(value, str) else None


def _at(labels: list[str | None], place: JSON) -> str | None:
    is_index = isinstance(place, int) and not isinstance(place, bool)
    return labels[place] if is_index and 0 <= place < len(labels) else None
