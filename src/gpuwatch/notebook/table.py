"""A table as arrays of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from gpuwatch.core.installation import install_command
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.report.export.table import Column, Export, Row

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
        return f"Table({self.rows} rows: {', '.join(self.columns)})"

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
    columns = arrays(export)
    names = [column.name for column in export.columns]
    units = {column.name: column.unit for column in export.columns if column.unit}
    return Table(dict(zip(names, columns, strict=True)), units)


def arrays(export: Export) -> list[Array]:
    """One array (rows,) for each column of ``export``."""
    parts: list[list[Array]] = [[] for _ in export.columns]
    for batch in export.batches():
        for part, column, values in zip(parts, export.columns, _turned(batch), strict=False):
            part.append(_array(column, values))
    result = [
        np.concatenate(part) if part else _array(column, ())
        for part, column in zip(parts, export.columns, strict=True)
    ]
    for array in result:
        array.flags.writeable = False
    return result


def _turned(batch: Sequence[Row]) -> Iterator[tuple[Any, ...]]:
    return zip(*batch, strict=True)


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
