"""Tables as Parquet files, written in row groups; needs pyarrow."""

from __future__ import annotations

import json
from typing import Any, BinaryIO

from gpuwatch import __version__
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.installation import install_command
from gpuwatch.core.json_schema import JSON_SCHEMA
from gpuwatch.report.export.table import Column, Export, Value

_GROUP = 50_000
"""Rows per row group, which are held in memory at once."""


def write(file: BinaryIO, export: Export) -> None:
    """Write ``export`` to ``file``; null means unknown.

    The metadata of a field are the column's unit, method, source, device, metric and reason, if
    set. Those of the file are ``gpuwatch``: a JSON object with ``schema``, ``version``, ``what``.

    Raises:
        NotAvailable: pyarrow is not installed.
        OSError: the file cannot be written.
    """
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError as error:
        raise NotAvailable(
            "Parquet needs pyarrow, which is not installed", install_command("pyarrow")
        ) from error
    kinds = {
        "float": arrow.float64(),
        "int": arrow.int64(),
        "bool": arrow.bool_(),
        "text": arrow.string(),
    }
    fields = [
        arrow.field(_utf8(column.name), kinds[column.type], metadata=_metadata(column))
        for column in export.columns
    ]
    about = json.dumps({"schema": JSON_SCHEMA, "version": __version__, "what": export.what})
    schema = arrow.schema(fields, metadata={"gpuwatch": about})

    with parquet.ParquetWriter(file, schema, compression="zstd") as writer:
        held: list[Any] = []
        for rows in export.batches():
            if rows:
                arrays = [
                    arrow.array([_stored(value, of.type) for value in values], kinds[of.type])
                    for of, values in zip(export.columns, zip(*rows, strict=True), strict=True)
                ]
                held.append(arrow.record_batch(arrays, schema=schema))
            if sum(batch.num_rows for batch in held) >= _GROUP:
                writer.write_table(arrow.Table.from_batches(held, schema))
                held = []
        if held:
            writer.write_table(arrow.Table.from_batches(held, schema))


def _stored(value: Value, kind: str) -> Value:
    """``value`` converted to the column's type; an integer beyond 64 bits becomes null."""
    if isinstance(value, str):
        return _utf8(value)
    if value is None or kind == "bool":
        return value
    if kind == "float":
        return float(value)
    return value if -(2**63) <= value < 2**63 else None


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _metadata(column: Column) -> dict[str, str]:
    told = ("unit", "method", "source", "device", "metric", "reason")
    return {name: _utf8(text) for name in told if (text := getattr(column, name))}
