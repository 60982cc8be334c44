"""Merges several files of one run into a session's ``profile`` and ``counters``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

from gpuwatch.core import units
from gpuwatch.core.aggregate import grouped, total_of
from gpuwatch.core.errors import UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON
from gpuwatch.core.text import listed
from gpuwatch.profiles import base
from gpuwatch.profiles.files import Profile

MOST_ROWS = 200
"""Maximum stored rows per table; ``rows_left_out`` counts the others."""

MOST_KERNELS = 60
"""Maximum stored kernels in ``counters``."""

LONGEST_NAME = 2000
"""Maximum stored length of a kernel's name, in characters."""

_MOST_NAMES = 3
"""Maximum kernels that a note names."""

_BY_ITSELF = "import each run by itself: gpuwatch import FILE"
_NOTHING_KNOWN = "the files hold no FLOP and no DRAM bytes of all kernels"
_TOTALS = ("flop", "dram_read_bytes", "dram_write_bytes")
_OF = {
    "sp": "single precision",
    "dp": "double precision",
    "hp": "half precision",
    "tensor": "tensor pipes",
}


@dataclass(frozen=True)
class Imported:
    """The content of a session of these files."""

    device: str | None
    capability: str | None
    command: str | None
    profile: JSON
    """The session's ``meta.profile``."""
    counters: JSON
    """The session's ``meta.counters``; ``None`` without counts."""


def merge(profiles: Sequence[Profile], device_name: str | None = None) -> Imported:
    """Merge all files as one run. ``device_name`` is the GPU if no file names it.

    Raises:
        UsageError: the files contradict each other, so they are from different runs.
    """
    for one, other in combinations(profiles, 2):
        if one.sha256 == other.sha256:
            raise UsageError(f"{one.name} and {other.name} are the same file", "give it once")
    device = _only("GPUs", [(p.name, name) for p in profiles for name in p.report.devices])
    if device and device_name and device != device_name:
        raise UsageError(
            f"the profile is of a {device}, not of a {device_name}", "leave --device-name out"
        )
    capability = _only("compute capabilities", [(p.name, p.report.capability) for p in profiles])
    notes = [f"{p.name}: {note}" for p in profiles for note in p.report.notes]
    profile = {**_profile(profiles, notes), "notes": notes}
    counters = _counters(profiles, _launches(profiles))
    return Imported(
        device or device_name,
        capability,
        next((p.report.command for p in profiles if p.report.command), None),
        profile,
        counters,
    )


def _only(what: str, candidates: Sequence[tuple[str, str | None]]) -> str | None:
    """The one value that all files agree on; ``None`` if no file has it."""
    values = {value: name for name, value in candidates if value}
    if len(values) > 1:
        (one, first), (other, second) = list(values.items())[:2]
        where = first if first == second else f"{first} and {second}"
        raise UsageError(f"{where}: different {what}, {one} and {other}", _BY_ITSELF)
    return next(iter(values), None)


def _profile(profiles: Sequence[Profile], notes: list[str]) -> dict[str, JSON]:
    """The tables of all files. Another tool's times take precedence over ncu's."""
    timed = [p for p in profiles if p.report.tables and p.report.tool != "ncu"]
    if timed and any(p.report.tool == "ncu" for p in profiles):
        notes.append("times are not those of ncu: it runs each kernel by itself, at a fixed clock")
    chosen = timed or [p for p in profiles if p.report.tables] or list(profiles)
    _one_tool(chosen, "times")
    tables: dict[str, tuple[Profile, tuple[base.Entry, ...]]] = {}
    for p in chosen:
        for name, rows in p.report.tables.items():
            if name in tables:
                first = tables[name][0].name
                raise UsageError(f"{first} and {p.name} both hold {name}", _BY_ITSELF)
            tables[name] = p, rows
    written = {name: _table(name, rows, p.report.unread) for name, (p, rows) in tables.items()}
    source = None
    if not tables:
        kernels = _by_name(chosen)
        entries = [_derived(kernel) for kernel in kernels]
        unread = sum(p.report.unread for p in chosen)
        written[base.KERNELS] = _table(base.KERNELS, entries, unread)
        if any(entry.total is not None for entry in entries):
            source = base.DERIVED
            notes += _without_time(kernels)
        else:
            notes.append("no file holds times: of the kernels only their launches are known")
    return {
        "tool": chosen[0].report.tool,
        "version": next((p.report.version for p in chosen if p.report.version), None),
        "device": "cuda",
        "steps": None,
        "step_seconds": None,
        "reason": None,
        "time_source": source,
        "tables": dict(sorted(written.items())),
    }


def _by_name(profiles: Sequence[Profile]) -> list[base.Kernel]:
    """The kernels of all files; of one that several have, the first with a derived time."""
    kernels: dict[str, base.Kernel] = {}
    for kernel in (kernel for p in profiles for kernel in p.report.kernels):
        known = kernels.setdefault(kernel.name, kernel)
        if "derived" not in known.parts and "derived" in kernel.parts:
            kernels[kernel.name] = kernel
    return list(kernels.values())


def _derived(kernel: base.Kernel) -> base.Entry:
    """A kernel's launches, and its time if that can be derived."""
    total = kernel.parts.get("derived")
    average = total / kernel.launches if total is not None and kernel.launches else None
    return base.Entry(kernel.name, kernel.launches, total, average)


def _without_time(kernels: Sequence[base.Kernel]) -> list[str]:
    """A note for each reason why kernels have no derived time."""
    names = grouped(
        (kernel.why_no_time or "not counted", kernel.name[:60])
        for kernel in kernels
        if kernel.parts.get("derived") is None
    )
    return [f"no time, as {why}: {listed(without, _MOST_NAMES)}" for why, without in names.items()]


def _one_tool(profiles: Sequence[Profile], what: str) -> None:
    tools = {p.report.tool: p.name for p in profiles}
    if len(tools) > 1:
        (one, first), (other, second) = list(tools.items())[:2]
        raise UsageError(f"{what} of two tools: {first} ({one}) and {second} ({other})", _BY_ITSELF)


def _table(name: str, entries: Sequence[base.Entry], unread: int) -> dict[str, JSON]:
    """A table with the columns of ``nsys stats``; percentages refer to this table's own total.

    They are unknown if some of its rows are ``unread``.
    """
    ordered = sorted(entries, key=lambda row: (-(row.total or 0), -(row.count or 0), row.name))
    overall = None if unread else total_of([row.total for row in ordered])
    unit = "MB" if name == base.COPY_SIZE else "ns"
    statistics = [f"{each} ({unit})" for each in ("Avg", "Med", "Min", "Max", "StdDev")]
    head = ["Total (MB)"] if name == base.COPY_SIZE else ["Time (%)", "Total Time (ns)"]
    rows: list[list[JSON]] = []
    for row in ordered[:MOST_ROWS]:
        share = 100 * row.total / overall if overall and row.total is not None else None
        first: list[JSON] = [row.total] if name == base.COPY_SIZE else [share, row.total]
        values = [row.average, row.median, row.minimum, row.maximum, row.deviation]
        rows.append([*first, row.count, *values, row.name[:LONGEST_NAME]])
    return {
        "columns": [*head, base.COUNT_COLUMN[name], *statistics, base.NAME_COLUMN[name]],
        "rows": rows,
        "rows_left_out": max(0, len(ordered) - MOST_ROWS) + unread,
    }


def _launches(profiles: Sequence[Profile]) -> int | None:
    """Launches of all kernels in the largest whole summary of times; ``None`` if there is none."""
    whole = [p.report.tables for p in profiles if not p.report.unread]
    tables = [each[base.KERNELS] for each in whole if base.KERNELS in each]
    known = [[row.count for row in rows if row.count is not None] for rows in tables]
    return max((sum(counts) for counts in known), default=None)


def _counters(profiles: Sequence[Profile], ran: int | None) -> JSON:
    """FLOP and DRAM bytes of all kernels; an incomplete total is omitted.

    ``ran`` is the number of launches according to a summary of times, if there is one.
    """
    counting = [p for p in profiles if p.report.kernels]
    if not counting:
        return None
    _one_tool(counting, "counters")
    tool = counting[0].report.tool
    own_notes: list[str] = []
    kernels = _joined(counting, own_notes)
    derived = not any(base.KERNELS in p.report.tables for p in profiles) and any(
        kernel.parts.get("derived") is not None for kernel in kernels
    )
    timed = [p for p in profiles if p.report.tool == tool]
    kernels = [_with_duration(kernel, timed) for kernel in kernels]
    kernels = [_from_rates(kernel, own_notes) for kernel in kernels]
    counted = [part for part in _OF if any(part in kernel.parts for kernel in kernels)]
    if counted and len(counted) < len(_OF):
        missing = ", ".join(_OF[part] for part in _OF if part not in counted)
        own_notes.append(f"operations that were not counted: {missing}")
    rows: list[dict[str, JSON]] = [
        {
            "name": kernel.name[:LONGEST_NAME],
            "launches": kernel.launches,
            "flop": total_of([kernel.parts.get(part) for part in counted]),
            "dram_read_bytes": kernel.parts.get("read"),
            "dram_write_bytes": kernel.parts.get("write"),
            "duration_ns": kernel.parts.get("derived" if derived else "duration"),
        }
        for kernel in kernels
    ]
    launches = sum(kernel.launches for kernel in kernels)
    if ran is not None and launches > ran:
        own_notes.append(
            f"{units.counted(launches, 'launch', 'launches')} counted, {ran} timed: the files are "
            "of different runs"
        )
    unread = sum(p.report.unread for p in counting)
    totals = {key: _whole(key, [row[key] for row in rows], own_notes) for key in _TOTALS}
    rows.sort(key=lambda row: (-(row["flop"] or 0), -(row["dram_read_bytes"] or 0), row["name"]))
    if len(rows) > MOST_KERNELS:
        own_notes.append(
            units.counted(len(rows) - MOST_KERNELS, "kernel is", "kernels are")
            + " in the totals, but not in the list"
        )
    why = _incomplete(launches, ran, unread)
    if why is not None:
        read, written = totals["dram_read_bytes"], totals["dram_write_bytes"]
        own_notes.insert(
            0,
            f"{why}, so no total is known; the known part: "
            f"{units.si(totals['flop'], 'FLOP')}, DRAM {units.si(read, 'B')} read, "
            f"{units.si(written, 'B')} written",
        )
        totals = dict.fromkeys(_TOTALS)
    known = any(value is not None for value in totals.values())
    return {
        "tool": tool,
        "version": None,
        "steps": None,
        "flop_per_step": None,
        "dram_read_bytes_per_step": None,
        "dram_write_bytes_per_step": None,
        **totals,
        "kernels": rows[:MOST_KERNELS],
        "time_source": base.DERIVED if derived else None,
        "launches": None if unread else launches,
        "reason": None if known or why else _NOTHING_KNOWN,
        "notes": own_notes,
    }


def _incomplete(launches: int, ran: int | None, unread: int) -> str | None:
    """Why the counters are not of all launches; ``None`` if they are, as far as is known."""
    if unread:
        return f"{units.counted(unread, 'row')} of the counters could not be read"
    if ran is not None and launches < ran:
        return f"the counters are of {launches:,} of {units.counted(ran, 'launch', 'launches')}"
    return None


def _joined(profiles: Sequence[Profile], notes: list[str]) -> list[base.Kernel]:
    """The kernels of all files by name. Each part comes from one file."""
    joined: dict[str, base.Kernel] = {}
    for p in profiles:
        for kernel in p.report.kernels:
            known = joined.get(kernel.name, base.Kernel(kernel.name, kernel.launches, {}))
            if twice := known.parts.keys() & kernel.parts.keys() - {"duration"}:
                what = ", ".join(sorted(twice))
                raise UsageError(
                    f"{p.name} counts again what another file has ({what})", _BY_ITSELF
                )
            if known.launches != kernel.launches:
                notes.append(
                    f"{kernel.name[:100]} was launched {known.launches} and {kernel.launches} "
                    "times: the files are of different runs"
                )
            parts = {**kernel.parts, **known.parts}
            joined[kernel.name] = base.Kernel(kernel.name, known.launches, parts)
    return list(joined.values())


def _with_duration(kernel: base.Kernel, profiles: Sequence[Profile]) -> base.Kernel:
    """Add its time from a summary of the same tool, if that has as many launches."""
    for p in profiles:
        for row in p.report.tables.get(base.KERNELS, ()):
            same = row.name == kernel.name and row.count == kernel.launches
            if same and row.total is not None and "duration" not in kernel.parts:
                return replace(kernel, parts={**kernel.parts, "duration": row.total})
    return kernel


def _from_rates(kernel: base.Kernel, notes: list[str]) -> base.Kernel:
    """Derive bytes from throughput and time if the bytes themselves were not counted."""
    parts, duration = dict(kernel.parts), kernel.parts.get("duration")
    for direction in ("read", "write"):
        rate = parts.pop(f"{direction}_rate", None)
        if rate is None or direction in parts:
            continue
        if duration is None:
            note = (
                f"DRAM {direction} throughput is left out: without the time a rate gives no total"
            )
        else:
            parts[direction] = rate * duration * 1e-9
            note = f"DRAM {direction} bytes are mean throughput times time"
        if note not in notes:
            notes.append(note)
    return replace(kernel, parts=parts)


def _whole(key: str, values: Sequence[float | None], notes: list[str]) -> float | None:
    """The sum over all kernels; ``None``, with a note, if one of them is unknown."""
    missing = values.count(None)
    if 0 < missing < len(values):
        part = sum(value for value in values if value is not None)
        notes.append(
            f"{key}: unknown for {missing} of {len(values)} kernels, {part:g} for the rest"
        )
    return total_of(values)
