"""Pieces of HTML. Parameters named ``markup``, ``cells`` or ``body`` are HTML already."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

from gpuwatch.core.text import clean
from gpuwatch.report.document.blocks import Table

_LONGEST = 600
_SHARE = re.compile(r"(?<=\d) %")


def text(value: object, longest: int = _LONGEST) -> str:
    """Untrusted ``value`` as safe text for an element or a quoted attribute; no line ends between
    a number and its per cent."""
    return _SHARE.sub("&nbsp;%", html.escape(clean(value, longest), quote=True))


def section(anchor: str, level: int, title: str, body: str) -> str:
    """A section with a heading; ``title`` is plain text."""
    return (
        f'<section id="{anchor}" aria-labelledby="{anchor}-h">\n'
        f'<h{level} id="{anchor}-h">{text(title)}</h{level}>\n{body}\n</section>'
    )


def folded(title: str, body: str) -> str:
    """A section that the reader can open; ``title`` is plain text. Printing opens it."""
    return f"<details>\n<summary>{text(title)}</summary>\n{body}\n</details>"


def table(caption: str, of: Table) -> str:
    """A table; a row with only its first cell filled is the name of those below."""
    columns = "".join(f'<th scope="col">{text(cell, 80)}</th>' for cell in of.head)
    rows = []
    for at, (name, *cells) in enumerate(of.rows):
        if not any(cells):
            group = f'<th scope="rowgroup" colspan="{len(of.head)}">{text(name)}</th>'
            rows.append(f'</tbody>\n<tbody>\n<tr class="group">{group}</tr>\n')
            continue
        filled = "".join(
            f'<td><strong class="{mark}">{_cell(cell)}</strong></td>'
            if (mark := of.marks.get((at, column)))
            else f"<td>{_cell(cell)}</td>"
            for column, cell in enumerate(cells, 1)
        )
        rows.append(f'<tr><th scope="row">{_cell(name)}</th>{filled}</tr>\n')
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{text(caption)}">'
        f"<table>\n<caption>{text(caption)}</caption>\n"
        f"<thead><tr>{columns}</tr></thead>\n<tbody>\n{''.join(rows)}</tbody></table></div>"
    )


def _cell(cell: str) -> str:
    """The first line, and those below it smaller; these break at tabs alone."""
    first, *rest = cell.split("\n")
    below = (
        " ".join(text(part, 120).replace(" ", "&nbsp;") for part in line.split("\t"))
        for line in rest
    )
    return text(first.replace("\t", " ")) + "".join(f"<br><small>{line}</small>" for line in below)


def bullets(items: Sequence[str], kind: str = "") -> str:
    """A list; its items are HTML."""
    named = f' class="{kind}"' if kind else ""
    return f"<ul{named}>\n" + "".join(f"<li>{item}</li>\n" for item in items) + "</ul>"
