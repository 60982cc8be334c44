"""Kernel profiles and counters from ``meta.profile`` and ``meta.counters``, read defensively.

A session may come from anywhere: values of the wrong type are dropped without an error. Tables use
the names and columns of nsys stats; ``docs/session-format.md`` lists them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice
from operator import attrgetter

from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping, number, sequence
from gpuwatch.core.text import shell

Cell = float | int | str | None

KERNELS = "cuda_gpu_kern_sum"
API = "cuda_api_sum"
MEMORY_TIME = "cuda_gpu_mem_time_sum"
MEMORY_SIZE = "cuda_gpu_mem_size_sum"
OPERATORS = "cpu_op_sum"

TABLES = {
    KERNELS: "kernels on the GPU, in total",
    API: "calls of the CUDA runtime and driver",
    MEMORY_TIME: "memory operations by time",
    MEMORY_SIZE: "memory operations by size",
    OPERATORS: "operators on the CPU, by self time",
}
"""The tables that gpuwatch writes, in display order, with their contents."""

FAMILIES = "kernel_families"
"""Name of the table of what kernels do, which is made of the first that there is."""
COUNTERS = "kernel_counters"
"""Name of the table of hardware counters per kernel, from any tool."""

_COUNTERS_COLUMNS = {
    "Total Time (ns)": "duration_ns",
    "Instances": "launches",
    "FLOP": "flop",
    "DRAM Read (bytes)": "dram_read_bytes",
    "DRAM Write (bytes)": "dram_write_bytes",
    "Name": "name",
}
_NUMERIC = re.compile(r"\((%|ns|us|ms|s|MB)\)$|^(Instances|Num Calls|Count|Calls|Invocations)$")
_MOST_TABLES = 50
_MOST_COLUMNS = 50
_MOST_ROWS = 10_000
_MOST_KERNELS = 10_000
_MOST_NOTES = 50
_LONGEST = 4096


@dataclass(frozen=True)
class Table:
    """A table of a profile: one cell per row and column, ``None`` is unknown."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    rows_left_out: int = 0

    def column(self, name: str) -> tuple[Cell, ...]:
        """The cells of one column; empty if there is no such column."""
        if name not in self.columns:
            return ()
        at = self.columns.index(name)
        return tuple(row[at] for row in self.rows)

    def numbers(self, name: str) -> tuple[float | None, ...]:
        """The same, with ``None`` for cells that are not numbers."""
        return tuple(map(number, self.column(name)))


@dataclass(frozen=True)
class Profile:
    """A profile of some steps after the timed window, or an imported one."""

    tool: str
    """``torch.profiler``; for an import ``nsys``, ``ncu`` or ``nvprof``."""
    version: str | None
    device: str | None
    """``cuda`` or ``cpu``."""
    steps: int | None
    """Number of profiled steps; ``None`` for an import."""
    step_seconds: float | None
    """Mean step time under the profiler, in seconds."""
    reason: str | None
    """Why there is no profile, or why a table is missing."""
    notes: tuple[str, ...]
    tables: Mapping[str, Table]
    time_source: str | None = None
    """How the kernels' times were derived; ``None``: the tool measured them."""

    @property
    def time_method(self) -> Method:
        """How the kernels' times are known."""
        return Method.COUNTED if self.time_source else Method.MEASURED

    def main_table(self) -> Table | None:
        """The kernels, else the CPU's operators, else the first table that has rows."""
        first = (self.tables.get(name) for name in (KERNELS, OPERATORS))
        return next((each for each in (*first, *self.tables.values()) if each and each.rows), None)


@dataclass(frozen=True)
class KernelCounters:
    """Counter totals of one kernel over all its launches."""

    name: str
    launches: int | None
    flop: float | None
    dram_read_bytes: float | None
    dram_write_bytes: float | None
    duration_ns: float | None


@dataclass(frozen=True)
class Counters:
    """Executed FLOP and DRAM traffic by hardware counters.

    For gpuwatch's own runs the figures are per step; for an import ``steps`` is ``None`` and they
    are totals (``flop``, ``dram_read_bytes``, ``dram_write_bytes``). ``None`` is unknown;
    ``reason`` or ``notes`` say why.
    """

    tool: str
    version: str | None
    steps: int | None
    flop_per_step: float | None
    dram_read_bytes_per_step: float | None
    dram_write_bytes_per_step: float | None
    flop: float | None
    dram_read_bytes: float | None
    dram_write_bytes: float | None
    kernels: tuple[KernelCounters, ...]
    launches: int | None
    reason: str | None
    notes: tuple[str, ...]
    time_source: str | None = None
    """How the times of ``kernels`` were derived; ``None``: the tool measured them."""

    @property
    def totals(self) -> tuple[float | None, float | None, float | None]:
        """Executed FLOP, DRAM bytes read and written, over :attr:`scope`."""
        if self.steps is None:
            return self.flop, self.dram_read_bytes, self.dram_write_bytes
        return self.flop_per_step, self.dram_read_bytes_per_step, self.dram_write_bytes_per_step

    @property
    def dram_bytes_per_step(self) -> float | None:
        """DRAM bytes read and written per step."""
        read, written = self.dram_read_bytes_per_step, self.dram_write_bytes_per_step
        return None if read is None or written is None else read + written

    @property
    def scope(self) -> str:
        """``per step``; of an import ``in 2 launches``."""
        if self.steps is not None:
            return "per step"
        if self.launches is None:
            return "in all launches"
        return f"in {units.counted(self.launches, 'launch', 'launches')}"


def profile_of(meta: Mapping[str, JSON]) -> Profile | None:
    """The profile in a session's ``meta``; ``None`` without an entry."""
    profile = mapping(meta.get("profile"))
    if not profile:
        return None
    named = islice(mapping(profile.get("tables")).items(), _MOST_TABLES)
    tables = [_table(str(name)[:_LONGEST], mapping(value)) for name, value in named]
    return Profile(
        tool=_text(profile.get("tool")) or "unknown tool",
        version=_text(profile.get("version")),
        device=_text(profile.get("device")),
        steps=_count(profile.get("steps")),
        step_seconds=_amount(profile.get("step_seconds")),
        reason=_text(profile.get("reason")),
        notes=_notes(profile.get("notes")),
        tables={table.name: table for table in tables if table is not None},
        time_source=_text(profile.get("time_source")),
    )


def counters_of(meta: Mapping[str, JSON]) -> Counters | None:
    """The counters in a session's ``meta``; ``None`` without an entry."""
    counters = mapping(meta.get("counters"))
    if not counters:
        return None
    kernels = map(_kernel, sequence(counters.get("kernels"))[:_MOST_KERNELS])
    return Counters(
        tool=_text(counters.get("tool")) or "unknown tool",
        version=_text(counters.get("version")),
        steps=_count(counters.get("steps")),
        **{
            f"{what}{of}": _amount(counters.get(f"{what}{of}"))
            for what in ("flop", "dram_read_bytes", "dram_write_bytes")
            for of in ("", "_per_step")
        },
        kernels=tuple(kernel for kernel in kernels if kernel is not None),
        launches=_count(counters.get("launches")),
        reason=_text(counters.get("reason")),
        notes=_notes(counters.get("notes")),
        time_source=_text(counters.get("time_source")),
    )


_LONGEST_COMMAND = 300
_NSYS = "with nsys: gpuwatch import FILE"


def why_none(meta: Mapping[str, JSON]) -> tuple[str, str | None]:
    """Why a session has no profile, and how to get one."""
    profile = profile_of(meta)
    if profile is not None and profile.reason:
        return f"the run was not profiled: {profile.reason}", None
    kind = mapping(meta.get("workload")).get("kind")
    if kind == "machine":
        return "a recording of the machine runs nothing to profile", "gpuwatch run WORKLOAD"
    if kind == "command":
        hook = mapping(meta.get("hook"))
        asked = was_asked_for(meta)
        if asked and "result" not in meta:
            return "the run is still going; its steps are not profiled yet", None
        if asked or hook.get("text"):  # it would be so again
            why = _text(hook.get("text")) or "its steps are those that it prints, not the hook's"
            return f"the run was not profiled: {why}", _NSYS
        return (
            "not profiled: --profile records the kernels of your own program, if it uses torch",
            f"{_profiled_again(meta)}; {_NSYS}",
        )
    if kind == "import":
        return (
            "the imported profile has no kernel table",
            "import the output of `nsys stats --report cuda_gpu_kern_sum --format csv FILE`",
        )
    if mapping(mapping(meta.get("workload")).get("parameters")).get("profile") == 0:
        return "the run was asked not to profile (--profile 0)", "run it without --profile 0"
    if "result" not in meta:
        return "the run is still going; its profile follows the timed steps", None
    if "end" not in meta:
        return (
            "the run ended before its last timed step, so it was not profiled",
            "record it again to its end, with fewer --steps",
        )
    return "the run has no profile", "record it again: runs are profiled after their timed steps"


def _profiled_again(meta: Mapping[str, JSON]) -> str:
    if mapping(meta.get("environment")).get("kind", "bare") != "bare":
        return "run it again with --profile 4"
    words = [str(each) for each in sequence(mapping(meta.get("workload")).get("arguments"))]
    command = " ".join(map(shell, words))
    known = 0 < len(command) <= _LONGEST_COMMAND
    return " ".join(["gpuwatch run --profile 4 --", command if known else "COMMAND"])


def was_asked_for(meta: Mapping[str, JSON]) -> bool:
    """Whether the kernels of a command were."""
    options = sequence(mapping(meta.get("hook")).get("options"))
    return any(str(each).startswith("profile=") for each in options)


def how_to_see(meta: Mapping[str, JSON]) -> str | None:
    """How to see the kernels of a run; ``None`` if a run like it would have none either."""
    if mapping(meta.get("profile")).get("tables"):
        return "`gpuwatch kernels SESSION` shows its kernels"
    own = mapping(meta.get("workload")).get("kind") == "command"
    if not own or meta.get("profile") or mapping(meta.get("hook")).get("text"):
        return None
    again = _profiled_again(meta)
    return f"`{again}` records its kernels" if again.startswith("gpuwatch") else again


def counters_table(counters: Counters) -> Table:
    """The counters as a table, one row per kernel in the recorded order."""
    cells = attrgetter(*_COUNTERS_COLUMNS.values())
    return Table(COUNTERS, tuple(_COUNTERS_COLUMNS), tuple(map(cells, counters.kernels)))


def _table(name: str, value: Mapping[str, JSON]) -> Table | None:
    listed = sequence(value.get("columns"))
    if not listed or len(listed) > _MOST_COLUMNS:
        return None
    columns = tuple(_text(column) or "" for column in listed)
    numeric = [bool(_NUMERIC.search(column)) for column in columns]
    rows = tuple(
        tuple(map(_cell, row, numeric))
        for row in sequence(value.get("rows"))[:_MOST_ROWS]
        if isinstance(row, list) and len(row) == len(columns)
    )
    return Table(name, columns, rows, _count(value.get("rows_left_out")) or 0)


def _cell(value: JSON, numeric: bool) -> Cell:
    known = number(value)
    return known if known is not None or numeric else _text(value)


def _kernel(value: JSON) -> KernelCounters | None:
    kernel = mapping(value)
    name = _text(kernel.get("name"))
    if name is None:
        return None
    return KernelCounters(
        name,
        _count(kernel.get("launches")),
        *(
            _amount(kernel.get(key))
            for key in ("flop", "dram_read_bytes", "dram_write_bytes", "duration_ns")
        ),
    )


def _notes(value: JSON) -> tuple[str, ...]:
    texts = (_text(note) for note in sequence(value)[:_MOST_NOTES])
    return tuple(text for text in texts if text)


def _text(value: JSON) -> str | None:
    return value[:_LONGEST] if isinstance(value, str) else None


def _amount(value: JSON) -> float | None:
    known = number(value)
    return known if known is not None and known >= 0 else None


def _count(value: JSON) -> int | None:
    known = _amount(value)
    return int(known) if known is not None and known == int(known) else None


TITLES = {
    FAMILIES: "what the kernels do, by their names; shares of all their time",
    **TABLES,
    COUNTERS: "kernels by hardware counters",
}


def title(table: Table) -> str:
    """Name and contents: ``cuda_gpu_kern_sum: kernels on the GPU, in total``."""
    what = TITLES.get(table.name)
    return f"{table.name}: {what}" if what else table.name


def tool_name(made: Profile | Counters) -> str:
    """The tool and its version."""
    return " ".join(filter(None, (made.tool, made.version)))


def source(profile: Profile) -> str:
    """``4 steps of 21.0 ms under torch.profiler 2.6.0 on the GPU, apart from the timed steps``."""
    if profile.steps is None:
        times = f"; {derived_times(profile.time_source)}" if profile.time_source else ""
        return f"profile by {tool_name(profile)}, imported{times}"
    steps = units.counted(profile.steps, "step")
    duration = f" of {units.milliseconds(profile.step_seconds)}" if profile.step_seconds else ""
    device = {"cuda": " on the GPU", "cpu": " on the CPU"}.get(profile.device or "", "")
    return f"{steps}{duration} under {tool_name(profile)}{device}, apart from the timed steps"


def derived_times(time_source: str) -> str:
    """``kernel times counted, derived from ...``."""
    return f"kernel times {Method.COUNTED.value}, {time_source}"
