"""Keys come as fast as they are handled: a form has many, and Textual's Pilot waits after each."""

from __future__ import annotations

import asyncio

import pytest
from textual import app
from textual.pilot import Pilot

from ..harness import until


@pytest.fixture(autouse=True)
def keys_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    press = Pilot.press

    async def press_and_wait(pilot: Pilot[int], *keys: str) -> None:
        await press(pilot, *keys)
        await until(pilot, lambda: not pilot.app._pressed)  # type: ignore[attr-defined]

    monkeypatch.setattr(app, "wait_for_idle", lambda _: asyncio.sleep(0))
    monkeypatch.setattr(Pilot, "press", press_and_wait)
