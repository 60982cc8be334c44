"""Which listed sessions and studies some words find.

``docker status:failed tag:x`` finds sessions of which all of that is true.
"""

from __future__ import annotations

from functools import lru_cache

from gpuwatch.analysis.summary.listing import ListedSession, ListedStudy
from gpuwatch.core.text import cut

_FIELDS = {
    "status": ("status",),
    "name": ("name",),
    "workload": ("workload", "command", "command_label"),
    "env": ("environment", "place", "job", "device"),
    "study": ("study", "title", "question"),
    "result": ("failure", "status_text", "said"),
    "tag": ("tags",),
    "note": ("note",),
}
"""What a term with one of these and a colon in front looks at, of a session and its study; without,
at all of them."""
FIELDS = tuple(_FIELDS)
_ALL = tuple(field for fields in _FIELDS.values() for field in fields)


def matches(query: str, entry: ListedSession, study: ListedStudy | None) -> bool:
    """Whether every word of ``query`` is in what the list knows of a session and its study."""
    return all(_term(term, entry, study) for term in _terms(query))


def no_field(query: str) -> str:
    """A word before a colon in ``query`` that is not a field, and the fields; else empty."""
    for term in _terms(query):
        name, colon, _ = term.partition(":")
        if colon and name not in _FIELDS:
            return f"{cut(name, 16)}: is not a field: {' '.join(FIELDS)}"
    return ""


@lru_cache(maxsize=8)
def _terms(query: str) -> tuple[str, ...]:
    return tuple(query.casefold().split())


def _term(term: str, *of: ListedSession | ListedStudy | None) -> bool:
    name, colon, value = term.partition(":")
    fields, word = (_FIELDS[name], value) if colon and name in _FIELDS else (_ALL, term)
    told = [getattr(each, field, None) or "" for each in of for field in fields]
    return any(
        word in (text if isinstance(text, str) else " ".join(text)).casefold() for text in told
    )


def without_run(study: ListedStudy) -> ListedSession:
    """What is known of the runs of a study that waits for its first one."""
    return ListedSession(
        path=study.path,
        study=study.study,
        status=study.waits,
        workload=", ".join(study.commands),
        environment=", ".join(study.environments),
    )
