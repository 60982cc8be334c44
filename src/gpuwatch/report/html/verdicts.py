"""A sentence for each comparison, sweep and noise floor, with the verdict as a badge."""

from __future__ import annotations

from gpuwatch.analysis.comparison.wording import after_word, heading
from gpuwatch.analysis.results import Contrast, Kind, Question, StudyResult, Verdict
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


def verdict_badge(verdict: Verdict) -> str:
    """The verdict as a sign and a word; the colour adds no information."""
    kind = verdict.kind
    return (
        f'<span class="badge {kind.name.lower()}"><span aria-hidden="true">{_SIGNS[kind]} </span>'
        f"{text(heading(verdict))}</span>"
    )


def name(question: Question, contrast: Contrast) -> str:
    """``docker against bare``, unescaped."""
    cells = question.cells
    return f"{cells[contrast.other].label} against {cells[contrast.baseline].label}"


def verdicts(result: StudyResult) -> str:
    """Every sentence with its verdict, and runs that are still to come."""
    parts = []
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
            parts.append(f"<h2>{text(question.label)}</h2>")
        parts.append(
            bullets(
                [f"{verdict_badge(each.verdict)} {_sentence(each)}" for each in question.contrasts],
                "sentences",
            )
        )
    if result.sweeps and any(each.contrasts for each in result.questions):
        parts.append("<h2>Sweeps</h2>")
        sentences = (f"{of_sweep(each)}: {each.sentence}" for each in result.sweeps)
        parts.append(bullets([text(each, 1000) for each in sentences], "sentences"))
    if result.noise:
        parts.append(bullets([text(each.sentence) for each in result.noise], "sentences"))
    return "\n".join(parts)


def _sentence(contrast: Contrast) -> str:
    sentences = [after_word(contrast), *([contrast.design] if contrast.design else [])]
    return f"<span>{'<br>'.join(text(each, 1000) for each in sentences)}</span>"
