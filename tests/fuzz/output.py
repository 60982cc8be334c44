"""What may be in gpuwatch's output, whatever was in the file: complaints as text, none is good."""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from html.parser import HTMLParser

_BAD = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that move a cursor, turn text around, or are nothing."""
CODES = frozenset({0, 1, 2, 3})
"""Exit codes of docs/commands.md, without that of an interruption."""


def bad_characters(text: str, besides: str = "\n") -> list[str]:
    """Characters that no terminal should get."""
    if text.isascii() and text.replace("\n", "").isprintable():
        return []
    found = {hex(ord(c)) for c in set(text) if c not in besides and unicodedata.category(c) in _BAD}
    return [f"the output holds {', '.join(sorted(found)[:5])}"] if found else []


def of_text(text: str) -> list[str]:
    return bad_characters(text)


def of_csv(text: str) -> list[str]:
    # csv ends its lines as RFC 4180 asks.
    return bad_characters(text.replace("\r\n", "\n"))


def of_markdown(text: str) -> list[str]:
    # An invisible space keeps GitHub from making mentions.
    problems = bad_characters(text, "\n\u200b")
    if re.search(r"(?<!\\)<(?:script|img|svg|a|iframe)\b", text, re.IGNORECASE):
        problems.append("HTML in the Markdown")
    return problems


def of_json(text: str) -> list[str]:
    """One document, or one a line; strict JSON."""
    problems = bad_characters(text)

    def refuse(name: str) -> None:
        raise ValueError(f"{name} is no JSON")

    try:
        json.loads(text, parse_constant=refuse)
    except ValueError:
        try:
            for line in text.splitlines():
                json.loads(line, parse_constant=refuse)
        except ValueError as error:
            problems.append(f"no strict JSON: {error}")
    return problems


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.count: Counter[str] = Counter()
        self.errors: list[str] = []
        self.policy = False
        self.scripts = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] += 1
        self.scripts += tag == "script" and ("type", "application/json") not in attrs
        for name, value in attrs:
            known = value or ""
            self.policy |= name == "http-equiv" and known == "Content-Security-Policy"
            if name.startswith("on"):
                self.errors.append(f"a handler: {name}")
            if name in ("src", "href", "xlink:href", "action", "data") and not known.startswith(
                ("#", "data:image/")
            ):
                self.errors.append(f"a reference elsewhere: {known[:60]}")


_ACTING = frozenset({"iframe", "object", "embed", "form", "base", "link", "frame", "applet"})


def of_html(text: str) -> list[str]:
    """A whole page, or a picture: no script but the page's own, nothing from elsewhere."""
    tags = _Tags()
    tags.feed(text)
    problems = [*bad_characters(text, "\n\t"), *tags.errors[:3]]
    problems += [f"<{tag}>" for tag in _ACTING & tags.count.keys()]
    if tags.count["html"]:
        if not tags.policy:
            problems.append("no Content-Security-Policy")
        if tags.scripts != 1:  # what draws its curves
            problems.append(f"{tags.scripts} scripts")
    elif tags.count["script"]:
        problems.append("a script in the picture")
    return problems


def of_error(text: str) -> list[str]:
    """Standard error: notes, and at the end one line that says what, why and what helps."""
    problems = bad_characters(text)
    if "Traceback" in text:
        problems.append("a traceback")
    if max(map(len, text.splitlines()), default=0) > 5000:
        problems.append("a line of more than 5,000 characters")
    return problems
