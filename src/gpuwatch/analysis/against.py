"""Whether sessions of two sides differ in a value: the clause that names both."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from gpuwatch.analysis.summary import Summary
from gpuwatch.models import JSON
from gpuwatch.text import clean

_MOST = 3
_LONGEST = 40

Value = Callable[[Summary], JSON]
"""What is asked of a session; ``None``: it is not known."""


def against(
    what: str,
    one: Sequence[Summary],
    two: Sequence[Summary],
    value: Value,
    *,
    another: bool = False,
) -> list[str]:
    """The clause that names both values, if they differ; an unknown one does not."""
    if not differ(one, two, value):
        return []
    first, second = (listed(known(side, value)) for side in (one, two))
    return [f"{'another' if another else 'different'} {what}: {first} against {second}"]


def differ(one: Sequence[Summary], two: Sequence[Summary], value: Value) -> bool:
    """Whether both sides know it, and not the same."""
    first, second = (_keys(known(side, value)) for side in (one, two))
    return bool(first and second) and first != second


def known(sessions: Iterable[Summary], value: Value) -> list[JSON]:
    """What those that know it say."""
    return [found for session in sessions if (found := value(session)) is not None]


def _keys(values: Iterable[JSON]) -> set[str]:
    return {json.dumps(each, sort_keys=True, default=str) for each in values}


def listed(values: Sequence[JSON]) -> str:
    """The different ones of ``values``, fit for a sentence."""
    names = list(dict.fromkeys(clean(each, _LONGEST) for each in values))
    return " and ".join(names[:_MOST]) + (" and others" if len(names) > _MOST else "")
