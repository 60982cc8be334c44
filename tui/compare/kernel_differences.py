"""The page of kernel differences between two runs; a thread reads their profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from textual.binding import Binding, BindingType

from gpuwatch.analysis.hardware.kernels import short_names
from gpuwatch.analysis.hardware.profile import (
    API,
    KERNELS,
    MEMORY_TIME,
    OPERATORS,
    TABLES,
    Profile,
    Table,
    profile_of,
    source,
    why_none,
)
from gpuwatch.core.aggregate import grouped, total_of
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean
from gpuwatch.core.units import UNKNOWN, milliseconds
from gpuwatch.session.reading.reader import read_meta
from gpuwatch.tui.feed.posting import Post, read_in_thread
from gpuwatch.tui.feed.snapshot import Trouble
from gpuwatch.tui.widgets.head_rows import trouble_rows
from gpuwatch.tui.widgets.line import pad
from gpuwatch.tui.widgets.page import PageScreen, Row, wrapped

_TIME = "Total Time (ns)"
_NAMES = ("Name", "Operation")
_COUNTS = ("Instances", "Num Calls", "Count", "Calls", "Invocations")
_MOST = 200
"""Most rows of one table."""
_SIDE, _CHANGE, _COUNT = 10, 13, 13
_WIDE = 110
"""Least width of a screen with relative changes."""


@dataclass(frozen=True)
class Pair:
    """Two runs whose profiles are compared, the baseline first."""

    labels: tuple[str, str]
    paths: tuple[Path, Path]
    sentences: tuple[str, ...] = ()
    """Evidence about kernels from the explanation of the change."""


@dataclass(frozen=True)
class Side:
    """One run's profile, or why there is none."""

    label: str
    profile: Profile | None
    why_none: tuple[str, str | None]
    """Why there is no profile, and the hint for getting one."""


class KernelDifferencesScreen(PageScreen):
    """Shows the kernels of two runs, with the time and launches in each."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("k", "close", "back", show=False),
        Binding("right", "pair(1)", "next pair", tooltip="another one against its baseline"),
        Binding("left", "pair(-1)", "pair before", show=False),
    ]

    def __init__(self, pairs: Sequence[Pair]) -> None:
        super().__init__("compare: kernels", self._page_rows)
        self._pairs = list(pairs)
        self._pair = 0
        self._sides: dict[Path, Side] | None = None
        self._trouble: Trouble | None = None

    def on_mount(self) -> None:
        read_in_thread("kernel-pairs", self, self._look, self._failed)

    def _look(self, post: Post) -> None:
        """In the thread: read the profile of each run."""
        sides = {}
        for path in dict.fromkeys(path for pair in self._pairs for path in pair.paths):
            try:
                meta = read_meta(path)
                sides[path] = Side("", profile_of(meta), why_none(meta))
            except GpuwatchError as error:
                sides[path] = Side("", None, (error.message, error.hint))
        post(self._take, sides)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return action != "pair" or len(self._pairs) > 1

    def _take(self, sides: dict[Path, Side]) -> None:
        self._sides = sides
        self.paint()

    def _failed(self, trouble: Trouble) -> None:
        self._trouble = trouble
        self.paint()

    def _page_rows(self, width: int) -> Sequence[Row]:
        if not self._pairs:
            text = " nothing here is compared; the kernels of a run are on K of its replay"
            return [((text, "text"),)]
        if self._trouble is not None:
            return [tuple(line.spans()) for line in trouble_rows(self._trouble, width)]
        if self._sides is None:
            return [((" reading the profiles …", "muted"),)]
        pair = self._pairs[self._pair]
        first, second = (
            replace(self._sides[path], label=label)
            for label, path in zip(pair.labels, pair.paths, strict=True)
        )
        rows = kernel_difference_rows((first, second), pair.sentences, width)
        if len(self._pairs) > 1:
            place = f"   {self._pair + 1} of {len(self._pairs)}, "
            rows[0] = (*rows[0], (place, "muted"), ("←→", "key"), (" for the others", "muted"))
        return rows

    def action_pair(self, by: int) -> None:
        if self._pairs:
            self._pair = (self._pair + by) % len(self._pairs)
        self.action_scroll_by(-1_000_000)


@dataclass(frozen=True)
class _Spent:
    """Time and launches of one kernel in one run; per step if both numbers of steps are known."""

    seconds: float | None
    launches: float | None


Sides = tuple[Side, Side]


def kernel_difference_rows(sides: Sides, sentences: Sequence[str], width: int) -> list[Row]:
    """The second of ``sides`` against the first; ``sentences`` come before the tables."""
    first, second = sides
    rows: list[Row] = [((f" {clean(second.label)} against {clean(first.label)}", "strong"),)]
    for text in sentences:
        rows += wrapped(text, width, mark="·", role="text")
    lacking: dict[str, list[Side]] = {}
    for side in sides:
        if side.profile is not None and _has(side):
            rows += wrapped(f"{clean(side.label)}: {source(side.profile)}", width)
        else:
            lacking.setdefault(side.why_none[0], []).append(side)
    for why, alike in lacking.items():
        labels = " and ".join(clean(side.label) for side in alike)
        rows += wrapped(f"{labels}: {why}", width, mark="!", role="text")
        for hint in dict.fromkeys(side.why_none[1] for side in alike):
            rows += wrapped(hint, width, mark="→", role="text") if hint else []
    per_step = all(side.profile is not None and side.profile.steps for side in sides if _has(side))
    for name in (KERNELS, MEMORY_TIME, API, OPERATORS):  # the GPU's first
        if any(_table_of(side, name) for side in sides):
            rows += [(("", "text"),), *_table(name, sides, width, per_step=per_step)]
    return rows


def _has(side: Side) -> bool:
    return side.profile is not None and any(table.rows for table in side.profile.tables.values())


def _table_of(side: Side, name: str) -> Table | None:
    table = None if side.profile is None else side.profile.tables.get(name)
    return table if table is not None and table.rows else None


def _table(name: str, sides: Sides, width: int, *, per_step: bool) -> list[Row]:
    tables = [_table_of(side, name) for side in sides]
    spent = [_spent(table, side, per_step) for table, side in zip(tables, sides, strict=True)]
    over = "per step" if per_step else "over all of each profile"
    rows: list[Row] = [((f" {TABLES[name]}, {over}", "strong"),)]
    head = "".join(pad(clean(side.label), _SIDE - 1, ">").rjust(_SIDE) for side in sides)
    change = pad("change", _CHANGE + (9 if width >= _WIDE else 0), ">")
    rows.append(((f"{head}{change}{'launches':>{_COUNT}}  name", "muted"),))
    # What a complete table lacks did not run.
    whole = [table is not None and not table.rows_left_out for table in tables]
    totals = [_sum([*side.values()]) if side else None for side in spent]
    rows.append(_row("all of them", totals, width, whole=whole))
    names = sorted(dict.fromkeys([*spent[0], *spent[1]]), key=lambda name: _size(spent, name))
    room = max(16, width - 2 * _SIDE - _CHANGE - 9 * (width >= _WIDE) - _COUNT - 3)
    short = short_names([clean(name) for name in names[:_MOST]], room)
    rows += [
        _row(shown, [side.get(name) for side in spent], width, whole=whole)
        for name, shown in zip(names, short, strict=False)
    ]
    if len(names) > _MOST:
        rows.append(((f"   and {len(names) - _MOST:,} more with less time", "muted"),))
    for side, table in zip(sides, tables, strict=True):
        if table is not None and table.rows_left_out:
            text = f"{clean(side.label)}: {table.rows_left_out:,} more were not kept"
            rows += wrapped(text, width, mark="!")
    return rows


def _spent(table: Table | None, side: Side, per_step: bool) -> dict[str, _Spent]:
    """Time and launches by name; rows of the same name are added up."""
    if table is None or side.profile is None:
        return {}
    steps = (side.profile.steps or 1) if per_step else 1
    names = next((table.column(each) for each in _NAMES if each in table.columns), ())
    times = table.numbers(_TIME)
    counts = next((table.numbers(each) for each in _COUNTS if each in table.columns), ())
    if not names:
        return {}
    unknown = (None,) * len(names)
    seconds = [None if time is None else time / 1e9 / steps for time in times or unknown]
    launches = [None if count is None else count / steps for count in counts or unknown]
    rows = grouped(zip(map(str, names), map(_Spent, seconds, launches), strict=True))
    return {name: _sum(of) for name, of in rows.items()}


def _sum(rows: Sequence[_Spent]) -> _Spent:
    """Unknown where it is of any row."""
    seconds, launches = [row.seconds for row in rows], [row.launches for row in rows]
    return _Spent(total_of(seconds), total_of(launches))


def _size(spent: Sequence[dict[str, _Spent]], name: str) -> tuple[float, float]:
    """The key of the order: most time first, without times most launches."""
    known = [side[name] for side in spent if name in side]
    return (
        -max(each.seconds or 0.0 for each in known),
        -max(each.launches or 0.0 for each in known),
    )


def _row(name: str, spent: Sequence[_Spent | None], width: int, *, whole: Sequence[bool]) -> Row:
    first, second = spent
    seconds = [None if side is None else side.seconds for side in spent]
    figures = "".join(f"{milliseconds(value):>{_SIDE}}" for value in seconds)
    share, role = "", "text"
    before, after = seconds
    if first is None or second is None:
        alone = whole[0 if first is None else 1]
        change = ("◂ only" if second is None else "only ▸") if alone else UNKNOWN
        role = "warn" if alone else "muted"
    elif before is None or after is None:
        change = UNKNOWN
    else:
        apart = after - before
        change = f"{'+' if apart > 0 else '-'}{milliseconds(abs(apart))}"
        change = "0" if abs(apart) < 5e-9 else change
        share = f"{100 * (after / before - 1):+.1f} %" if before else ""
        role = "strong"
    counts = [
        side.launches if side is not None else 0.0 if ran_whole else None
        for side, ran_whole in zip(spent, whole, strict=True)
    ]
    texts = [UNKNOWN if count is None else f"{count:,.4g}" for count in counts]
    launches = " to ".join(dict.fromkeys(texts))
    shares = f"{share:>9}" if width >= _WIDE else ""
    return (
        (figures, "text"),
        (f"{change:>{_CHANGE}}{shares}", role),
        (f"{launches:>{_COUNT}}", "text"),
        (f"  {name}", "strong"),
    )
