"""What a profile is of, as texts for every screen and report; unescaped."""

from __future__ import annotations

from gpuwatch.analysis.hardware.profile import (
    COUNTERS,
    TABLES,
    Counters,
    Profile,
    Table,
    counters_table,
)
from gpuwatch.core import units
from gpuwatch.core.metrics import Method

_TITLES = {**TABLES, COUNTERS: "kernels by hardware counters"}


def all_tables(profile: Profile | None, counters: Counters | None) -> dict[str, Table]:
    """All tables of a session by name, in display order."""
    tables = dict(profile.tables) if profile is not None else {}
    if counters is not None and counters.kernels:
        tables[COUNTERS] = counters_table(counters)
    order = {name: at for at, name in enumerate(_TITLES)}
    return {
        name: tables[name]
        for name in sorted(tables, key=lambda name: order.get(name, len(order)))
        if tables[name].rows
    }


def title(table: Table) -> str:
    """Name and contents: ``cuda_gpu_kern_sum: kernels on the GPU``."""
    what = _TITLES.get(table.name)
    return f"{table.name}: {what}" if what else table.name


def tool_name(made: Profile | Counters) -> str:
    """The tool and its version."""
    return " ".join(filter(None, (made.tool, made.version)))


def source(profile: Profile) -> str:
    """``4 steps of 21.0 ms under torch.profiler 2.6.0 on the GPU, after the timed steps``."""
    if profile.steps is None:
        times = f"; {derived_times(profile.time_source)}" if profile.time_source else ""
        return f"profile by {tool_name(profile)}, imported{times}"
    steps = f"{profile.steps:,} step{'' if profile.steps == 1 else 's'}"
    duration = f" of {units.milliseconds(profile.step_seconds)}" if profile.step_seconds else ""
    device = {"cuda": " on the GPU", "cpu": " on the CPU"}.get(profile.device or "", "")
    return f"{steps}{duration} under {tool_name(profile)}{device}, after the timed steps"


def derived_times(time_source: str) -> str:
    """``kernel times counted, derived from ...``."""
    return f"kernel times {Method.COUNTED.value}, {time_source}"
