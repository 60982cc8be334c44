"""A session's steps, its log and its events as tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from gpuwatch.analysis.samples.rates import bytes_of, flop_of
from gpuwatch.analysis.samples.step_lines import run_of, seen
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping
from gpuwatch.report.export.series import SECONDS, series
from gpuwatch.report.export.table import Column, Export, Row
from gpuwatch.session.reading.reader import CHUNK, SessionReader
from gpuwatch.session.rows import PHASES, StepRow, mean_phases, with_phases

_MOST_PHASES = 50
_STEP_LINES = "step lines"
_MOST_STEPS = 1_000_000
"""Most steps of a line; a recorder writes fewer, but an untrusted file may claim more."""


def steps(reader: SessionReader) -> Export:
    """One row per step: end time, duration, loss, accuracies, phases.

    For a line with several steps (``line_steps``), samples, phases, FLOP and bytes are means over
    its steps (phases: over those that were sampled), and a single loss or accuracy belongs to the
    last step.
    """
    phases = _phases(reader)
    columns = (
        SECONDS,
        Column("step", "int"),
        Column("warmup", "bool"),
        Column("partial", "bool"),
        Column("line_steps", "int"),
        _from_lines("step_seconds", "s", Method.MEASURED),
        _from_lines("samples", "{sample}", Method.MEASURED),
        _from_lines("loss", "", Method.MEASURED),
        _from_lines("acc1", "1", Method.MEASURED),
        _from_lines("acc5", "1", Method.MEASURED),
        _from_lines("flop", "FLOP", Method.COUNTED),
        _from_lines("bytes", "By", Method.COUNTED),
        *(_from_lines(f"phase_{phase}_seconds", "s", Method.MEASURED) for phase in phases),
    )

    def batches() -> Iterator[Sequence[Row]]:
        meta = reader.meta()
        run = run_of(meta, mean_phases(row for row in reader.all_steps() if not row.warmup))
        count = mapping(meta.get("count"))
        works = (flop_of(count), bytes_of(count))
        rows: list[Row] = []
        for line in reader.all_steps():
            rows += _steps(line, works, run, phases)
            if len(rows) >= CHUNK:
                yield rows
                rows = []
        yield rows

    return Export("steps", columns, batches)


def log(reader: SessionReader) -> Export:
    """The output of the run: time of reading, stream, line."""

    def batches() -> Iterator[Sequence[Row]]:
        after = -1
        while lines := reader.log(after):
            after = lines[-1].n
            yield [(line.t / 1e9, line.stream, line.text) for line in lines]

    return Export("log", (SECONDS, Column("stream", "text"), Column("text", "text")), batches)


def events(reader: SessionReader) -> Export:
    """The events of the run: time, kind, device, text."""

    def batches() -> Iterator[Sequence[Row]]:
        after = -1
        while chunk := reader.events(after):
            after = chunk[-1].n
            yield [(each.t / 1e9, each.kind, each.device, each.text) for each in chunk]

    texts = (Column(name, "text") for name in ("kind", "device", "text"))
    return Export("events", (SECONDS, *texts), batches)


TABLES: dict[str, Callable[[SessionReader], Export]] = {
    "series": series,
    "steps": steps,
    "log": log,
    "events": events,
}
"""The tables of a session, by the name given to ``--what``."""


def _from_lines(name: str, unit: str, method: Method) -> Column:
    return Column(name, unit=unit, method=method.value, source=_STEP_LINES)


def _phases(reader: SessionReader) -> list[str]:
    """The phases that step lines name, in the order of a step."""
    found: dict[str, None] = {}
    for line in reader.all_steps():
        found.update(dict.fromkeys(line.phases))
        if len(found) > _MOST_PHASES:
            break
    known = [phase for phase in PHASES if phase in found]
    return [*known, *sorted(set(found) - set(known))][:_MOST_PHASES]


def _steps(
    line: StepRow,
    works: Sequence[Callable[[StepRow], float | None]],
    run: Mapping[str, JSON],
    phases: Sequence[str],
) -> list[Row]:
    if line.count > _MOST_STEPS:
        return []
    seconds = _each(line.seconds, line.count)
    loss, acc1, acc5 = (_each(values, line.count) for values in (line.loss, line.acc1, line.acc5))
    partial = set(line.partial)
    totals = [line.samples, *(work(line) for work in works)]
    samples, *rest = (None if total is None else total / line.count for total in totals)
    taken, sampled = map(seen(run, line.phases).get, phases), with_phases([line])
    rest += (None if total is None or not sampled else total / sampled for total in taken)
    rows: list[Row] = []
    end: float | None = line.t / 1e9
    for at in reversed(range(line.count)):
        step = line.step - line.count + 1 + at
        values = (seconds[at], samples, loss[at], acc1[at], acc5[at], *rest)
        rows.append((end, step, line.warmup, step in partial, line.count, *values))
        own = seconds[at]
        end = None if end is None or own is None else end - own
    return rows[::-1]


def _each(values: Sequence[float] | None, count: int) -> list[float | None]:
    """One value for each step of a line; missing leading values are ``None``."""
    known = list(values or ())[-count:]
    return [*[None] * (count - len(known)), *known]
