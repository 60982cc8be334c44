from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.forks import Forks, forks


@pytest.fixture(scope="session")
def plainly() -> Iterator[Forks]:
    """Runs programs without the hook."""
    with forks() as found:
        yield found
