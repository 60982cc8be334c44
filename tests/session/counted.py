"""How many rows a session's readers gave: what reading costs, on any machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from gpuwatch.session.reading.reader import SessionReader


def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[], int]:
    """Rows that readers gave since the last call."""
    read, inner = [0], SessionReader._rows

    def counting(
        reader: SessionReader, sql: str, values: Sequence[object] = (), **more: bool
    ) -> list[Any]:
        found = inner(reader, sql, values, **more)
        read[0] += len(found)
        return found

    def since() -> int:
        found, read[0] = read[0], 0
        return found

    monkeypatch.setattr(SessionReader, "_rows", counting)
    return since
