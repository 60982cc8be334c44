"""The list of the home screen: its sessions and studies, those that words find, and their order;
and the words and labels that are written in the foot.

``docker status:failed tag:x`` finds sessions of which all of that is true.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from functools import lru_cache
from pathlib import Path

from gpuwatch.analysis.summary.listing import Listed, ListedSession, ListedStudy, what_ran
from gpuwatch.analysis.summary.listing import elapsed as elapsed_of
from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.status import State
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
from gpuwatch.tui.widgets.base_screen import MAX_LENGTH
from gpuwatch.tui.widgets.line import fit

_FIELDS: dict[str, Callable[[ListedSession, ListedStudy | None], tuple[str, ...]]] = {
    "status": lambda entry, study: (entry.status,),
    "env": lambda entry, study: (entry.environment,),
    "workload": lambda entry, study: (entry.workload, entry.command, entry.command_label),
    "name": lambda entry, study: (entry.name, study.name if study else ""),
    "tag": lambda entry, study: (*entry.tags, *(study.tags if study else ())),
    "note": lambda entry, study: (entry.note, study.note if study else ""),
    "study": lambda entry, study: (entry.study, (study and study.title) or ""),
}
"""What a term with one of these in front looks at; without, at all of them."""
FIELDS = tuple(_FIELDS)


def matches(query: str, entry: ListedSession, study: ListedStudy | None) -> bool:
    """Whether every word of ``query`` is in what the list knows of a session and its study."""
    return all(_term(term, entry, study) for term in _terms(query))


def no_field(query: str) -> str:
    """A word before a colon in ``query`` that is not a field, and the fields; else empty."""
    for term in _terms(query):
        name, colon, _ = term.partition(":")
        if colon and name not in _FIELDS:
            return f"{fit(name, 16)}: is not a field: {' '.join(FIELDS)}"
    return ""


@lru_cache(maxsize=8)
def _terms(query: str) -> tuple[str, ...]:
    return tuple(query.casefold().split())


def _term(term: str, entry: ListedSession, study: ListedStudy | None) -> bool:
    name, colon, value = term.partition(":")
    if colon and name in _FIELDS:
        return any(value in text.casefold() for text in _FIELDS[name](entry, study))
    texts = [text for of in _FIELDS.values() for text in of(entry, study)]
    if study is not None:
        texts.append(study.question or "")
    return any(term in text.casefold() for text in texts)


GOING_ON = frozenset(state.value for state in (State.QUEUED, State.STARTING, State.RUNNING))
_STOPPABLE = GOING_ON | {State.LOST.value, State.UNKNOWN.value}
BAD = ("failed", "killed", "lost", State.IN_PART.value, "unreadable")
"""States of a run that did not end well."""


@dataclass(frozen=True)
class Item:
    """One row: a session, or a study with its runs."""

    entry: ListedSession | None = None
    """The session; ``None`` of a study's row."""
    study: ListedStudy | None = None
    """The study, also of a session that stands below it."""
    runs: tuple[ListedSession, ...] = ()
    """Of a study's row: its sessions that the filter lets through."""
    every: tuple[ListedSession, ...] = ()
    """All of them."""
    opened: bool = False
    alike: bool = False
    """All runs of its study are of one command."""
    last: bool = False
    """The last session below its study's row."""

    @property
    def of(self) -> ListedSession | ListedStudy:
        """What the row is of."""
        of = self.entry or self.study
        assert of is not None
        return of

    @property
    def path(self) -> Path:
        """The session's file or the study's folder."""
        return self.of.path

    @property
    def title(self) -> str:
        """The name that was given, else what ran."""
        titled = self.study.title if self.entry is None and self.study is not None else ""
        return self.of.name or titled or self.ran

    @property
    def failed(self) -> ListedSession | None:
        """The run, or the first of a study, that ended badly."""
        ended = (run for run in self.sessions if run.status in BAD)
        return min(ended, key=lambda run: run.path, default=None)

    @property
    def ran(self) -> str:
        """What ran; of a study with several commands their labels, or workloads."""
        if self.entry is None and self.study is not None and not self.every:
            return ", ".join(self.study.commands)
        return what_ran(self.sessions) or "unknown"

    @property
    def sessions(self) -> tuple[ListedSession, ...]:
        """The session, of a study all of them."""
        return self.every if self.entry is None else (self.entry,)

    @property
    def goes_on(self) -> bool:
        if self.entry is not None:
            return self.entry.status in GOING_ON
        going = any(run.status in GOING_ON for run in self.every)
        return going or (self.study is not None and self.study.going_on)

    @property
    def state(self) -> tuple[str, str]:
        """A state, and the words for it: of a study what became of its runs."""
        if self.entry is not None:
            return self.entry.status, self.entry.status
        assert self.study is not None
        if self.study.waits:
            return self.study.waits, self.study.waits
        many, planned = len(self.every), self.study.runs or len(self.every)
        ends = Counter(run.status for run in self.every)
        bad = [state for state in BAD if ends[state]]
        if self.goes_on:
            return State.RUNNING.value, f"run {many}/{planned}"
        if bad:
            word = bad[0] if len(bad) == 1 else State.FAILED.value
            return State.FAILED.value, f"{sum(ends[state] for state in bad)} {word}"
        if many < planned or ends[State.STOPPED.value]:
            return State.STOPPED.value, f"{ends[State.FINISHED.value]}/{planned} runs"
        return State.FINISHED.value, f"{many} runs"


def stoppable(item: Item) -> bool:
    """Whether something of it may go on."""
    return item.goes_on or (item.entry is not None and item.entry.status in _STOPPABLE)


def lost(item: Item) -> bool:
    """Whether it is a run whose recorder died, which can be recorded on."""
    return item.entry is not None and item.entry.status == State.LOST.value


@dataclass(frozen=True)
class Order:
    """By what rows are sorted, and which end comes first at first."""

    name: str
    key: Callable[[Item], float | str | None]
    """``None`` is unknown, and comes last both ways."""
    falling: bool


def first_start(item: Item) -> str | None:
    """When it, or the first run of a study, was started; ``None``: that is not known."""
    return min((run.started for run in item.sessions if run.started), default=None)


def elapsed(item: Item) -> float | None:
    """Seconds, of a study from the start of its first run to the last end; ``None``: not known."""
    if item.entry is not None:
        return item.entry.seconds
    return elapsed_of((run.started, run.seconds) for run in item.every)


def _of_one(value: Callable[[ListedSession], float | None]) -> Callable[[Item], float | None]:
    """A study has no step time of its own."""
    return lambda item: None if item.entry is None else value(item.entry)


ORDERS = (
    Order("started", first_start, True),
    Order("elapsed", elapsed, True),
    Order("step time", _of_one(lambda entry: entry.step_median_seconds), False),
    Order("samples/s", _of_one(lambda entry: entry.samples_per_second), True),
    Order("MFU", _of_one(lambda entry: entry.mfu), True),
    Order("peak mem", _of_one(lambda entry: entry.peak_gpu_memory_bytes), True),
    Order("name", lambda item: item.title.casefold(), False),
    Order("status", lambda item: item.state[0], False),
)


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


def _without_run(study: ListedStudy) -> ListedSession:
    """What is known of the runs of a study that waits for its first one."""
    return ListedSession(
        path=study.path,
        study=study.study,
        status=study.waits,
        workload=", ".join(study.commands),
        environment=", ".join(study.environments),
    )


def arranged(listed: Listed, how: ListOptions) -> tuple[Item, ...]:
    """The rows: what goes on first, then studies and sessions that are alone, in the order asked
    for; below a study that is open its runs, in the plan's order unless another one was chosen."""
    studies = {study.path: study for study in listed.studies}
    grouped: dict[Path, list[ListedSession]] = {}
    every: dict[Path, list[ListedSession]] = {}
    items = []
    for entry in listed.sessions:
        study = studies.get(entry.path.parent)
        if study is not None:
            every.setdefault(study.path, []).append(entry)
        if how.query and not matches(how.query, entry, study):
            continue
        if study is None:
            items.append(Item(entry=entry))
        else:
            grouped.setdefault(study.path, []).append(entry)
    items += [
        Item(None, studies[path], tuple(runs), tuple(every[path]), opened=path in how.opened)
        for path, runs in grouped.items()
    ]
    items += [
        Item(None, study)
        for study in listed.studies
        if study.path not in every and matches(how.query, _without_run(study), study)
    ]
    items = sorted_items(items, how)
    found = []
    for item in sorted(items, key=lambda item: not item.goes_on):
        found.append(item)
        if item.entry is None and item.opened and item.runs:
            found += _below(item, how)
    return tuple(found)


def _below(item: Item, how: ListOptions) -> list[Item]:
    alike = len({run.ran for run in item.every}) == 1
    runs = [Item(entry=run, study=item.study, alike=alike) for run in item.runs]
    if how.order or how.reverse:
        runs = sorted_items(runs, how)
    else:
        runs.sort(key=lambda each: each.path.name)
    return [*runs[:-1], replace(runs[-1], last=True)]


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


def place(entry: ListedSession) -> str:
    """``b2 r5``: block 2, run 5 of all; ``w r1`` of the warm-up block; empty of no planned run."""
    if entry.run is None:
        return ""
    if entry.block is None:
        return f"r{entry.run}"
    return f"{'w' if entry.block == 0 else f'b{entry.block}'} r{entry.run}"


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
