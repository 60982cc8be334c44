"""Finding sessions of the list by words: ``docker status:failed tag:x``."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from gpuwatch.tui.commands import Entry, Study
from gpuwatch.tui.widgets.cells import fit

_FIELDS: dict[str, Callable[[Entry, Study | None], tuple[str, ...]]] = {
    "status": lambda entry, study: (entry.status,),
    "env": lambda entry, study: (entry.environment,),
    "workload": lambda entry, study: (entry.workload, entry.command, entry.command_label),
    "name": lambda entry, study: (entry.name, study.name if study else ""),
    "tag": lambda entry, study: (*entry.tags, *(study.tags if study else ())),
    "note": lambda entry, study: (entry.note, study.note if study else ""),
    "study": lambda entry, study: (entry.study, study.title if study else ""),
}
"""What a term with one of these in front looks at; without, at all of them."""
FIELDS = tuple(_FIELDS)


def matches(query: str, entry: Entry, study: Study | None) -> bool:
    """Whether every word of ``query`` is in what the list knows of a session and its study."""
    return all(_term(term, entry, study) for term in _terms(query))


def no_field(query: str) -> str:
    """A word before a colon in ``query`` that is not a field, and the fields; else empty."""
    for term in _terms(query):
        field, colon, _ = term.partition(":")
        if colon and field not in _FIELDS:
            return f"{fit(field, 16)}: is not a field: {' '.join(FIELDS)}"
    return ""


@lru_cache(maxsize=8)
def _terms(query: str) -> tuple[str, ...]:
    return tuple(query.casefold().split())


def _term(term: str, entry: Entry, study: Study | None) -> bool:
    field, colon, value = term.partition(":")
    if colon and field in _FIELDS:
        return any(value in text.casefold() for text in _FIELDS[field](entry, study))
    texts = [text for of in _FIELDS.values() for text in of(entry, study)]
    if study is not None:
        texts.append(study.question)
    return any(term in text.casefold() for text in texts)
