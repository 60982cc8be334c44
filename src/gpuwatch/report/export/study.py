"""The tables of several sessions joined row-wise, and a table with one row per run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.results import Run, StudyResult
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.models import mapping
from gpuwatch.report.document.quantities import every_run
from gpuwatch.report.export.table import Column, Export, Row, Value
from gpuwatch.session.reading.reader import SessionReader, read_meta
from gpuwatch.session.study.plan import read

KEYS = (
    Column("study", "text", key=True),
    Column("environment", "text", key=True),
    Column("block", "int", key=True),
    Column("session", "text", key=True),
)
"""Columns that identify a row's run: folder, environment, block (0: warm-up, null: none), id."""
_RUN = (
    Column("label", "text"),
    Column("file", "text"),
    Column("status", "text"),
    Column("exit_code", "int"),
    Column("started", "text"),
    Column("warmup_block", "bool"),
    Column("outlier", "bool"),
    Column("steady_step_seconds", unit="s", method="measured", source="steady steps, median"),
    Column("steady_first", "int"),
    Column("steady_steps", "int"),
    Column("reason", "text"),
)


def under_each_other(paths: Sequence[Path], table: Callable[[SessionReader], Export]) -> Export:
    """One table of all sessions: the keys of the run, then every column of any session.

    Only one file is open at a time.

    Raises:
        GpuwatchError: a file cannot be read as a session.
    """
    keys = {path: _keys(path) for path in paths}
    joined: dict[str, Column] = {}
    what = ""
    for path in paths:
        with SessionReader(path) as reader:
            export = table(reader)
        what = export.what
        for column in export.columns:
            known = joined.get(column.name)
            joined[column.name] = column if known is None else _merged(known, column)

    def batches() -> Iterator[Sequence[Row]]:
        for path in paths:
            with SessionReader(path) as reader:
                export = table(reader)
                places = {column.name: at for at, column in enumerate(export.columns)}
                order = [places.get(name) for name in joined]
                for batch in export.batches():
                    yield [
                        (*keys[path], *(None if at is None else row[at] for at in order))
                        for row in batch
                    ]

    return Export(what, (*KEYS, *joined.values()), batches)


def runs(result: StudyResult) -> Export:
    """One row per run: its place in the study, and every quantity of a comparison.

    ``reason`` says why a run has no judged value; ``steady_first`` counts full timed steps from 0.
    """
    judged = {id(run.session): run for _, _, run in every_run(result)}
    compared = compare(result.sessions)
    quantities = [
        Column(
            f"{row.group}: {row.name}" + (f" [{row.unit}]" if row.unit else ""),
            unit=row.unit,
            method="/".join(dict.fromkeys(method.value for method in row.methods)),
        )
        for row in compared.rows
    ]

    def batches() -> Iterator[Sequence[Row]]:
        yield [
            (*_run(session, judged.get(id(session))), *(row.values[at] for row in compared.rows))
            for at, session in enumerate(result.sessions)
        ]

    return Export("runs", (*KEYS, *_RUN, *quantities), batches)


def _run(session: Summary, run: Run | None) -> Row:
    path = Path(session.path)
    judged: Row = (None,) * 6
    if run is not None:
        steady = run.steady.seconds, run.steady.first, run.steady.count
        judged = (run.warm_up, run.outlier, *steady, run.reason)
    return (
        path.resolve().parent.name,
        str(session.environment.get("label") or ""),
        None if run is None else run.block,
        session.id,
        session.label,
        path.name,
        session.status.state.value,
        session.status.exit_code,
        session.started,
        *judged,
    )


def _keys(path: Path) -> tuple[Value, ...]:
    meta = read_meta(path)
    environment = mapping(meta.get("environment")).get("label")
    folder = path.resolve().parent
    plan = read(folder)
    planned = () if plan is None else plan.runs
    block = next((run.block for run in planned if run.file == path.name), None)
    session = mapping(meta.get("session")).get("id")
    return folder.name, str(environment or ""), block, str(session or "")


def _merged(one: Column, other: Column) -> Column:
    """Merge a column of two sessions, which may differ in method, source and reason."""
    return replace(
        one,
        method=_both(one.method, other.method, "/"),
        source=_both(one.source, other.source, "; "),
        reason=_both(one.reason or "", other.reason or "", "; ") or None,
    )


def _both(one: str, other: str, between: str) -> str:
    known = chain.from_iterable(text.split(between) for text in (one, other) if text)
    return between.join(dict.fromkeys(known))
