"""The marks of cells: a colour, and a shape for readers who cannot see it."""

from __future__ import annotations

from collections.abc import Sequence

from gpuwatch.report.html.markup import text

COLOURS, SHAPES = 6, 6
"""``style.css`` defines a class ``.c0`` ... for each colour."""

_SHAPES = (
    '<circle id="m0" r="4.5"/>',
    '<rect id="m1" x="-4" y="-4" width="8" height="8"/>',
    '<path id="m2" d="M0-5.2 5 4H-5Z"/>',
    '<path id="m3" d="M0-5.8 5.8 0 0 5.8-5.8 0Z"/>',
    '<path id="m4" d="M-1.7-5h3.4v3.3h3.3v3.4h-3.3v3.3h-3.4v-3.3h-3.3v-3.4h3.3Z"/>',
    '<path id="m5" d="M0 5.2-5-4H5Z"/>',
)


def shapes() -> str:
    """The SVG definitions of the shapes, needed once per page."""
    return f'<svg class="shapes" aria-hidden="true"><defs>{"".join(_SHAPES)}</defs></svg>'


def colour(cell: int) -> str:
    """CSS class of a cell's colour."""
    return f"c{cell % COLOURS}"


def shape(cell: int) -> str:
    """Reference to a cell's shape; pairs of colour and shape repeat only after all are used."""
    return f"#m{(cell + cell // COLOURS) % SHAPES}"


def mark(cell: int, x: str, y: float, *, hollow: bool = False, title: str = "") -> str:
    """A cell's shape at ``x`` (a length or percentage) and ``y``; ``title`` is plain text."""
    kind = f"mark {colour(cell)}" + (" hollow" if hollow else "")
    inner = f"<title>{text(title)}</title>" if title else ""
    return f'<use class="{kind}" href="{shape(cell)}" x="{x}" y="{y:.1f}">{inner}</use>'


def legend(labels: Sequence[str], extra: Sequence[tuple[str, str]] = ()) -> str:
    """Line, shape and name of each cell; ``extra`` are further signs (SVG) with their meanings."""
    items = [
        f'<svg width="44" height="14" aria-hidden="true"><line class="curve {colour(cell)}" '
        f'x1="0" x2="44" y1="7" y2="7"/>{mark(cell, "22", 7)}</svg>{text(label, 80)}'
        for cell, label in enumerate(labels)
    ]
    items += [
        f'<svg width="16" height="14" aria-hidden="true">{sign}</svg>{text(meaning)}'
        for sign, meaning in extra
    ]
    return '<ul class="legend">' + "".join(f"<li>{item}</li>" for item in items) + "</ul>"
