"""A session file with known content, written by the real store."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from gpuwatch.core.metrics import CATALOGUE, Method
from gpuwatch.core.processes import identify
from gpuwatch.session.writing.statements import meta
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.session.writing.writer import SessionWriter
from gpuwatch.telemetry.base import Channel

SECOND = 1_000_000_000
CHANNELS = (
    Channel("cpu", "hw.cpu.utilization", Method.MEASURED, "/proc/stat"),
    Channel("cpu", "hw.cpu.power", Method.UNAVAILABLE, "RAPL", "no RAPL here"),
)


def create(path: Path) -> SessionStore:
    described = [
        (channel, CATALOGUE[channel.metric].unit, CATALOGUE[channel.metric].kind.value)
        for channel in CHANNELS
    ]
    store = SessionStore.create(path, described)
    recorder = identify(os.getpid())
    assert recorder is not None
    store.write([meta("session", {"id": "abc"}), meta("recorder", asdict(recorder))])
    return store


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a finished session with ``ticks`` ticks, one a second."""

    def _write(ticks: int = 25, name: str = "s.gpuwatch") -> Path:
        path = tmp_path / name
        writer = SessionWriter(create(path), len(CHANNELS), base_ns=0)
        writer.start()
        for n in range(ticks):
            writer.tick(n, n * SECOND, [n / 100, None])
        writer.put(meta("result", {"code": 0, "signal": None, "t": ticks * SECOND}))
        assert writer.close()
        return path

    return _write
