"""The table of processes as rows of text."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from rich.cells import cell_len

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean, cut
from gpuwatch.core.units import NS, UNKNOWN, binary, clock_time, percent
from gpuwatch.tui.feed.processes import ProcessNow, may_be_truncated, shown_command
from gpuwatch.tui.widgets.line import Line, pad


@dataclass(frozen=True)
class Order:
    name: str
    key: Callable[[ProcessNow], float | str | None] | None
    """What it sorts by; ``None``: it stays in the order of a snapshot."""
    falling: bool = True
    """Whether the largest comes first."""

    @property
    def title(self) -> str:
        """``by CPU ↓``."""
        return f"by {self.name} {'↓' if self.falling else '↑'}"


ORDERS = (
    Order("GPU memory", None),
    Order("GPU %", lambda process: process.gpu_share),
    Order("memory busy", lambda process: process.memory_share),
    Order("CPU", lambda process: process.cores),
    Order("memory", lambda process: process.resident),
    Order("age", lambda process: _seconds(process)),
    Order("GPU", lambda process: _gpus(process) or None, falling=False),
    Order("user", lambda process: process.user, falling=False),
    Order("PID", lambda process: process.pid, falling=False),
)

_BY_CPU = ORDERS[3]
ORDER_TEXT = "sort by GPU memory, GPU %, memory busy, CPU, memory, age, GPU, user, PID in turn"
"""What the key for it does."""


def order_title(processes: Sequence[ProcessNow], order: int) -> str:
    """What ``processes`` are sorted by; see :func:`in_order`."""
    if order or any(process.gpus for process in processes):
        return ORDERS[order].title
    return _BY_CPU.title if any(process.cores for process in processes) else "by memory ↓"


def in_order(processes: Sequence[ProcessNow], order: int) -> list[ProcessNow]:
    """Sorted by ``ORDERS[order]``, where none is on a GPU first by CPU; of a run that is over in
    the order of the snapshot, by memory. Unknown values come last."""
    by_cpu = order_title(processes, order) == _BY_CPU.title
    key = _BY_CPU.key if by_cpu else ORDERS[order].key
    if key is None:
        return list(processes)
    known = [process for process in processes if key(process) is not None]
    unknown = [process for process in processes if key(process) is None]
    return sorted(known, key=key, reverse=by_cpu or ORDERS[order].falling) + unknown  # type: ignore[arg-type]


def next_order(processes: Sequence[ProcessNow], order: int) -> int:
    """The order after ``order`` in turn that anything is known for."""
    following = (order + 1) % len(ORDERS)
    key = ORDERS[following].key
    if key is None or any(key(process) is not None for process in processes):
        return following
    return next_order(processes, following)


_LEAST_USER, _MOST_USER = 8, 60
"""Columns that a user is given, if its text is that long."""
_MARK = 5
"""Columns before the first one of the table."""
_SPACIOUS = 100
"""From so many columns on units are whole, and ages are told."""
_OF_GPUS = 20
"""Columns that others have where none is of a GPU."""
_MOST_REASONS = 6
_INTERPRETER = re.compile(
    r"^(?:env (?:-[uC] \S+ |-\S+ |\w+=\S* |'\w+=[^']*' )*)?"
    r"(?:(?:\S*/)?(?:python|pypy|ruby|perl|node|bash|sh)[\d.]* "
    r"(?:-(?:\w*[WXor] \S+|(?!\w*[WXorc] |e ')\S+) )*(?=[^-]))?"
)
"""With its options, some of which have a word behind them, but for code; and ``env`` before it."""
_CODE = re.compile(r" -[a-z]{0,2}c ")


@dataclass(frozen=True)
class _Column:
    title: str
    width: int
    from_width: int
    """The narrowest screen that it stands on."""
    text: Callable[[ProcessNow], str]
    role: str = "text"


def process_rows(
    processes: Sequence[ProcessNow], width: int, most: int, *, selected: str | None = None
) -> list[Line]:
    """A row of column names and at most ``most`` rows, in the order of ``processes``.

    ``selected``: only the processes on that GPU, with what they have of it, and those on none. The
    last row says how many more there are where not all fit. Empty where there is no process or
    ``most`` is below 1.
    """
    shown = list(processes)
    if selected is not None:
        shown = [
            replace(each, gpus=tuple(on for on in each.gpus if on.device == selected))
            for each in processes
            if not each.gpus or selected in [on.device for on in each.gpus]
        ]
    if not shown or most < 1:
        return []
    fitting = len(shown) if len(shown) <= most else most - 1
    rows = table_rows(shown, width, 0, fitting)
    if fitting < len(shown):
        least = "at least " * may_be_truncated(processes)
        more = f"{least}{len(shown) - fitting}"
        rows.append(Line(width).add(f"     {more} more, press ", "muted").add("p", "key"))
    return rows


def table_rows(
    processes: Sequence[ProcessNow],
    width: int,
    first: int,
    most: int,
    branches: Sequence[str] = (),
    marked: Collection[tuple[int, int | None]] = (),
) -> list[Line]:
    """A row of column names, and at most ``most`` rows from ``first`` on.

    The columns are those that all of ``processes`` need: they stay while the rows scroll.
    ``branches``: what stands before each command, in a tree. ``marked``: PIDs and starts of those
    that someone marked.
    """
    columns = _columns(processes, width)
    heading = Line(width).add("     ", "muted")
    for column in columns:
        heading.add(_cell(column.title, column.width), "muted").add(" ")
    rows = [heading.add(" command", "muted")]
    for at in range(first, min(len(processes), first + most)):
        process = processes[at]
        mark = (" run ", "good") if process.owned else ("  ·  ", "muted")
        if (process.pid, process.start) in marked:
            mark = " ✓   ", "key"
        elif not process.running:
            mark = " end ", "muted"
        rows.append(_row(process, mark, columns, width, branches[at] if branches else ""))
    return rows


def unknown_rows(processes: Sequence[ProcessNow]) -> list[str]:
    """Why something in the table is a dash: each reason once, with the processes it holds for."""
    whose: dict[str, list[int]] = {}
    for process in processes:
        for reason in dict.fromkeys((process.reason, *(on.reason for on in process.gpus))):
            if reason:
                whose.setdefault(clean(reason), []).append(process.pid)
    return [
        f"{first}{f' and {len(more)} more' if more else ''}: {reason}"
        for reason, (first, *more) in whose.items()
    ][:_MOST_REASONS]


def _columns(processes: Sequence[ProcessNow], width: int) -> list[_Column]:
    tight = width < _SPACIOUS

    def gpu_memory(process: ProcessNow) -> str:
        return _size(process.gpu_bytes, tight) if process.gpus else ""

    size = 7 if tight else 8
    columns = [
        _Column("GPU", -4, 0, _gpus, "strong"),
        _Column("PID", 7, 0, lambda each: str(each.pid)),
        _Column("user", 0, 0, _user),
        _Column("GPU mem", size, 0, gpu_memory, "strong"),
        _Column("GPU %", 6, 0, lambda each: _on_gpu(each, each.gpu_share)),
        _Column("mem busy", 8, 90, lambda each: _on_gpu(each, each.memory_share)),
        _Column("CPU %", 6, 70, _cpu),
        _Column("memory", size, 76, lambda each: _size(each.resident, tight)),
        _Column("age", 9, _SPACIOUS, _age),
    ]
    empty = {"GPU", "GPU mem", "GPU %", "mem busy"} if not any(map(_gpus, processes)) else set()
    if all(each.memory_share is None for each in processes):
        empty.add("mem busy")
    offered = width + (_OF_GPUS if "GPU" in empty else 0)
    shown = [each for each in columns if offered >= each.from_width and each.title not in empty]
    room = width - _MARK - sum(abs(column.width) + 1 for column in shown) - 1
    # Of the columns that user and command share: a third, or what the commands leave.
    longest = max(len("user"), *(cell_len(_user(each)) for each in processes))
    command = max(cell_len(shown_command(each)[:room]) for each in processes)
    user = min(longest, _MOST_USER, max(_LEAST_USER, room // 3, room - command))
    return [replace(column, width=-user) if column.text is _user else column for column in shown]


def _row(
    process: ProcessNow, mark: tuple[str, str], columns: Sequence[_Column], width: int, branch: str
) -> Line:
    row = Line(width).add(*mark)
    for column in columns:
        text = column.text(process)
        role = "muted" if text == UNKNOWN else column.role
        row.add(_cell(text, column.width), role).add(" ")
    said = shown_command(process)
    role = "text" if said and process.running else "muted"
    row.add(f" {branch}", "faint")
    return row.add(_fitting(said or UNKNOWN, row.left), role)


def _fitting(command: str, room: int) -> str:
    """One that is too long without interpreter and folder, then without its middle: the program's
    name and the last words tell jobs apart. Of code the beginning does."""
    named = command if len(command) <= room else _INTERPRETER.sub("", command)
    if len(command) <= room or _CODE.search(named[:room]):
        return named[: room + 1]
    program, blank, arguments = named.partition(" ")
    program = program.rpartition("/")[2] or program
    behind = room - len(program) - len(" …")
    return cut(f"{program}{blank}{arguments}", room, behind=max(0, behind))


def _cell(text: str, width: int) -> str:
    return pad(text, abs(width), "<" if width < 0 else ">")


def _gpus(process: ProcessNow) -> str:
    return ",".join(clean(each.device).removeprefix("gpu") for each in process.gpus)


def _user(process: ProcessNow) -> str:
    """User, and container or job; of the run's own alone its environment where that is all."""
    place = None if process.owned and process.user else process.place
    told = [clean(each) for each in (process.user, place) if each]
    return ", ".join(told) or UNKNOWN


def _size(value: int | None, tight: bool) -> str:
    """``12.3 GiB``, or ``12.3G`` where there is little room."""
    text = binary(value)
    return text.replace(" ", "").replace("iB", "") if tight else text


def _on_gpu(process: ProcessNow, share: float | None) -> str:
    return percent(share) if process.gpus else ""


def _seconds(process: ProcessNow) -> float | None:
    """Its age."""
    return None if process.started is None else (process.t - process.started) / NS


def _age(process: ProcessNow) -> str:
    age = _seconds(process)
    return UNKNOWN if age is None else clock_time(age)


def _cpu(process: ProcessNow) -> str:
    """In percent of one core, as top writes it."""
    return percent(process.cores, whole=True).removesuffix(" %")
