"""The HTML page of a document, the answer first; it works offline."""

from __future__ import annotations

import base64
import hashlib
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from itertools import groupby
from typing import Any

from gpuwatch.analysis.results import Kind, StudyResult
from gpuwatch.analysis.samples.gauges import RunSeries
from gpuwatch.analysis.study.letters import LegendEntry
from gpuwatch.core.text import capital
from gpuwatch.report.document import blocks, study
from gpuwatch.report.html import charts
from gpuwatch.report.html.curves import curves
from gpuwatch.report.html.drawing import shapes
from gpuwatch.report.html.markup import bullets, folded, section, table, text

_LONGEST = 1000
_SIGNS = {
    Kind.SAME: "=",
    Kind.SLOWER: "▲",
    Kind.FASTER: "▼",
    Kind.SMALL: "≈",
    Kind.CANT_TELL: "?",
    Kind.INVALID: "✕",
    Kind.DESCRIBED: "○",
}
_CHARTS: Mapping[type[blocks.Item], Callable[[Any], str]] = {
    blocks.Bars: charts.bars,
    blocks.Intervals: charts.intervals,
    blocks.Dots: charts.dots,
    blocks.SweepChart: charts.sweep,
    blocks.HeatMap: charts.heat_map,
    blocks.Rooflines: charts.rooflines,
}


def page(result: StudyResult, series: Sequence[RunSeries]) -> str:
    """One self-contained HTML document.

    It loads nothing, and its Content-Security-Policy allows only its own script. All text of
    ``result`` and ``series`` is untrusted: it is cleaned and escaped here. ``series`` are matched
    to the runs by the session's path; a run without a series is not drawn.
    """
    of = study.document(result)
    style, script = _file("style.css"), _file("script.js")
    contents, body = _body(of, {each.path: each for each in series})
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{_policy(style, script)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{text(of.title)}</title>
<style>{style}</style>
</head>
<body>
{shapes()}
<main>
{_header(of)}
<nav aria-label="Contents">{bullets(contents)}</nav>
{body}
</main>
<footer><p>Made by gpuwatch. This file loads nothing from elsewhere.</p></footer>
<script>{script}</script>
</body>
</html>
"""


def _file(name: str) -> str:
    return resources.files("gpuwatch.report.html").joinpath(name).read_text(encoding="utf-8")


def _policy(style: str, script: str) -> str:
    """A policy that allows no loading, and only this style and script, by their hashes."""
    return (
        f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(content: str) -> str:
    digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode("ascii")
    return f"'sha256-{digest}'"


def _header(of: blocks.Document) -> str:
    """Title, answer, figures of a single run, chart, what is missing, and how it was measured."""
    asked = "".join(f'<p class="question">{text(e)}</p>\n' for e in of.asked if e != of.title)
    answer = [_items(of.answer, "Answer", 2, "", {})] if of.answer else []
    if of.figures:
        figures = "".join(
            f"<div><dt>{text(each.name)}</dt><dd>{text(each.value)}</dd>"
            f"<dd><small>{text(each.note, _LONGEST)}</small></dd></div>"
            for each in of.figures
        )
        answer.append(f'<dl class="figures">{figures}</dl>')
    chart = [of.chart] if of.chart is not None else []
    answer.append(_items([*chart, *of.missing], "Answer", 2, "", {}))
    facts = "".join(
        f"<div><dt>{name}</dt><dd>{text(value, 300)}</dd></div>" for name, value in of.facts
    )
    return (
        f"<header>\n<h1>{text(of.title)}</h1>\n{_letters(of.legend)}{asked}"
        f'<section class="answer" aria-label="Answer">\n{"".join(answer)}\n</section>\n'
        f"<dl>{facts}</dl>\n</header>"
    )


def _letters(legend: Sequence[LegendEntry]) -> str:
    """What each letter stands for; empty without letters."""
    entries = "".join(
        f"<div><dt>{each.letter}</dt><dd>{text(each.text, 300)}</dd></div>" for each in legend
    )
    return f'<dl class="letters">{entries}</dl>\n' if entries else ""


def _body(of: blocks.Document, series: Mapping[str, RunSeries]) -> tuple[list[str], str]:
    """Links to the sections, and the sections, those of a question under its label."""
    links, parts = [], []
    shown = [each for each in of.sections if blocks.PAGE in each.formats]
    for case, (label, sections) in enumerate(groupby(shown, key=lambda each: each.of)):
        if label:
            anchor = f"case-{case}"
            inner = [_section(each, 3, f"{anchor}-{_slug(each)}", series) for each in sections]
            own = [each for each in of.legend if label in each.questions]
            parts.append(section(anchor, 2, label, _letters(own) + "\n".join(inner)))
            links.append(f'<a href="#{anchor}">{text(label)}</a>')
            continue
        seen: Counter[str] = Counter()
        for each in sections:
            anchor = _slug(each)
            seen[anchor] += 1
            anchor = anchor if seen[anchor] == 1 else f"{anchor}-{seen[anchor]}"
            parts.append(_section(each, 2, anchor, series))
            if each.title:
                links.append(f'<a href="#{anchor}">{text(capital(each.title))}</a>')
    return links, "\n".join(parts)


def _section(of: blocks.Section, level: int, anchor: str, series: Mapping[str, RunSeries]) -> str:
    body = _items(of.items, of.title, level + 1, anchor, series)
    if of.closed:
        body = folded("Show" if of.title else "All figures", body)
    return section(anchor, level, capital(of.title), body) if of.title else body


def _slug(of: blocks.Section) -> str:
    return re.sub(r"[^a-z]+", "-", of.title.lower())[:40].strip("-")


def _items(
    items: Sequence[blocks.Item],
    caption: str,
    level: int,
    anchor: str,
    series: Mapping[str, RunSeries],
) -> str:
    """The items under headings of ``level``; neighbouring sentences are a list."""
    parts = []
    for is_sentence, group in groupby(items, key=lambda each: isinstance(each, blocks.Sentence)):
        if is_sentence:
            parts.append(
                bullets(
                    [_sentence(e) for e in group if isinstance(e, blocks.Sentence)], "sentences"
                )
            )
            continue
        for item in group:
            if isinstance(item, blocks.Heading):
                caption = item.text
                parts.append(f"<h{level}>{text(caption)}</h{level}>")  # a label, as it was given
            elif isinstance(item, blocks.Table) and parts and isinstance(items[0], blocks.Dots):
                parts.append(folded("The runs in numbers", table(caption, item)))
            elif isinstance(item, blocks.Table):
                parts.append(table(caption or "Figures", item))
            elif isinstance(item, blocks.Curves):
                parts.append(curves(item.question, series, anchor))
            else:
                parts.append(_CHARTS[type(item)](item))
    return "\n".join(parts)


def _sentence(of: blocks.Sentence) -> str:
    """A verdict as a sign and a word, the colour adds no information; other words in bold."""
    word = f"<strong>{text(of.word)}</strong> " if of.word else ""
    if of.kind is not None:
        sign = f'<span aria-hidden="true">{_SIGNS[of.kind]} </span>'
        name = of.kind.name.lower()
        word = f'<span class="badge {name}">{sign}{text(of.word)}</span> '
    how = f" <small>({text(of.how, 200)})</small>" if of.how else ""
    fix = f"<br>Fix: <code>{text(of.hint)}</code>" if of.hint else ""
    return f"{word}<span>{text(of.text, _LONGEST)}</span>{how}{fix}"
