"""What the home screen asks before it deletes something: in words that name it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core.text import clean
from gpuwatch.tui.home.list import Item, first_start
from gpuwatch.tui.home.table import started
from gpuwatch.tui.messages import Question
from gpuwatch.tui.widgets.cells import fit

_MOST_NAMED = 4
_LONGEST_NAME = 40


def delete_question(
    paths: Sequence[Path], items: Sequence[Item], *, marked: bool, going: Sequence[str]
) -> Question:
    """Asks by what the list calls it, and says what goes.

    ``items`` are those of ``paths`` that are listed; ``marked``: it is not the row under the cursor
    that is asked about. ``going``: a line for each folder, as ``gpuwatch delete`` tells it.
    """
    known = {item.path: item for item in items}
    names = [
        _told(known[path]) if path in known else clean(f"{path.parent.name}/{path.name}")
        for path in paths
    ]
    what = "; ".join(_some(names))
    if marked:
        what = f"the marked {what}" if len(paths) == 1 else f"{len(paths)} marked: {what}"
    text = "\n".join([f"Delete {what}?", *map(clean, _some(going))])
    return Question(text, "Delete", "Cancel")


def _told(item: Item) -> str:
    """``best (gcn) in docker, started 11-20 22:54``; of a study how many runs it has."""
    of = item.entry or item.study
    assert of is not None
    if item.entry is not None:
        ran = item.entry.command_label or item.entry.workload
        where = f"in {item.entry.environment}"
    else:
        ran = item.ran
        where = f"study of {len(item.every)} run{'' if len(item.every) == 1 else 's'}"
    name = f"{fit(of.name, _LONGEST_NAME)} ({ran})" if of.name else ran
    start = first_start(item)
    return f"{name} {where}" + (f", started {started(start)}" if start else "")


def _some(texts: Sequence[str]) -> list[str]:
    shown, more = texts[:_MOST_NAMED], len(texts) - _MOST_NAMED
    return [*shown, *([f"{more} more"] if more > 0 else [])]
