"""A session's time series as CSV or JSON lines: every tick, every channel, in base units."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from gpuwatch.analysis.rates import bytes_of, flop_of, rate_series, samples_of
from gpuwatch.metrics import CATALOGUE, DERIVED
from gpuwatch.models import mapping
from gpuwatch.session.reader import SessionReader


def as_csv(reader: SessionReader) -> Iterator[str]:
    """A header line ``seconds,DEVICE METRIC [UNIT],...`` and a line per tick; empty is unknown."""
    names = _names(reader)
    yield _csv_line(["seconds", *(f"{device} {metric} [{unit}]" for device, metric, unit in names)])
    for seconds, values in _ticks(reader):
        yield _csv_line([repr(seconds), *("" if v is None else repr(v) for v in values)])


def as_json_lines(reader: SessionReader) -> Iterator[str]:
    """A first line that names the columns, then ``[seconds, value, ...]`` per tick."""
    names = _names(reader)
    columns = [{"device": device, "metric": metric, "unit": unit} for device, metric, unit in names]
    yield json.dumps({"schema": 1, "columns": columns}) + "\n"
    for seconds, values in _ticks(reader):
        yield json.dumps([seconds, *values]) + "\n"


def _names(reader: SessionReader) -> list[tuple[str, str, str]]:
    sampled = [(c.device, c.metric, c.unit) for c in reader.channels()]
    return sampled + [("workload", name, CATALOGUE[name].unit) for name in DERIVED]


def _ticks(reader: SessionReader) -> Iterator[tuple[float, list[float | int | None]]]:
    channels = [channel.id for channel in reader.channels()]
    times = [row[1] for row in reader.all_ticks(())]
    steps = list(reader.all_steps())
    count = mapping(reader.meta().get("count"))
    works = (
        flop_of(count),
        bytes_of(count),
        samples_of,
    )
    rates = [[None, *rate_series(steps, work, times)] for work in works]
    for at, (_, t, *values) in enumerate(reader.all_ticks(channels)):
        derived = [rate[at] if at < len(rate) else None for rate in rates]
        yield t / 1e9, [*values, *derived]


def _csv_line(cells: list[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()
