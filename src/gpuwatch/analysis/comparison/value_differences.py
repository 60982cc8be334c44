"""Clauses on a value that differs between the sessions of two sides."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.models import JSON
from gpuwatch.core.text import clean

_MOST = 3
_WHOLE, _LONGEST = 40, 100
"""Longest text shown in full, and longest excerpt of a longer one, in characters."""
_BEFORE, _BEHIND = 40, 16
"""Most characters of common text shown before and after a difference."""
_READ = 1 << 16
"""Characters of a text that are compared."""
_CUT = "…"

Value = Callable[[Summary], JSON]
"""A value of a session; ``None`` is unknown."""


def against(
    what: str,
    one: Sequence[Summary],
    two: Sequence[Summary],
    value: Value,
    *,
    another: bool = False,
) -> list[str]:
    """The clause with both values, if both are known and differ; else empty."""
    kind = "another" if another else "different"
    return [f"{kind} {each}" for each in both(what, one, two, value)]


def both(what: str, one: Sequence[Summary], two: Sequence[Summary], value: Value) -> list[str]:
    """``batch size: 32 against 64``, if both are known and differ; else empty."""
    if not differ(one, two, value):
        return []
    sides = [_texts(known(side, value)) for side in (one, two)]
    short = _differing([*sides[0], *sides[1]])
    first, second = (_few([short[text] for text in side]) for side in sides)
    return [f"{what}: {first} against {second}"]


def differ(one: Sequence[Summary], two: Sequence[Summary], value: Value) -> bool:
    """Whether the value is known on both sides and differs."""
    first, second = (_keys(known(side, value)) for side in (one, two))
    return bool(first and second) and first != second


def known(sessions: Iterable[Summary], value: Value) -> list[JSON]:
    """The values of the sessions where it is known."""
    return [found for session in sessions if (found := value(session)) is not None]


def _keys(values: Iterable[JSON]) -> set[str]:
    return {json.dumps(each, sort_keys=True, default=str) for each in values}


def listed(values: Sequence[JSON]) -> str:
    """The distinct ``values``, shortened for a sentence."""
    return _few([_cut(text) for text in _texts(values)])


def _texts(values: Sequence[JSON]) -> list[str]:
    return list(dict.fromkeys(clean(each, _READ) for each in values))


def _few(texts: Sequence[str]) -> str:
    return " and ".join(texts[:_MOST]) + (" and others" if len(texts) > _MOST else "")


def _differing(texts: Sequence[str]) -> dict[str, str]:
    """What is shown of each text: of long ones, the differing part.

    One common word comes before it: ``… --lr 0.1``.
    """
    if all(len(text) <= _WHOLE for text in texts):
        return {text: text for text in texts}
    shortest = min(map(len, texts))
    before = _alike(texts)
    behind = _alike([text[::-1] for text in texts])
    return {
        text: _middle(text, before, len(text) - min(behind, shortest - before)) for text in texts
    }


def _alike(texts: Sequence[str]) -> int:
    """Length of the common beginning of ``texts``."""
    columns = enumerate(zip(*texts, strict=False))
    return next((at for at, of in columns if len(set(of)) > 1), min(map(len, texts)))


def _middle(text: str, start: int, end: int) -> str:
    """``text`` from ``start`` to ``end``, extended to whole words and the word before."""
    word = text.rfind(" ", 0, start) + 1
    first = text.rfind(" ", 0, max(0, word - 1)) + 1
    first = next(at for at in (first, word, start - _BEFORE) if at >= start - _BEFORE)
    blank = text.find(" ", end)
    last = min(len(text) if blank < 0 else blank, end + _BEHIND)
    shown = _cut(text[max(0, first) : last])
    left = f"{_CUT} " if text[:first].endswith(" ") else _CUT
    right = f" {_CUT}" if text[last:].startswith(" ") else _CUT
    return f"{left * (first > 0)}{shown}{right * (last < len(text) and not shown.endswith(_CUT))}"


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1].rstrip()}{_CUT}"
