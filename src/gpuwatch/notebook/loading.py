"""Saved sessions and studies as immutable objects of arrays and tables."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.read import read_study
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.errors import UsageError
from gpuwatch.core.installation import install_command
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON
from gpuwatch.core.units import counted
from gpuwatch.report import json
from gpuwatch.report.export import session_tables, study
from gpuwatch.report.export.series import series
from gpuwatch.report.export.table import Column, Export
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.study_folder import sessions_in

if TYPE_CHECKING:
    import pandas


Array = NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class Table(Mapping[str, Array]):
    """Columns by name, in order; arrays are read-only.

    An unknown number is NaN; any other unknown value is ``None`` in an object array.
    """

    columns: Mapping[str, Array]
    units: Mapping[str, str]
    """UCUM units of the columns that have one."""

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        """Number of columns, like any mapping; see ``rows``."""
        return len(self.columns)

    @property
    def rows(self) -> int:
        """Number of rows."""
        return next((len(array) for array in self.columns.values()), 0)

    def __repr__(self) -> str:
        return f"Table({counted(self.rows, 'row')}: {', '.join(self.columns)})"

    def to_pandas(self) -> pandas.DataFrame:
        """Convert to a ``DataFrame``.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError(f"to_pandas() needs pandas: {install_command('pandas')}") from error
        return pandas.DataFrame({name: array.copy() for name, array in self.columns.items()})


def table(export: Export) -> Table:
    """All rows of ``export`` as a table."""
    names = [column.name for column in export.columns]
    units = {column.name: column.unit for column in export.columns if column.unit}
    return Table(dict(zip(names, arrays(export), strict=True)), units)


def arrays(export: Export) -> list[Array]:
    """One array (rows,) for each column of ``export``."""
    parts: list[list[Array]] = [[] for _ in export.columns]
    for batch in export.batches():
        turned: Iterator[tuple[Any, ...]] = zip(*batch, strict=True)
        for part, column, values in zip(parts, export.columns, turned, strict=False):
            part.append(_array(column, values))
    result = [
        np.concatenate(part) if part else _array(column, ())
        for part, column in zip(parts, export.columns, strict=True)
    ]
    for array in result:
        array.flags.writeable = False
    return result


def _array(column: Column, values: Sequence[Any]) -> Array:
    if column.type == "float" or (column.type == "int" and None in values):
        return np.array([np.nan if value is None else value for value in values], dtype=float)
    if column.type == "int":
        return np.array(values, dtype=np.int64)
    if column.type == "bool" and None not in values:
        return np.array(values, dtype=bool)
    found = np.empty(len(values), dtype=object)
    found[:] = values
    return found


Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Series:
    """One metric of one device over time; numpy converts it to the array of its values."""

    device: str
    metric: str
    unit: str
    """UCUM, in base units: ``1`` (0 to 1), ``By``, ``By/s``, ``W``, ``FLOP/s``."""
    method: Method
    source: str
    reason: str | None
    """Why values are unknown, if that is known."""
    values: Floats
    """Float64 (samples,), one per entry of the session's ``time``; NaN is unknown. Read-only."""

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return self.values.astype(float if dtype is None else dtype, copy=bool(copy))

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        known = int(np.count_nonzero(~np.isnan(self.values)))
        summary = f"{self.method.value}, {known} of {len(self)} known"
        return f"Series({self.device} {self.metric} [{self.unit}], {summary})"


@dataclass(frozen=True, eq=False, repr=False)
class Session:
    """One complete run."""

    path: Path
    meta: Mapping[str, JSON]
    """Metadata of the session; the keys are those of ``docs/session-format.md``."""
    time: Floats
    """Seconds since the session's start, (samples,)."""
    series: Mapping[tuple[str, str], Series]
    """By device and metric: ``series["gpu0", "hw.gpu.utilization"]``."""
    steps: Table
    """One row per step; the columns are those of ``gpuwatch export --what steps``."""
    log: Table
    events: Table
    summary: Mapping[str, JSON]
    """The summary printed by ``gpuwatch show --format json``."""

    def __repr__(self) -> str:
        known = self.summary["session"]
        size = f"{counted(len(self.time), 'sample')}, {counted(self.steps.rows, 'step')}"
        return f"Session({known['label']}, {known['status']}, {size})"


@dataclass(frozen=True, eq=False, repr=False)
class Study:
    """The runs of one folder, with their comparison."""

    path: Path
    result: StudyResult
    runs: Table
    """One row per run; the columns are those of ``gpuwatch export --what runs``."""

    @cached_property
    def sessions(self) -> tuple[Session, ...]:
        """The sessions in the order of ``runs``; the files are read on first access."""
        return tuple(_session(Path(each.path)) for each in self.result.sessions)

    def __repr__(self) -> str:
        return f"Study({self.result.title}, {counted(self.runs.rows, 'run')})"


def load(path: str | os.PathLike[str]) -> Session | Study:
    """Load a session file as a :class:`Session`, or a study's folder as a :class:`Study`.

    >>> import gpuwatch
    >>> run = gpuwatch.load("study/01-bare.gpuwatch")
    >>> run.series["gpu0", "hw.gpu.utilization"].unit
    '1'

    Raises:
        GpuwatchError: there is no session, or the file is invalid; the message says how to fix it.
    """
    place = Path(path)
    if not place.is_dir():
        return _session(place)
    if not sessions_in(place):
        raise UsageError(f"no session in {place}", "name a study's folder or a session file")
    result = read_study(place)
    return Study(place, result, table(study.runs(result)))


def _session(path: Path) -> Session:
    with SessionReader(path) as reader:
        sampled = series(reader)
        time, *values = arrays(sampled)
        return Session(
            path=path,
            meta=reader.meta(),
            time=time,
            series={
                (str(column.device), str(column.metric)): Series(
                    device=str(column.device),
                    metric=str(column.metric),
                    unit=column.unit,
                    method=Method(column.method),
                    source=column.source,
                    reason=column.reason,
                    values=array,
                )
                for column, array in zip(sampled.columns[1:], values, strict=True)
            },
            steps=table(session_tables.steps(reader)),
            log=table(session_tables.log(reader)),
            events=table(session_tables.events(reader)),
            summary=json.summary(summarise(reader)),
        )
