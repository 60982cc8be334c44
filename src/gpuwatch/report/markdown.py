"""A document as Markdown for a pull request: the verdict first, the details folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study import interval_plot
from gpuwatch.core.text import clean, markdown
from gpuwatch.report.document import blocks, study
from gpuwatch.report.tables import markdown_table
from gpuwatch.report.text import bars

LONGEST = 60_000
"""Size limit in bytes; GitHub accepts 65,536 characters."""
_ROOM_FOR_REST = 500
_LONGEST_TEXT = 1000
_PLOT_COLUMNS = 80


def as_markdown(result: StudyResult, *, roofline: str | None = None) -> str:
    """The study as GitHub Markdown in at most ``LONGEST`` bytes; omitted sections are named.

    ``roofline`` is the name of the picture in the same folder.
    """
    return written(study.document(result), roofline)


def written(of: blocks.Document, roofline: str | None = None) -> str:
    """``of`` as GitHub Markdown; what is not folded stands first."""
    sections = [section for section in of.sections if blocks.MARKDOWN in section.formats]
    picture = f"Roofline of the runs: {roofline}, beside this file.\n" if roofline else ""
    beginning = [*_beginning(of)]
    shown: dict[bool, list[str]] = {False: [], True: []}
    left_out: list[str] = []
    room = LONGEST - _ROOM_FOR_REST - sum(len(part.encode()) + 1 for part in (*beginning, picture))
    for section in sorted(sections, key=lambda each: each.folded):
        text = _section(section)
        size = len(text.encode()) + 1
        if size <= room:
            shown[section.folded].append(text)
            room -= size
        else:
            left_out.append(section.title)
    parts = [*beginning, *shown[False], picture, *shown[True]]
    if left_out:
        names = ", ".join(dict.fromkeys(left_out))
        parts.append(f"Left out for its length: {names}. summary.json has all of it.")
    return "\n".join(filter(None, parts)) + "\n"


def _beginning(of: blocks.Document) -> Iterator[str]:
    """Title, legend, the figures of a single run, verdicts, the chart, and what is missing."""
    yield f"# {markdown(of.title)}\n"
    yield _items([blocks.Sentence(each.letter, each.text) for each in of.legend])
    if of.figures:
        figures = [
            [markdown(each.name), markdown(each.value), markdown(clean(each.note, _LONGEST_TEXT))]
            for each in of.figures
        ]
        yield markdown_table(["figure", "value", "how it was obtained"], figures, left=3) + "\n"
    yield _items(of.answer)
    if isinstance(of.chart, blocks.Bars):
        yield f"{markdown(of.chart.title)}:\n"
    yield _items([of.chart] if of.chart is not None else [])
    yield _items(of.missing)
    yield from (f"{markdown(each)}\n" for each in of.asked)
    if of.origin:
        yield "<br>\n".join(map(markdown, of.origin)) + "\n"


def _section(section: blocks.Section) -> str:
    """A section, under a heading or folded; empty if nothing of it can be written."""
    title, body = section.title, _items(section.items)
    if body and section.folded:
        of = f"**{markdown(section.of)}**\n\n" if section.of else ""
        return f"<details><summary>{title}</summary>\n\n{of}{body}\n</details>\n"
    heading = f"## {markdown(title[:1].upper() + title[1:])}\n\n" if title else ""
    return f"{heading}{body}" if body else ""


def _items(items: Sequence[blocks.Item]) -> str:
    """Blocks with a blank line between them unless both belong to one list, and one at the end."""
    lines: list[str] = []
    before: blocks.Item | None = None
    for item in items:
        new = _item(item)
        if (
            new
            and lines
            and not (isinstance(item, blocks.Sentence) and isinstance(before, blocks.Sentence))
        ):
            lines.append("")
        lines += new
        before = item if new else before
    return "".join(f"{line}\n" for line in lines)


def _item(item: blocks.Item) -> list[str]:
    if isinstance(item, blocks.Sentence):
        word = f"**{markdown(item.word)}** " if item.word else ""
        hint = f". Fix: {markdown(item.hint)}" if item.hint else ""
        return [f"- {word}{markdown(clean(item.text, _LONGEST_TEXT))}{hint}"]
    if isinstance(item, blocks.Heading):
        return [f"**{markdown(item.text)}**"]
    if isinstance(item, blocks.Table):
        rows = [
            ["<br>".join(map(markdown, cell.replace("\t", " ").split("\n"))) for cell in row]
            for row in item.rows
        ]
        return [markdown_table([markdown(cell) for cell in item.head], rows)]
    drawn: list[str] = []
    if isinstance(item, blocks.Bars):
        drawn = bars(item, _PLOT_COLUMNS)
    elif isinstance(item, blocks.Intervals):
        changes = [(each.name, each.verdict) for each in item.changes]
        drawn = interval_plot.rows(changes, _PLOT_COLUMNS)
    return ["```text", *(line.replace("`", "'") for line in drawn), "```"] if drawn else []
