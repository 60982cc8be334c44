"""Labels that people give to sessions and studies, and their limits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import replace

from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, sequence
from gpuwatch.core.text import clean

LONGEST_NAME, LONGEST_TAG, LONGEST_NOTE, MOST_TAGS = 80, 32, 2000, 16
_TAG = re.compile(r"[^\s,:+\-][^\s,:]*")


@dataclass(frozen=True)
class Label:
    """A name, tags and a note for a session or a study; each may be empty."""

    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    """Lines, joined by newlines."""

    def heading(self, what: str) -> str:
        """The name followed by ``what`` in brackets, or ``what`` alone: ``low lr (bare)``."""
        return f"{self.name} ({what})" if self.name else what


NONE = Label()


def clean_name(name: str) -> str:
    """Clean and check a name.

    Raises:
        UsageError: it is too long, or commands would take it for something else.
    """
    text = _one_line(name)
    if len(text) > LONGEST_NAME:
        raise UsageError(
            f"the name has {len(text)} characters; at most {LONGEST_NAME}", "shorten it"
        )
    if (
        text == "last"
        or "/" in text
        or text.endswith(".gpuwatch")
        or text.startswith(("-", "tag:"))
    ):
        raise UsageError(
            f"{text!r} cannot be a name: commands take it for something else", "choose another"
        )
    return text


def clean_tag(text: str) -> str:
    """Clean and check a tag.

    Raises:
        UsageError: it has blanks, commas or colons, begins with a sign, or is too long.
    """
    tag = _one_line(text)
    if not _TAG.fullmatch(tag) or len(tag) > LONGEST_TAG:
        raise UsageError(
            f"{clean(tag, 2 * LONGEST_TAG)!r} is not a tag",
            f"a tag has at most {LONGEST_TAG} characters, no blank, comma or colon, "
            "and does not start with + or -",
        )
    return tag


def clean_note(text: str) -> str:
    """Clean and check a note, line by line.

    Raises:
        UsageError: it is too long.
    """
    # Not cut, so that the error gives the true length.
    lines = (clean(line, len(line)).rstrip() for line in text.splitlines())
    note = "\n".join(lines).strip("\n")
    if len(note) > LONGEST_NOTE:
        raise UsageError(
            f"the note has {len(note)} characters; at most {LONGEST_NOTE}", "shorten it"
        )
    return note


def _one_line(text: str) -> str:
    """Clean ``text`` without cutting it, so that errors give the true length."""
    return clean(" ".join(text.splitlines()), len(text)).strip()


def with_tags(label: Label, add: Collection[str], remove: Collection[str]) -> Label:
    """``label`` with the tags ``add`` appended and the tags ``remove`` removed.

    Raises:
        UsageError: too many tags.
    """
    tags = [tag for tag in dict.fromkeys([*label.tags, *add]) if tag not in remove]
    if len(tags) > MOST_TAGS:
        raise UsageError(f"that would be {len(tags)} tags; at most {MOST_TAGS}", "remove some")
    return replace(label, tags=tuple(tags))


def from_elsewhere(value: Mapping[str, JSON]) -> Label:
    """A label from a file, cleaned and limited; malformed parts are left out."""
    name, tags, note = value.get("name"), value.get("tags"), value.get("note")
    texts = [clean(tag) for tag in sequence(tags) if isinstance(tag, str)]
    good = [tag for tag in texts if len(tag) <= LONGEST_TAG and _TAG.fullmatch(tag)]
    lines = note[: 4 * LONGEST_NOTE].splitlines() if isinstance(note, str) else []
    return Label(
        clean(name, LONGEST_NAME).strip() if isinstance(name, str) else "",
        tuple(dict.fromkeys(good))[:MOST_TAGS],
        "\n".join(map(clean, lines))[:LONGEST_NOTE],
    )
