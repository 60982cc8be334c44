"""Parameters of gpuwatch's own workloads in files and lists, validated like their flags."""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import JSON, Workload
from gpuwatch.workloads import names, options

MOST_CASES = 2_000
"""Maximum for one part of a study."""
SWEEPABLE = tuple(
    name for name in options.TRAINING_FLAGS if name not in ("device", "data", "download")
)
"""Parameters for a sweep: those that change the training but not the device or the data."""


class _Parser(argparse.ArgumentParser):
    """Raises invalid values as ``ValueError`` with the expected form."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(message.removeprefix("argument ").partition(": ")[2] or message)


_PARSER = _Parser(add_help=False, allow_abbrev=False)
options.add_arguments(_PARSER.add_argument)
_DEFAULTS = vars(_PARSER.parse_args([]))
SWITCHES = frozenset(name for name, value in _DEFAULTS.items() if value is False)
"""Parameters without a value."""


def flag(name: str) -> str:
    """The flag of a parameter: ``--batch-size`` for ``batch_size``."""
    return "--" + name.replace("_", "-")


def value_of(name: str, text: str) -> JSON:
    """The value of a flag's ``text``.

    Raises:
        ValueError: it is invalid; says what is expected.
    """
    return getattr(_PARSER.parse_args([f"{flag(name)}={text}"]), name)


def checked(name: str, value: JSON, where: str) -> JSON:
    """``value`` of the parameter ``name``, converted as by its flag.

    Raises:
        UsageError: the parameter does not exist, or the value is invalid.
    """
    if name not in options.FLAGS:
        close = get_close_matches(name.replace("-", "_"), options.FLAGS, n=2)
        known = f"choose from: {', '.join(options.FLAGS)}"
        hint = f"did you mean {' or '.join(close)}?" if close else known
        raise UsageError(f"{where}: no parameter {name!r}", hint)
    if name in SWITCHES:
        if not isinstance(value, bool):
            raise UsageError(f"{where}: {name} is a switch, not {value!r}", f"write {name} = true")
        return value
    try:
        if isinstance(value, bool) or not isinstance(value, (str, int, float)):
            raise ValueError(f"must be one value, not {value!r}")
        result = value_of(name, str(value))
        if isinstance(value, str) != isinstance(result, str):
            raise ValueError(f"must be a number without quotes, not {value!r}")
        if name == "data" and not result.strip():
            raise ValueError("names no folder")
    except ValueError as error:
        raise UsageError(f"{where}: {name}: {error}", "see `gpuwatch run --help`") from None
    return str(Path(result).expanduser().absolute()) if name == "data" else result


Point = tuple[str, Mapping[str, JSON]]
"""The name of a workload, and parameters that are already `checked`."""


def workloads(points: Sequence[Point], where: str, *, swept: bool) -> tuple[Workload, ...]:
    """The workloads of ``points``. Of a sweep, those that their parameters keep from running are
    among them, for their runs to tell why, as long as two others are left to compare.

    Raises:
        UsageError: a workload does not exist, or its parameters contradict each other.
    """
    left = sum(options.refusal(*point) is None for point in points)
    return tuple(_workload(*point, where, refuse=not swept or left < 2) for point in points)


def _workload(name: str, given: Mapping[str, JSON], where: str, *, refuse: bool) -> Workload:
    try:
        names.check(name)
    except ValueError as error:
        raise UsageError(f"{where}: {error}", 'a program of your own is command = "..."') from None
    kept = {key: given[key] for key in options.FLAGS if given.get(key) not in (None, False)}
    if refuse and (clash := options.refusal(name, kept)):
        raise UsageError(f"{where}: {clash[0]}", clash[1])
    argv, program = tuple(options.parameters_to_argv(kept)), names.program(name)
    return Workload(names.short(name), "workload", argv, kept, program=program)


def cases(
    name: str, given: Mapping[str, JSON], sweep: Mapping[str, Sequence[JSON]], where: str
) -> tuple[Workload, ...]:
    """The workload with every combination of the values in ``sweep``; the last varies fastest."""
    points = [
        (name, {**given, **dict(zip(sweep, values, strict=True))})
        for values in itertools.product(*sweep.values())
    ]
    return workloads(points, where, swept=bool(sweep))


def check_size(sweep: Mapping[str, Sequence[JSON]], where: str) -> None:
    """Raise UsageError if there are too many combinations, before creating them."""
    count = math.prod(len(values) for values in sweep.values())
    if count > MOST_CASES:
        raise UsageError(
            f"{where}: {count:,} combinations, more than {MOST_CASES:,}", "leave values out"
        )


def axis(name: str, values: Sequence[JSON], where: str) -> tuple[JSON, ...]:
    """A sweep's values of one parameter, each `checked`.

    Raises:
        UsageError: the parameter cannot be swept, or two values are the same.
    """
    if name in options.FLAGS and name not in SWEEPABLE:
        raise UsageError(f"{where}: {name} cannot be swept", f"choose from: {', '.join(SWEEPABLE)}")
    checked_values = tuple(checked(name, value, where) for value in values)
    twice = [value for place, value in enumerate(checked_values) if value in checked_values[:place]]
    if twice:
        raise UsageError(f"{where}: {name} has {twice[0]} twice", "give every value once")
    return checked_values


def refuse_twins(workloads: Sequence[Workload], where: str) -> None:
    """Raise UsageError if two cases are the same."""
    seen = set()
    for workload_ in workloads:
        case = (workload_.program or workload_.name, workload_.arguments)
        if case in seen:
            flags = f" {' '.join(workload_.arguments)}" if workload_.arguments else ""
            raise UsageError(
                f"{where}: {workload_.name}{flags} is listed twice",
                "blocks repeat a run: blocks = 10",
            )
        seen.add(case)
