"""Why: what goes with each difference, what ran elsewhere only, what starting cost."""

from __future__ import annotations

from gpuwatch import units
from gpuwatch.analysis.results import Contrast, Evidence, Interval, Question, StartUp
from gpuwatch.report import efficiency
from gpuwatch.report.html.markup import table, text
from gpuwatch.report.html.verdicts import badge, name
from gpuwatch.report.values import shown

_LONGEST_FACT = 160


def reasons(question: Question, level: int) -> str:
    """The explanation of each comparison, under headings of ``level``."""
    return "\n".join(
        f"<h{level}>{text(name(question, each))} {badge(each.verdict.kind)}</h{level}>\n"
        f"{_explained(question, each)}"
        for each in question.contrasts
    )


def _explained(question: Question, contrast: Contrast) -> str:
    of = contrast.explanation
    labels = [question.cells[at].label for at in (contrast.baseline, contrast.other)]
    parts = []
    if of.evidence:
        parts.append(
            '<ol class="evidence">'
            + "".join(f"<li>{_evidence(e)}</li>" for e in of.evidence)
            + "</ol>"
        )
    if of.start_up is not None:
        parts.append(f"<p>{_start_up(of.start_up)}</p>")
    if of.kernels:
        head, rows = efficiency.kernel_grid(labels, of.kernels, text)
        parts.append(table("Kernels that ran in one of the two", head, [("", rows)]))
    if of.differences:
        rows = [
            [
                text(f"{each.scope}: {each.key}", 120),
                *(text(units.fact(each.key, value), _LONGEST_FACT) for value in each.values),
            ]
            for each in of.differences
        ]
        head = ["fingerprint", *(text(label, 80) for label in labels)]
        parts.append(table("What differs around the runs", head, [("", rows)]))
    return "\n".join(parts) or "<p>Nothing that was looked at differs.</p>"


def _evidence(evidence: Evidence) -> str:
    points = "" if evidence.points is None else f" <strong>{_points(evidence.points)}</strong>"
    how = [evidence.method.value] if evidence.method is not None else []
    how += [evidence.source] if evidence.source else []
    told = f" <small>({text(', '.join(how), 200)})</small>" if how else ""
    return f'<span class="rung">{text(evidence.rung)}</span> {text(evidence.text)}{points}{told}'


def _points(points: Interval) -> str:
    estimate, low, high = (100 * each for each in (points.estimate, points.low, points.high))
    return text(f"{estimate:+.1f} points ({low:+.1f} to {high:+.1f})")


def _start_up(start: StartUp) -> str:
    if start.seconds is None:
        return "What starting cost is not known."
    told = f"Starting took {shown(start.seconds, 's')}, apart from the steady state"
    if start.extra_seconds is not None:
        side = "longer" if start.extra_seconds >= 0 else "shorter"
        told += f", {shown(abs(start.extra_seconds), 's')} {side} than the baseline"
    if start.steps_to_amortise is not None:
        told += f"; after {start.steps_to_amortise:,} steps that is below the margin"
    return text(f"{told}.")
