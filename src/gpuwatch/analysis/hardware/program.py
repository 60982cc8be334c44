"""The program that ran, and why its work is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from gpuwatch.analysis.hardware.ceilings import NEVER_MEASURED, Missing
from gpuwatch.analysis.hardware.points import Rates
from gpuwatch.analysis.samples.step_lines import NEXT, NO_STEPS_YET
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, number

IMPORTED = "an imported profile has no roofline: it holds no rates"
MACHINE = "the machine alone has no roofline: no work is counted"

_STEPS = "print a `step` line for every step (`gpuwatch run --help`)"
_FLOP = (
    "print `count` with `flop_per_step` and `bytes_per_step` once, or `flop` and `bytes` in each "
    "`step` line (`gpuwatch run --help`)"
)
_BYTES = (
    "print `count` with `bytes_per_step`, or `bytes` in each `step` line (`gpuwatch run --help`)"
)


@dataclass(frozen=True)
class Program:
    """The program that ran, and what it reported."""

    label: str
    kind: str = "workload"
    """``workload``, ``command``, ``machine`` or ``import``."""
    steps: bool = True
    """Whether it reported steps."""
    timed: bool = True
    """Whether it reported steps after its warm-up."""
    count: Mapping[str, JSON] = field(default_factory=dict)
    """Its ``count`` report."""
    no_ceilings: Missing = NEVER_MEASURED
    """Reason and hint for ceilings that were not measured."""
    doubt: str | None = None
    """Why no rate follows from its steps."""
    no_steps: str = "the workload reported no steps"
    """The reason where it reported none: of :func:`.step_lines.no_steps`, or that there are none
    yet."""


def no_point(program: Program, rates: Rates) -> tuple[str, str | None]:
    """Why a program has no point in the roofline, and how to get one."""
    own = program.kind == "command"
    if program.kind == "import":
        return IMPORTED, "see `gpuwatch kernels SESSION`"
    if program.kind == "machine":
        return MACHINE, "gpuwatch run WORKLOAD"
    if program.no_steps == NO_STEPS_YET and not program.timed:
        return NO_STEPS_YET, None
    if not program.steps:
        reason, _, hint = program.no_steps.partition(NEXT)
        return reason, hint or (_STEPS if own else None)
    if not program.timed:
        return "the workload reported no step after its warm-up", _STEPS if own else None
    if program.doubt:
        return f"no FLOP/s are known: {program.doubt}", None
    if rates.flop == 0 and not rates.executed_flop:
        return "its steps have no FLOP, like those of a copy", None
    if not rates.flop and not rates.executed_flop:
        return f"no FLOP/s are known: {uncounted(program.count, 'FLOP')}", _FLOP if own else None
    return (
        f"no bytes are known: {uncounted(program.count, 'bytes')}, and none were measured",
        _BYTES if own else None,
    )


NO_RATE = "the steps' times are not known or give no finite rate"


def uncounted(count: Mapping[str, JSON], what: str) -> str:
    """Why ``FLOP`` or ``bytes`` (``what``) per step are unknown, from the ``count`` report.

    Where nothing was counted, the report's ``method`` is the reason.
    """
    known = [number(count.get(key)) for key in ("flop_per_step", "bytes_per_step")]
    method = count.get("method")
    if method and known == [None, None]:
        return str(method)
    if known[what == "bytes"]:
        return NO_RATE
    return f"the workload reported no {what} per step"


def unknown_rate(name: str, count: Mapping[str, JSON]) -> str:
    """Why the derived metric ``name`` is unknown though steps are reported."""
    what = {"gpuwatch.flop.rate": "FLOP", "gpuwatch.bytes.rate": "bytes"}.get(name)
    return uncounted(count, what) if what else "its steps report no samples"
