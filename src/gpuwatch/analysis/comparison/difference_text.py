"""What differs around the runs, as texts for every screen and report."""

from __future__ import annotations

from gpuwatch.analysis.comparison.side_by_side import environment_facts
from gpuwatch.analysis.results import Cell, Difference, Question
from gpuwatch.core import units
from gpuwatch.core.models import JSON, mapping


def name(difference: Difference) -> str:
    """The fact's name, without its scope if that is redundant: ``image size``, ``host: kernel``."""
    scope, key = difference.scope, difference.key
    if scope == "environment":
        return key if key.startswith("variables.") else key.replace("_", " ")
    if scope in ("process", "host"):
        return key.removeprefix("process.").removeprefix("env.")
    return f"{scope}: {key}"


def texts(difference: Difference, longest: int | None = None) -> tuple[str, ...]:
    """The values, each cut to ``longest`` characters."""
    values = (units.fact(difference.key, value) for value in difference.values)
    return tuple(
        text if longest is None or len(text) <= longest else f"{text[: longest - 1]}…"
        for text in values
    )


def of_question(question: Question) -> tuple[Difference, ...]:
    """The facts that differ between any two compared cells, with the value in every cell."""
    facts = {
        (each.scope, each.key): None
        for contrast in question.contrasts
        for each in contrast.explanation.differences
    }
    return tuple(
        Difference(scope, key, tuple(_value(cell, scope, key) for cell in question.cells))
        for scope, key in facts
    )


def _value(cell: Cell, scope: str, key: str) -> JSON:
    sessions = [run.session for run in cell.judged or cell.runs]
    values = [
        (
            environment_facts(each.environment)
            if scope == "environment"
            else mapping(each.facts.get(scope))
        ).get(key)
        for each in sessions
    ]
    if any(value != values[0] for value in values):
        return "differs from run to run"
    return values[0] if values else None
