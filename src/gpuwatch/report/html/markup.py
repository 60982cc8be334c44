"""Pieces of HTML. Parameters named ``markup``, ``cells`` or ``body`` are HTML already."""

from __future__ import annotations

import html
from collections.abc import Sequence

from gpuwatch.core.text import clean

_LONGEST = 600


def text(value: object, longest: int = _LONGEST) -> str:
    """Untrusted ``value`` as safe text for an element or a quoted attribute."""
    return html.escape(clean(value, longest), quote=True)


def section(anchor: str, level: int, title: str, body: str) -> str:
    """A section with a heading; ``title`` is plain text."""
    return (
        f'<section id="{anchor}" aria-labelledby="{anchor}-h">\n'
        f'<h{level} id="{anchor}-h">{text(title)}</h{level}>\n{body}\n</section>'
    )


def folded(title: str, body: str, *, is_open: bool = False) -> str:
    """A section that the reader can open; ``title`` is plain text. Printing opens it."""
    shown = " open" if is_open else ""
    return f"<details{shown}>\n<summary>{text(title)}</summary>\n{body}\n</details>"


def table(caption: str, head: Sequence[str], groups: Sequence[tuple[str, Sequence[Row]]]) -> str:
    """A table with groups of rows, each under its name if it has one.

    ``caption`` and the names are plain text, ``head`` and the cells are HTML.
    """
    columns = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    bodies = []
    for name, rows in groups:
        of_group = (
            f'<tr class="group"><th scope="rowgroup" colspan="{len(head)}">{text(name)}</th></tr>\n'
            if name
            else ""
        )
        bodies.append(f"<tbody>\n{of_group}{''.join(map(_row, rows))}</tbody>")
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(caption)}">'
        f"<table>\n<caption>{text(caption)}</caption>\n"
        f"<thead><tr>{columns}</tr></thead>\n{''.join(bodies)}</table></div>"
    )


Row = Sequence[str]
"""Cells of a row; the first is its heading."""


def _row(cells: Row) -> str:
    rest = "".join(f"<td>{cell}</td>" for cell in cells[1:])
    return f'<tr><th scope="row">{cells[0]}</th>{rest}</tr>\n'


def bullets(items: Sequence[str], kind: str = "") -> str:
    """A list; its items are HTML."""
    named = f' class="{kind}"' if kind else ""
    return f"<ul{named}>\n" + "".join(f"<li>{item}</li>\n" for item in items) + "</ul>"
