"""The list of the home screen: its sessions and studies, and their order; and the words and labels
that are written in the foot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from pathlib import Path

from gpuwatch.analysis.summary.finding import matches, without_run
from gpuwatch.analysis.summary.listed_item import Item
from gpuwatch.analysis.summary.listing import Listed
from gpuwatch.core.aggregate import grouped
from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.study.label import (
    LONGEST_NAME,
    LONGEST_NOTE,
    LONGEST_TAG,
    MOST_TAGS,
    NONE,
    clean_name,
    clean_note,
    clean_tag,
    with_tags,
)
from gpuwatch.tui.home.table import ORDERS
from gpuwatch.tui.widgets.base_screen import MAX_LENGTH


@dataclass(frozen=True)
class ListOptions:
    """What the person asked of the list."""

    query: str = ""
    order: int = 0
    """Place in ``ORDERS``."""
    reverse: bool = False
    opened: frozenset[Path] = field(default_factory=frozenset)
    """Folders of the studies whose runs are shown."""

    @property
    def falling(self) -> bool:
        """Whether the largest comes first."""
        return ORDERS[self.order].falling != self.reverse


def arranged(listed: Listed, how: ListOptions) -> tuple[Item, ...]:
    """The rows: what goes on first, then studies and sessions that are alone, in the order asked
    for; below a study that is open, or of which not all is found, its runs, in the order of a plan
    unless another was chosen."""
    studies = {study.path: study for study in listed.studies}
    placed = [(studies.get(entry.path.parent), entry) for entry in listed.sessions]
    found = [(of, entry) for of, entry in placed if matches(how.query, entry, of)]
    every, shown = (
        grouped((of.path, entry) for of, entry in each if of) for each in (placed, found)
    )
    items = [Item(entry=entry) for study, entry in found if study is None]
    items += [
        Item(None, studies[path], tuple(runs), tuple(every[path]), opened)
        for path, runs in shown.items()
        for opened in [path in how.opened or len(runs) < len(every[path])]
    ]
    items += [
        Item(None, study)
        for study in listed.studies
        if study.path not in every and matches(how.query, without_run(study), study)
    ]
    rows = []
    for item in sorted(sorted_items(items, how), key=lambda item: not item.goes_on):
        rows.append(item)
        if item.entry is None and item.opened and item.runs:
            alike = len({run.ran for run in item.every}) == 1
            runs = [Item(entry=run, study=item.study, alike=alike) for run in item.runs]
            if how.order or how.reverse or not (item.study and item.study.runs):
                runs = sorted_items(runs, how)
            else:
                runs.sort(key=lambda each: each.path.name)
            rows += [*runs[:-1], replace(runs[-1], last=True)]
    return tuple(rows)


def sorted_items(items: Sequence[Item], how: ListOptions) -> list[Item]:
    """In the order asked for; unknown values last, equal ones as they were."""
    key = ORDERS[how.order].key
    valued = [(key(item), item) for item in items]
    known = [each for each in valued if each[0] is not None]
    known.sort(key=lambda each: each[0], reverse=how.falling)  # type: ignore[arg-type,return-value]
    return [item for _, item in known] + [item for value, item in valued if value is None]


def items_of(listed: Listed, paths: Sequence[Path]) -> list[Item]:
    """The rows of ``paths``, also those that are not shown; of what is not listed none."""
    studies = {study.path: study for study in listed.studies}
    entries = {entry.path: entry for entry in listed.sessions}
    found = []
    for path in paths:
        if path in entries:
            found.append(Item(entry=entries[path], study=studies.get(path.parent)))
        elif path in studies:
            every = tuple(entry for entry in listed.sessions if entry.path.parent == path)
            found.append(Item(None, studies[path], every, every))
    return found


_LONGEST = {"name": LONGEST_NAME, "tags": MOST_TAGS * (LONGEST_TAG + 1) - 1, "note": LONGEST_NOTE}
LINE_END = "↵"
"""Stands for the end of a line in a note of several."""


@dataclass(frozen=True)
class Edit:
    """What is being written, and for what."""

    what: str
    """What stands in front of the line: ``find``, ``name``, ``tags`` or ``note``."""
    text: str = ""
    target: Item | None = None
    """The session or study that a label is written for, as it was when that began."""
    trouble: str = ""
    """Why what was written is not taken as it is."""

    @property
    def longest(self) -> int:
        """Characters that it takes."""
        return _LONGEST.get(self.what, MAX_LENGTH)

    def refused(self) -> str:
        """Why it can be no label; empty: it can be one, or is none."""
        try:
            if self.what == "name":
                clean_name(self.text)
            elif self.what == "note":
                clean_note(self.text)
            elif self.what == "tags":
                with_tags(NONE, [clean_tag(each) for each in tags_of(self.text)], ())
        except UsageError as error:
            return str(error)
        return ""


def tags_of(text: str) -> list[str]:
    """The tags of a line; a plus in front of one is of the command line."""
    return [tag.removeprefix("+") for tag in text.split()]


def label_command(edit: Edit) -> tuple[str, ...] | None:
    """The command that writes a label for what it was begun for; ``None``: nothing changes."""
    item = edit.target
    if item is None:
        return None
    of, path, text = item.of, str(item.path), edit.text.strip()
    if edit.what == "name":
        return None if text == of.name else ("rename", path, "--", text)
    if edit.what == "note":
        return None if text == of.note else ("note", path, "--", text)
    wanted = tags_of(text)
    changes = [f"+{tag}" for tag in wanted if tag not in of.tags]
    changes += [f"-{tag}" for tag in of.tags if tag not in wanted]
    return ("tag", path, *changes) if changes else None
