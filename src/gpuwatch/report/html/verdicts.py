"""The head of the page: the answer, and a sentence for each comparison."""

from __future__ import annotations

from collections import Counter

from gpuwatch.analysis.comparison.wording import after_word
from gpuwatch.analysis.results import Contrast, Kind, Question, StudyResult
from gpuwatch.report.changes import estimate
from gpuwatch.report.html.markup import bullets, text
from gpuwatch.report.study.answer import of_sweep

_SIGNS = {
    Kind.SAME: "=",
    Kind.SLOWER: "▲",
    Kind.FASTER: "▼",
    Kind.SMALL: "≈",
    Kind.CANT_TELL: "?",
    Kind.INVALID: "✕",
    Kind.DESCRIBED: "○",
}
_NO_NUMBER = (Kind.CANT_TELL, Kind.DESCRIBED, Kind.INVALID)
"""Verdicts for which the answer gives no number, since it could be quoted without its interval."""
_MOST_NAMED = 4
"""Most comparisons that the answer names one by one; more are counted by verdict."""


def badge(kind: Kind) -> str:
    """The verdict as a sign and a word; the colour adds no information."""
    return (
        f'<span class="badge {kind.name.lower()}"><span aria-hidden="true">{_SIGNS[kind]} </span>'
        f"{text(kind.word)}</span>"
    )


def name(question: Question, contrast: Contrast) -> str:
    """``docker against bare``, unescaped."""
    cells = question.cells
    return f"{cells[contrast.other].label} against {cells[contrast.baseline].label}"


def verdicts(result: StudyResult) -> str:
    """The answer, and below it every sentence with its verdict."""
    parts = [f'<p class="answer">{line}</p>' for line in _answers(result)]
    if result.to_come:
        runs = "run" if result.to_come == 1 else "runs"
        parts.append(
            f'<p class="warning"><strong>Not complete:</strong> {result.to_come} {runs} of the '
            "plan are still to come.</p>"
        )
    if result.overall:
        parts.append(bullets([text(each.sentence) for each in result.overall], "sentences"))
    for question in result.questions:
        if not question.contrasts:
            continue
        if len(result.questions) > 1:
            parts.append(f"<h3>{text(question.label)}</h3>")
        parts.append(
            bullets(
                [f"{badge(each.verdict.kind)} {_sentence(each)}" for each in question.contrasts],
                "sentences",
            )
        )
    if result.sweeps and _contrasts(result):
        parts.append("<h3>Sweeps</h3>")
        parts.append(bullets(_sweeps(result), "sentences"))
    if result.noise:
        parts.append(bullets([text(each.sentence) for each in result.noise], "sentences"))
    return "\n".join(parts)


def _sentence(contrast: Contrast) -> str:
    return f"<span>{text(after_word(contrast), 1000)}</span>"


def _contrasts(result: StudyResult) -> list[Contrast]:
    return [each for question in result.questions for each in question.contrasts]


def _sweeps(result: StudyResult) -> list[str]:
    return [f"{text(of_sweep(each))}: {text(each.sentence, 1000)}" for each in result.sweeps]


def _answers(result: StudyResult) -> list[str]:
    """The answer, one line per case; many comparisons are counted by verdict."""
    contrasts = _contrasts(result)
    if not contrasts:
        return _sweeps(result) or [_without_comparison(result)]
    if len(contrasts) > _MOST_NAMED:
        counts = Counter(each.verdict.kind for each in contrasts)
        of_kind = ", ".join(f"{counts[kind]} {badge(kind)}" for kind in Kind if counts[kind])
        return [f"{len(contrasts)} comparisons: {of_kind}."]
    lines = []
    for question in result.questions:
        if question.contrasts:
            start = f"{text(question.label)}, against" if len(result.questions) > 1 else "Against"
            base = text(question.cells[question.contrasts[0].baseline].label)
            outcomes = "; ".join(_short(question, contrast) for contrast in question.contrasts)
            lines.append(f"{start} {base}: {outcomes}.")
    return lines


def _short(question: Question, contrast: Contrast) -> str:
    change = contrast.verdict.change
    number = ""
    if change is not None and contrast.verdict.kind not in _NO_NUMBER:
        number = f" <span>{estimate(change.estimate, change)}</span>"
    label = text(question.cells[contrast.other].label)
    return f"{label} {badge(contrast.verdict.kind)}{number}"


def _without_comparison(result: StudyResult) -> str:
    if result.noise:
        return "The noise of this machine, by one environment against itself."
    runs = len(result.sessions)
    return f"Nothing to compare: {runs} run{'' if runs == 1 else 's'}, one environment or none."
