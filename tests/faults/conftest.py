from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.table import Row, note

_ROWS = "GPUWATCH_FAULT_ROWS"
"""A folder for the rows; where it is set every fault is tried as often as the page tells."""


@pytest.fixture
def times() -> Callable[[int, int], int]:
    """``times(quick, full)``: how often to try, in an ordinary run and in ``make faults``."""
    return lambda quick, full: full if os.environ.get(_ROWS) else quick


@pytest.fixture
def told(tmp_path: Path) -> Callable[[Row], None]:
    """Keep what a fault did for the table of docs/reliability.md."""
    return lambda row: note(row, Path(os.environ.get(_ROWS) or tmp_path / "fault-rows"))
