"""A study as Markdown for a pull request: the verdict first, the details folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from gpuwatch.analysis.comparison.wording import heading
from gpuwatch.analysis.results import Question, StudyResult, Verdict
from gpuwatch.analysis.study import interval_plot
from gpuwatch.analysis.study.letters import LegendEntry
from gpuwatch.analysis.study.notes import conditions
from gpuwatch.core import units
from gpuwatch.core.text import clean, markdown
from gpuwatch.report import changes
from gpuwatch.report.session import side_by_side
from gpuwatch.report.study import (
    about,
    bars,
    devices,
    facts,
    ranks,
    tables,
    why,
)
from gpuwatch.report.study import (
    answer as study_answer,
)
from gpuwatch.report.study import (
    origin as study_origin,
)
from gpuwatch.report.study.compared import compared, lettered, one_run_each
from gpuwatch.report.study.document import Heading, Item, LabelledSentence, Plot, Section
from gpuwatch.report.study.hero import Bars, Hero, hero
from gpuwatch.report.tables.grid import PAIRED, grid_markdown
from gpuwatch.report.tables.plain import markdown_table

LONGEST = 60_000
"""Size limit in bytes; GitHub accepts 65,536 characters."""
_ROOM_FOR_REST = 500
_LONGEST_TEXT = 1000
_PLOT_COLUMNS = 80


def as_markdown(result: StudyResult, *, roofline: str | None = None) -> str:
    """The study as GitHub Markdown in at most ``LONGEST`` bytes; omitted sections are named.

    ``roofline`` is the name of the picture in the same folder.
    """
    result, legend = lettered(result)
    top = hero(result)
    if one_run_each(result):
        answer = _items(_without_plot(study_answer.answer(result)))
        return side_by_side.as_markdown(
            compared(result),
            top.title,
            [*result.notices, *conditions(result.questions)],
            answer=[
                *_legend(legend),
                *_hero(top),
                *answer,
                *([""] if answer else []),
                *(_items(of_devices) if (of_devices := devices.devices(result)).items else []),
            ],
            roofline=roofline,
        )
    parts = ["\n".join(_beginning(result, top, legend, roofline))]
    left_out = []
    room = LONGEST - _ROOM_FOR_REST - len(parts[0].encode())
    for title, text in _details(result):
        size = len(text.encode()) + 1
        if size <= room:
            parts.append(text)
            room -= size
        elif title not in left_out:
            left_out.append(title)
    if left_out:
        parts.append(f"Left out for its length: {', '.join(left_out)}. summary.json has all of it.")
    return "\n".join(parts) + "\n"


def _beginning(
    result: StudyResult, top: Hero, legend: Sequence[LegendEntry], roofline: str | None
) -> Iterator[str]:
    yield f"# {markdown(top.title)}\n"
    yield from _legend(legend)
    yield from _hero(top)
    yield from _items(_without_plot(study_answer.answer(result)))
    yield ""
    yield from (f"{markdown(each)}\n" for each in study_answer.heading(result))
    if origin := study_origin.lines(result):
        yield "<br>\n".join(map(markdown, origin)) + "\n"
    for question in result.questions:
        yield from [f"### {markdown(question.label)}\n"] if len(result.questions) > 1 else []
        yield f"{_short_table(question)}\n"
    if (of_devices := devices.devices(result)).items:
        yield "\n".join(_items(of_devices)) + "\n"
    if roofline:
        yield f"Roofline of the runs: {roofline}, beside this file.\n"


def _legend(legend: Sequence[LegendEntry]) -> list[str]:
    return [*_items(study_answer.legend(legend)), ""] if legend else []


def _hero(top: Hero) -> list[str]:
    """The sentences, the figures of a single run, and the chart."""
    lines = []
    for each in top.statements:
        detail = f" ({markdown(clean(each.detail, _LONGEST_TEXT))})" if each.detail else ""
        lines += [f"**{markdown(clean(each.claim, _LONGEST_TEXT))}**{detail}", ""]
    if top.figures:
        figures = [
            [markdown(each.name), markdown(each.value), markdown(clean(each.note, _LONGEST_TEXT))]
            for each in top.figures
        ]
        lines += [markdown_table(["", "", ""], figures, left=3), ""]
    if isinstance(top.chart, Bars):
        drawn = bars.rows(top.chart, _PLOT_COLUMNS)
        lines += [f"{markdown(top.chart.title)}:", "", *_as_text(drawn), ""]
    elif top.chart is not None:
        drawn = interval_plot.rows(top.chart.contrasts, _PLOT_COLUMNS)
        lines += [*_as_text(drawn), ""] if drawn else []
    return lines


def _as_text(lines: Sequence[str]) -> list[str]:
    return ["```text", *(line.replace("`", "'") for line in lines), "```"]


def _without_plot(section: Section) -> Section:
    """The answer below its chart."""
    return replace(section, items=tuple(e for e in section.items if not isinstance(e, Plot)))


def _short_table(question: Question) -> str:
    """One row per cell: its median, the verdict's estimate as a ratio, and its change."""
    of = {each.other: each for each in question.contrasts}
    rows = []
    for at, cell in enumerate(question.cells):
        contrast = of.get(at)
        verdict = None if contrast is None else contrast.verdict
        estimate = None if verdict is None else verdict.estimate
        rows.append(
            [
                markdown(cell.label),
                "" if verdict is None else heading(verdict),
                units.quantity(cell.median, "s"),
                units.ratio(None if estimate is None else 1 + estimate),
                "" if verdict is None else markdown(_change(verdict)),
                units.UNKNOWN if cell.spread is None else units.percent(cell.spread),
                str(len([run for run in cell.judged if run.value is not None])),
            ]
        )
    paired = any(each.verdict.paired for each in question.contrasts)
    change = PAIRED if paired else "change"
    head = ["", "verdict", question.metric, "ratio", change, "spread", "runs"]
    return markdown_table(head, rows, left=2)


def _change(verdict: Verdict) -> str:
    """The change that decides, with its interval."""
    of = verdict.leading
    if of.estimate is None:
        return ""
    text = changes.estimate(of.estimate, of.change)
    text = f"{text}, {tables.interval(of.change)}" if of.change else text
    return f"{text}, of all steps" if verdict.by_total else text


def _details(result: StudyResult) -> Iterator[tuple[str, str]]:
    """Title and text of each folded section, the most important first."""
    yield from _folded(about.sweeps(result))
    several = len(result.questions) > 1
    order = tables.orders(result.plan)
    for question in result.questions:
        for section in (
            about.costs(question),
            why.evidence(question),
            why.kernels(question),
            ranks.ranks(question),
            facts.table(question),
            tables.cells(question),
            tables.runs(question, order),
            tables.verdicts(question),
        ):
            yield from _folded(section, question.label if several else None)
    for section in (
        about.noise(result),
        about.notes(result),
        about.method(result),
    ):
        yield from _folded(section)


def _folded(section: Section, of: str | None = None) -> Iterator[tuple[str, str]]:
    """Title and text of a folded section; ``of`` is its question."""
    if section.items:
        lines = [f"**{markdown(of)}**\n"] if of else []
        body = "\n".join([*lines, *_items(section)])
        title = section.title
        yield title, f"<details><summary>{title}</summary>\n\n{body}\n\n</details>\n"


def _items(section: Section) -> list[str]:
    """Lines, with a blank line between items unless both belong to one list."""
    lines: list[str] = []
    before: Item | None = None
    for item in section.items:
        apart = not (isinstance(item, LabelledSentence) and isinstance(before, LabelledSentence))
        lines += ["", *_item(item)] if apart and lines else _item(item)
        before = item
    return lines


def _item(item: Item) -> list[str]:
    if isinstance(item, LabelledSentence):
        word = f"**{markdown(item.word)}** " if item.word else ""
        hint = f". Fix: {markdown(item.hint)}" if item.hint else ""
        return [f"- {word}{markdown(clean(item.text, _LONGEST_TEXT))}{hint}"]
    if isinstance(item, Heading):
        return [f"**{markdown(item.text)}**"]
    if isinstance(item, Plot):
        drawn = interval_plot.rows(item.contrasts, _PLOT_COLUMNS)
        return _as_text(drawn) if drawn else []
    return [grid_markdown(item)]
