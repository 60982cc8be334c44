"""Turns SQLite rows of a session file into the row types of the reader.

A file from elsewhere may hold anything: values of a wrong type become unknown, or raise.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping, number, sequence
from gpuwatch.session.reading import limits
from gpuwatch.session.reading.validation import floats, whole
from gpuwatch.session.rows import (
    NOT_KNOWN,
    SAMPLED,
    ChannelRow,
    DeviceRow,
    RankRow,
    RankStepRow,
    StepRow,
)

Read = Callable[[JSON], JSON]
_SIZED = frozenset({str, bytes})
_LONGEST = 4096
"""Characters of a name or a reason; a recorder writes at most a few hundred."""


def devices_of(rows: Sequence[tuple[JSON, ...]], read: Read) -> tuple[DeviceRow, ...]:
    """Rows ``(id, kind, name, uuid, used, attributes)``, in the natural order of their ids;
    ``read`` parses JSON."""
    devices = [
        DeviceRow(
            _text(id_),
            _text(kind),
            _text(name),
            None if uuid is None else _text(uuid),
            None if used == NOT_KNOWN else bool(used),
            mapping(read(attributes)),
        )
        for id_, kind, name, uuid, used, attributes in rows
    ]
    return tuple(sorted(devices, key=lambda device: _natural(device.id)))


def channels_of(
    rows: Sequence[tuple[JSON, ...]], changes: Sequence[tuple[JSON, ...]]
) -> tuple[ChannelRow, ...]:
    """Rows of ``channel``, each updated with its last change ``(id, method, source, reason)``."""
    states = {row[0]: [row[5:]] for row in rows}
    for id_, *change in changes:
        states.get(id_, []).append(tuple(change))
    channels = []
    for id_, device, metric, unit, kind, *_ in rows:
        method, source, reason = states[id_][-1]
        methods = [_method(name) for name, _, _ in states[id_]]
        available = [method for method in methods if method is not Method.UNAVAILABLE]
        channels.append(
            ChannelRow(
                int(id_),
                _text(device),
                _text(metric),
                _text(unit),
                _text(kind),
                _method(method),
                _text(source),
                None if reason is None else _text(reason),
                available[-1] if available else Method.UNAVAILABLE,
            )
        )
    return tuple(channels)


def step_of(row: tuple[JSON, ...]) -> StepRow:
    """Parse a row of ``step``, with the columns in the order of :class:`StepRow`."""
    n, t, step, count, warmup, samples, *lists, phases, partial, flop, size = row
    phases, evaluation, sampled = phases_of(phases)
    partial = partial if bytes_of((partial,)) <= limits.OF_A_LINE else None
    seconds, loss, acc1, acc5 = map(floats, lists)
    if seconds and not math.isfinite(sum(seconds)):
        seconds = None
    return StepRow(
        n=whole(n),
        t=whole(t),
        step=whole(step),
        count=max(1, whole(count)),
        warmup=bool(warmup),
        samples=number(samples),
        seconds=seconds,
        loss=loss,
        acc1=acc1,
        acc5=acc5,
        phases=phases,
        partial=tuple(part for part in sequence(json_of(partial)) if isinstance(part, int)),
        flop=number(flop),
        bytes=number(size),
        evaluation=evaluation,
        sampled=sampled,
    )


def rank_of(row: tuple[JSON, ...]) -> RankRow:
    """Parse a row of ``rank``, with the columns in the order of :class:`RankRow`."""
    rank, local_rank, world_size, pid, device, nodes, gpu_node, sharded = row
    return RankRow(
        rank=whole(rank),
        local_rank=_integer(local_rank),
        world_size=_integer(world_size),
        pid=_integer(pid),
        device=None if device is None else _text(device),
        cpu_nodes=tuple(each for each in sequence(json_of(nodes)) if isinstance(each, int)),
        gpu_node=_integer(gpu_node),
        sharded=bool(sharded),
    )


def _integer(value: JSON) -> int | None:
    return value if isinstance(value, int) else None


def rank_step_of(row: tuple[JSON, ...]) -> RankStepRow:
    """Parse a row of ``rank_step``, with the columns in the order of :class:`RankStepRow`."""
    n, t, rank, step, count, warmup, samples, tokens, seconds, text, flop = row
    phases, _, sampled = phases_of(text)
    return RankStepRow(
        n=whole(n),
        t=whole(t),
        rank=whole(rank),
        step=whole(step),
        count=max(1, whole(count)),
        warmup=bool(warmup),
        samples=number(samples),
        tokens=number(tokens),
        seconds=number(seconds),
        phases=phases,
        flop=number(flop),
        sampled=sampled,
    )


def phases_of(text: JSON) -> tuple[dict[str, float], float, float | None]:
    """Seconds of phases by name, from a JSON text, and of evaluation, which is no part of a step,
    and of how many steps the phases are, if not of all; empty if it is too long."""
    if text == "{}" or bytes_of((text,)) > limits.OF_PHASES:  # most programs report none
        return {}, 0.0, None
    seconds = {str(name): number(value) for name, value in mapping(json_of(text)).items()}
    phases = {name: value for name, value in seconds.items() if value is not None}
    sampled = phases.pop(SAMPLED, None)
    evaluation = max(0.0, phases.pop("evaluation", 0.0))
    return phases, evaluation, None if sampled is None else max(0.0, sampled)


def cells(text: JSON) -> int:
    """Upper bound on the number of values in a JSON text."""
    return sum(map(text.count, ",[{")) if isinstance(text, str) else 0


def bytes_of(row: tuple[JSON, ...]) -> int:
    """Total size of the texts and blobs in a row."""
    return sum(len(value) for value in row if type(value) in _SIZED)


def _text(value: object) -> str:
    return str(value)[:_LONGEST]


def _natural(text: str) -> tuple[str, int]:
    head = text.rstrip("0123456789")
    return head, int(text[len(head) :] or 0)


def json_of(text: object) -> JSON:
    """Parse a JSON text; ``None`` if it is invalid or has too many values."""
    if text is None or cells(text) > limits.CELLS:
        return None
    try:
        return json.loads(str(text))
    except (ValueError, RecursionError):
        return None


def _method(text: object) -> Method:
    try:
        return Method(str(text))
    except ValueError:
        return Method.UNAVAILABLE
