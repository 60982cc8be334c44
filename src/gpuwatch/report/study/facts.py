"""Facts that differ around the runs of one question, with the value in each environment."""

from __future__ import annotations

import re

from gpuwatch.analysis.results import Cell, Question
from gpuwatch.core import units
from gpuwatch.core.models import mapping
from gpuwatch.report.study.document import Grid, Heading, Item, LabelledSentence, Section

_TITLE = "what differs around the runs"
_SHORTEST, _ROOM = 20, 120
"""Least characters for one value; most characters for all values of a fact together."""
_FOLDED = (
    ("namespaces", re.compile(r"process\.namespace\.")),
    ("capabilities", re.compile(r"process\.capabilities")),
    ("image ids and layers", re.compile(r"image_(id|layers)|.*digest")),
)
"""The least informative facts, which are only counted."""


def listed(question: Question) -> Section:
    """One line per fact, its values separated by bars; the least informative are only counted."""
    rows = _rows(question)
    items: list[Item] = [Heading(" | ".join(cell.label for cell in question.cells))]
    folded: dict[str, int] = {}
    for scope, key, values in rows:
        group = next((name for name, pattern in _FOLDED if pattern.match(key)), None)
        if group is None:
            items.append(LabelledSentence(_name(scope, key), " | ".join(values)))
        else:
            folded[group] = folded.get(group, 0) + 1
    if folded:
        counts = ", ".join(f"{count} of {name}" for name, count in folded.items())
        many = sum(folded.values())
        items.append(
            LabelledSentence(
                "", f"{many} more ({counts}): in summary.md, summary.html and summary.json"
            )
        )
    return Section(_TITLE, tuple(items) if rows else ())


def table(question: Question) -> Section:
    """One row per fact, one column per environment."""
    rows = tuple((f"{scope}: {key}", *values) for scope, key, values in _rows(question))
    head = ("fingerprint", *(cell.label for cell in question.cells))
    return Section(_TITLE, (Grid(head, rows),) if rows else ())


def _rows(question: Question) -> list[tuple[str, str, tuple[str, ...]]]:
    """Scope, key and the value in each environment, for facts that differ."""
    keys = {
        (each.scope, each.key): None
        for contrast in question.contrasts
        for each in contrast.explanation.differences
    }
    longest = max(_SHORTEST, _ROOM // max(1, len(question.cells)))
    return [
        (scope, key, tuple(_value(cell, scope, key, longest) for cell in question.cells))
        for scope, key in keys
    ]


def _value(cell: Cell, scope: str, key: str, longest: int) -> str:
    sessions = [run.session for run in cell.judged or cell.runs]
    values = [
        (each.environment if scope == "environment" else mapping(each.facts.get(scope))).get(key)
        for each in sessions
    ]
    if not values:
        return units.UNKNOWN
    if any(value != values[0] for value in values):
        return "differs from run to run"
    text = units.fact(key, values[0])
    return text if len(text) <= longest else f"{text[: longest - 1]}\u2026"


def _name(scope: str, key: str) -> str:
    """The name of a fact, without its scope if that is redundant."""
    if scope == "environment":
        return key.replace("_", " ")
    if scope in ("process", "host"):
        return key.removeprefix("process.").removeprefix("env.")
    return f"{scope}: {key}"
