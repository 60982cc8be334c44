"""The top of the page: title, legend, the answer in one sentence, and one chart."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.analysis.results import Question
from gpuwatch.analysis.study.letters import LegendEntry
from gpuwatch.report.html.intervals import plot
from gpuwatch.report.html.markup import text
from gpuwatch.report.study.hero import Bars, Figure, Hero, Statement

_LONGEST = 1000
_HEIGHT = 22


def title(top: Hero, legend: Sequence[LegendEntry]) -> str:
    """The page's heading, with the labels that letters stand for."""
    return f"<h1>{text(top.title)}</h1>\n{letters(legend)}"


def letters(legend: Sequence[LegendEntry]) -> str:
    """What each letter stands for; empty without letters."""
    entries = "".join(
        f"<div><dt>{each.letter}</dt><dd>{text(each.text, 300)}</dd></div>" for each in legend
    )
    return f'<dl class="letters">{entries}</dl>\n' if entries else ""


def answer(top: Hero, questions: Sequence[Question]) -> str:
    """The sentences, the figures of a single run, and the chart."""
    parts = [_statement(each) for each in top.statements]
    if top.figures:
        parts.append(f'<dl class="figures">{"".join(map(_figure, top.figures))}</dl>')
    if isinstance(top.chart, Bars):
        parts.append(_bars(top.chart))
    elif top.chart is not None:
        parts.append(plot(questions))
    return "\n".join(parts)


def _statement(statement: Statement) -> str:
    detail = f" <span>({text(statement.detail, _LONGEST)})</span>" if statement.detail else ""
    return f'<p class="answer"><strong>{text(statement.claim, _LONGEST)}</strong>{detail}</p>'


def _figure(figure: Figure) -> str:
    return (
        f"<div><dt>{text(figure.name)}</dt><dd>{text(figure.value)}</dd>"
        f"<dd><small>{text(figure.note, _LONGEST)}</small></dd></div>"
    )


def _bars(bars: Bars) -> str:
    most = max(bar.value for bar in bars.bars)
    rows = "".join(
        f'<div class="name">{text(bar.name, 120)}</div>'
        f'<svg aria-hidden="true" width="100%" height="{_HEIGHT}"><rect class="bar" x="0" y="3" '
        f'width="{100 * bar.value / most if most > 0 else 0:.2f}%" height="{_HEIGHT - 6}"/></svg>'
        f'<div class="value">{text(bar.text)}</div>'
        for bar in bars.bars
    )
    return f'<figure class="bars"><p class="what">{text(bars.title)}</p>\n{rows}</figure>'
