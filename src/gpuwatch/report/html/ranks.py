"""The ranks of a run: a table, sentences, and a heat map of rank by time."""

from __future__ import annotations

from gpuwatch.analysis.ranks.ranks import Heat
from gpuwatch.analysis.ranks.wording import change, level, names, sentences
from gpuwatch.analysis.results import Cell, Question, Run
from gpuwatch.core import units
from gpuwatch.report.html.markup import bullets, table, text
from gpuwatch.report.session.rank_grid import rank_grid
from gpuwatch.report.study.why import middle_runs

_ROW, _LEFT, _ACROSS = 22, 56, 1000
_MOST = 64


def ranks(question: Question) -> str:
    """The ranks of the run in the middle of each cell; empty if no run has any."""
    return "\n".join(
        _of_run(cell, run)
        for cell, run in zip(question.cells, middle_runs(question), strict=True)
        if run is not None and run.session.ranks is not None
    )


def _of_run(cell: Cell, run: Run) -> str:
    found = run.session.ranks
    assert found is not None
    grid = rank_grid(found, run.session.devices)
    head, *rows = ([text(each) for each in row] for row in (grid.head, *grid.rows))
    parts = [
        f"<h4>{text(cell.label)}</h4>",
        bullets([text(sentence, 1000) for sentence in sentences(found)], "notes"),
        _heat_map(found.heat, cell.label) if found.heat is not None else "",
        table(f"Ranks of {cell.label}", head, [("", rows)]),
    ]
    return "\n".join(part for part in parts if part)


def _heat_map(heat: Heat, label: str) -> str:
    """Rows of ranks, columns of time; every cell names its value for the pointer."""
    shown = list(zip(heat.ranks, heat.values, strict=True))[:_MOST]
    first, last = heat.starts[0], heat.ends[-1]
    scale = _ACROSS / max(1.0, last - first)
    labels = "".join(
        f'<text x="100%" y="{at * _ROW + 16}" text-anchor="end">rank {rank}</text>'
        for at, (rank, _) in enumerate(shown)
    )
    cells = "".join(
        f'<rect class="h{level(value)}" x="{(start - first) * scale:.1f}" y="{at * _ROW}" '
        f'width="{(end - start) * scale:.1f}" height="{_ROW - 2}">'
        f"<title>rank {rank}, {units.clock_time(start / 1e9)}: {change(value)}</title></rect>"
        for at, (rank, values) in enumerate(shown)
        for start, end, value in zip(heat.starts, heat.ends, values, strict=True)
    )
    height = len(shown) * _ROW
    title = text(f"Own time of each rank of {label} beside the median rank, over time")
    ends = f"{units.clock_time(first / 1e9)} to {units.clock_time(last / 1e9)} of the recording"
    return (
        '<figure class="chart">\n'
        f'<p class="what">own time beside the median rank of the moment</p>\n{_legend()}\n'
        f'<div class="plot"><svg class="up" aria-hidden="true" width="{_LEFT}" '
        f'height="{height}">{labels}</svg>'
        f'<svg role="img" width="100%" height="{height}" viewBox="0 0 {_ACROSS} {height}" '
        f'preserveAspectRatio="none"><title>{title}</title>{cells}</svg></div>\n'
        f'<p class="across">{text(ends)}</p>\n</figure>'
    )


def _legend() -> str:
    items = "".join(
        f'<li><svg width="14" height="14" aria-hidden="true">'
        f'<rect class="h{at}" width="14" height="14"></rect></svg>{text(name)}</li>'
        for at, name in enumerate(names())
    )
    return f'<ul class="legend">{items}</ul>'
