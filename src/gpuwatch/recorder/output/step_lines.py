"""Parses the lines by which a workload reports; ``docs/step-lines.md`` is the contract."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Mapping
from dataclasses import field

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping


class Writers:
    """Looks at each line, and tells once why the lines cannot all be of one loop.

    Step numbers rise, each on its own in the warm-up and in the timed steps, unless the lines name
    their writer: then one writer may begin anew, but not repeat a number at once. After a crash
    another recorder continues with the ``state`` (``known``).
    """

    def __init__(self, known: Mapping[str, JSON], *, told: bool) -> None:
        """``told``: whether the reason is already in the session."""
        self._told = told
        self._writer = known.get("writer")
        self._run = known.get("run") is True
        self._last: dict[str, int] = dict(mapping(known.get("last")))

    @property
    def state(self) -> dict[str, JSON]:
        """What the next recorder must know."""
        return {"writer": self._writer, "run": self._run, "last": dict(self._last)}

    def look(self, line: Step | Report) -> str | None:
        """Why there are several writers, at the first line that shows it; else ``None``."""
        if self._told:
            return None
        reason = self._other_writer(line.writer)
        if reason is None and isinstance(line, Step):
            reason = self._falling(line)
        elif reason is None and isinstance(line, Report) and line.event == "run":
            reason = self._second_run()
        self._told = reason is not None
        return reason

    def tell(self) -> bool:
        """Whether it is to be told now that there are several; once."""
        told, self._told = self._told, True
        return not told

    def _other_writer(self, writer: str | None) -> str | None:
        before, self._writer = self._writer, writer or self._writer
        if writer is None or before is None or writer == before:
            return None
        return f"step lines of the writers {before} and {writer} are mixed: let only rank 0 print"

    def _second_run(self) -> str | None:
        before, self._run = self._run, True
        if not before:
            return None
        return (
            "there is a second `run` line: several processes report (let only rank 0 print), or "
            "several trainings (record each on its own)"
        )

    def _falling(self, step: Step) -> str | None:
        window = "warmup" if step.warmup else "timed"
        last, self._last[window] = self._last.get(window), step.step
        first = step.step - step.count + 1
        anew = step.writer is not None and step.step != last
        if last is None or first > last or anew:
            return None
        steps = f"step {first}" if step.count == 1 else f"steps {first} to {step.step}"
        return (
            f"{steps} came after step {last}: several processes print step lines (let only rank 0 "
            "print), or a loop counts its steps anew (number them on, or name their `writer`)"
        )


PREFIX = ":::GPUWATCH "
_MOST_STEPS = 1_000_000
_LAST_STEP = 2**53
_MOST = {"seconds": 1e8, "flop": 1e27, "bytes": 1e24}
"""Implausible values: three years, and more work or traffic than any machine can do."""
_MOST_COUNTED = 1e15
_LONGEST_WRITER = 64
_AMOUNTS = {
    "run": ("batch_size", "total_steps", "warmup_steps", "steps_per_epoch", "trainable_parameters"),
    "startup": ("import_seconds", "model_seconds", "first_step_seconds"),
    "count": (
        "flop_forward_per_sample",
        "flop_forward_per_step",
        "flop_backward_per_step",
        "flop_per_step",
        "flop_recomputed_per_step",
        "bytes_per_step",
        "samples",
        "seconds",
    ),
    "generation": (
        "sequences",
        "prompt_tokens",
        "new_tokens",
        "kv_cache_bytes",
        "flop_prefill",
        "bytes_prefill",
        "flop_decode",
        "bytes_decode",
    ),
    "counters": ("steps", "flop_per_step", "dram_read_bytes_per_step", "dram_write_bytes_per_step"),
    "timing": ("cost",),
    "end": ("steps", "real_seconds", "user_seconds", "sys_seconds", "seconds_reporting"),
}
"""By event: the keys with non-negative amounts."""
_KEPT = {
    *("started", "run", "startup", "count", "generation", "timing", "counters", "end", "error")
}
"""Events stored unchanged, under their own name, in the session's meta table."""
_MERGED = {"versions", "epoch", "profile"}
"""Events that are converted, or combined with others."""


class Malformed(ValueError):
    """A line that starts like a step line but is not valid."""


@dataclass(frozen=True)
class Step:
    """A checked ``step`` event."""

    step: int
    count: int
    warmup: bool
    samples: float | None = None
    seconds: tuple[float, ...] | None = None
    loss: tuple[float, ...] | None = None
    acc1: tuple[float, ...] | None = None
    acc5: tuple[float, ...] | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    partial: tuple[int, ...] = ()
    flop: float | None = None
    bytes: float | None = None
    total_steps: int | None = None
    monotonic_ns: int | None = None
    writer: str | None = None
    """The process or rank that printed the line, if it tells."""
    tokens: float | None = None
    """Tokens that all steps of the line processed together."""
    skipped: int = 0
    """Steps without an update, because ``GradScaler`` found infinite gradients."""
    sampled: float | None = None
    """Of how many of its steps ``phases`` are, drawn at random; ``None``: of all."""


@dataclass(frozen=True)
class Report:
    """Any other event: its name and content."""

    event: str
    body: Mapping[str, JSON]
    wrong: tuple[str, ...] = ()
    """Messages on impossible numbers, which are ``None`` in ``body``."""
    writer: str | None = None
    """As in :class:`Step`."""

    @property
    def known(self) -> bool:
        """Whether a recorder uses it; otherwise it goes to the log."""
        return self.event in _KEPT or self.event in _MERGED


def parse(line: str) -> Step | Report:
    """Parse one line that starts with :data:`PREFIX`.

    Raises:
        Malformed: it is not a JSON object, has no event, or a step has invalid values.
    """
    return parse_json(line[len(PREFIX) :])


def parse_json(text: str) -> Step | Report:
    """Parse a step line without its prefix.

    Raises:
        Malformed: as :func:`parse`.
    """
    try:
        body = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not JSON: {error}") from None
    if not isinstance(body, dict) or not isinstance(body.get("event"), str):
        raise Malformed('no JSON object with an "event"')
    if body["event"] == "step":
        return step_of(body)
    try:
        return _report(body["event"][:64], _strict(body))
    except RecursionError:
        raise Malformed("nested too deeply") from None


def _report(name: str, body: dict[str, JSON]) -> Report:
    wrong = []
    for key in _AMOUNTS.get(name, ()):
        value = body.get(key)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            try:
                _check_amount(value, key)
            except Malformed as error:
                wrong.append(str(error))
                body = {**body, key: None}
    return Report(name, body, tuple(wrong), _writer(body))


def _check_amount(value: float, key: str) -> None:
    """Raise ``Malformed`` for impossible amounts of seconds, FLOP, bytes or items."""
    if value < 0:
        raise Malformed(f'"{key}" must not be negative')
    most = next((most for unit, most in _MOST.items() if unit in key), _MOST_COUNTED)
    if value > most:
        raise Malformed(f'"{key}" must be at most {most:g}')


def _strict(value: JSON) -> JSON:
    """``value`` as strict JSON: Python's parser accepts NaN and Infinity, which become ``None``."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {key: _strict(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_strict(each) for each in value]
    return value


def pack(values: tuple[float, ...] | None) -> bytes | None:
    """Encode numbers for storage, as this machine's doubles. They are little-endian: NVIDIA has no
    driver for a machine with others."""
    return None if values is None else array("d", values).tobytes()


def step_of(body: Mapping[str, JSON]) -> Step:
    """The step with the keys of a ``step`` event.

    Raises:
        Malformed: a value is not valid.
    """
    count = _integer(body, "count", 1)
    step, total = _integer(body, "step", None), _integer(body, "total_steps", None)
    if step is None:
        raise Malformed('a step line needs an integer "step"')
    if count is None or not 1 <= count <= _MOST_STEPS:
        raise Malformed(f'"count" must be from 1 to {_MOST_STEPS}')
    if not 0 <= step <= _LAST_STEP:
        raise Malformed(f'"step" must be from 0 to {_LAST_STEP}')
    if total is not None:
        _check_amount(total, "total_steps")
    seconds = _numbers(body, "seconds", count)
    if seconds is not None:
        if count > 1 and len(seconds) == 1:
            seconds = None  # one time for many steps says nothing about each
        elif not all(math.isfinite(value) for value in seconds):
            raise Malformed('"seconds" must be finite')
        else:
            for value in (min(seconds), max(seconds)):
                _check_amount(value, "seconds")
    phases = body.get("phases") or {}
    if not isinstance(phases, dict):
        raise Malformed('"phases" must be an object of seconds')
    partial = body.get("partial") or []
    if not isinstance(partial, list):
        raise Malformed('"partial" must be a list of step numbers')
    return Step(
        step=step,
        count=count,
        warmup=bool(body.get("warmup")),
        samples=_amount(body, "samples"),
        seconds=seconds,
        loss=_numbers(body, "loss", count),
        acc1=_numbers(body, "acc1", count),
        acc5=_numbers(body, "acc5", count),
        phases={str(name): _finite(each, "seconds of phases") for name, each in phases.items()},
        partial=tuple(value for value in partial if isinstance(value, int)),
        flop=_amount(body, "flop"),
        bytes=_amount(body, "bytes"),
        total_steps=total,
        monotonic_ns=_integer(body, "monotonic_ns", None),
        writer=_writer(body),
        tokens=_amount(body, "tokens"),
        skipped=len(skipped) if isinstance(skipped := body.get("skipped"), list) else 0,
        sampled=_amount(body, "sampled"),
    )


def _writer(body: Mapping[str, JSON]) -> str | None:
    """``writer`` as text; ``None`` unless it is a name or a whole number."""
    value = body.get("writer")
    known = isinstance(value, (int, str)) and not isinstance(value, bool) and value != ""
    return str(value)[:_LONGEST_WRITER] if known else None


def _integer(body: Mapping[str, JSON], key: str, default: int | None) -> int | None:
    value = body.get(key, default)
    if value is None:
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        raise Malformed(f'"{key}" must be an integer')
    return value


def _amount(body: Mapping[str, JSON], key: str) -> float | None:
    value = body.get(key)
    return None if value is None else _finite(value, key)


def _finite(value: JSON, key: str) -> float:
    number = _float(value, key)
    if not math.isfinite(number):
        raise Malformed(f'"{key}" must be a finite number')
    _check_amount(number, key)
    return number


def _numbers(body: Mapping[str, JSON], key: str, count: int) -> tuple[float, ...] | None:
    value = body.get(key)
    if value is None:
        return None
    listed = value if isinstance(value, list) else [value]
    if len(listed) not in (1, count):
        raise Malformed(f'"{key}" has {len(listed)} values for {count} steps')
    # JSON has no NaN: an invalid loss is null.
    unknown = math.nan if key != "seconds" else None
    return tuple(_float(unknown if each is None else each, key) for each in listed)


def _float(value: JSON, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Malformed(f'"{key}" must be made of numbers')
    try:
        return float(value)
    except OverflowError:
        raise Malformed(f'"{key}" is too large') from None


MOST_TABLES = 20
MOST_ROWS = 1_000
"""Most rows kept of a table; the others are counted."""

_OF_A_TABLE = ("table", "columns", "rows", "rows_left_out")


def add_part(profile: Mapping[str, JSON], part: Mapping[str, JSON]) -> dict[str, JSON]:
    """``profile`` with another ``profile`` event: later values win, and rows are appended.

    A part with different columns starts its table anew.
    """
    tables = dict(mapping(profile.get("tables")))
    name, columns, rows = (part.get(key) for key in ("table", "columns", "rows"))
    if (
        isinstance(name, str)
        and isinstance(columns, list)
        and isinstance(rows, list)
        and (name in tables or len(tables) < MOST_TABLES)
    ):
        table = tables.get(name)
        if table is None or table["columns"] != columns:
            table = {"rows": [], "rows_left_out": 0}
        all_rows = [*table["rows"], *rows]
        part_left_out = part.get("rows_left_out")
        left_out = table["rows_left_out"] + (part_left_out if isinstance(part_left_out, int) else 0)
        tables[name] = {
            "columns": columns,
            "rows": all_rows[:MOST_ROWS],
            "rows_left_out": left_out + len(all_rows[MOST_ROWS:]),
        }
    scalars = {key: value for key, value in part.items() if key not in _OF_A_TABLE}
    return {**profile, **scalars, "tables": tables}
