"""Fixtures of the tests of figures."""

from __future__ import annotations

from pathlib import Path

import pytest

from . import sessions


@pytest.fixture
def make(tmp_path: Path) -> sessions.Make:
    """A session of its own for each call."""
    made = iter(range(1000))
    return lambda **options: sessions.summary(tmp_path / f"{next(made)}.gpuwatch", **options)
