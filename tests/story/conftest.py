from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def _programs(programs: None) -> None:
    """Every test of this folder starts programs."""
