"""Lists such as ``ssh=gpu1,python=/usr/bin/python3``: what ``--env`` and ``--on`` take."""

from __future__ import annotations

import re

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass

_QUOTED = re.compile(r"^(.*?=)([\"'])(.*)\2$", re.DOTALL)


@dataclass(frozen=True)
class KeyValue:
    """One item of a list."""

    key: str
    value: str | None
    """``None`` without an equals sign."""
    text: str
    """As it was written."""


def parse(text: str) -> tuple[KeyValue, ...]:
    """The items of ``KEY[=VALUE],...`` in order.

    A comma within brackets belongs to the value, as in ``nodelist=n[1,3-5]``; so does one within
    single or double quotes, which begin after an equals sign and end before a comma or at the end:
    ``comment="a, b"``. The quotes themselves do not belong to it.

    Raises:
        UsageError: a bracket or quote has no end.
    """
    return tuple(map(_key_value, _items(text)))


def _items(text: str) -> list[str]:
    """The texts between the commas that separate items."""
    items, begin, at, depth = [], 0, 0, 0
    while at < len(text):
        character = text[at]
        if character in "\"'" and at > begin and text[at - 1] == "=":
            at = _end_of_quotes(text, at)
        elif character == "[":
            depth += 1
        elif character == "]":
            depth = max(0, depth - 1)
        elif character == "," and not depth:
            items.append(text[begin:at])
            begin = at + 1
        at += 1
    if depth:
        raise UsageError(f"a [ has no ] in {text}", "put the value in quotes, or add the bracket")
    return [*items, text[begin:]]


def _end_of_quotes(text: str, begin: int) -> int:
    """Where the quotes end that begin at ``begin``."""
    end = text.find(text[begin], begin + 1)
    while end >= 0 and text[end + 1 : end + 2] not in ("", ","):
        end = text.find(text[begin], end + 1)
    if end < 0:
        raise UsageError(f"a {text[begin]} has no end in {text}", "add the second quote")
    return end


def _key_value(item: str) -> KeyValue:
    key, equals, value = _QUOTED.sub(r"\1\3", item).partition("=")
    return KeyValue(key, value if equals else None, item)
