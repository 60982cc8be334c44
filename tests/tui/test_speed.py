"""Speed of the screens, as far as it does not depend on the machine."""

from __future__ import annotations

import itertools
import random
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from textual.drivers.headless_driver import HeadlessDriver

from gpuwatch.session.writing.statements import insert
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.live.screen import LiveScreen

from .harness import Keys, live, on_top, until
from .sessions import NS

pytestmark = pytest.mark.usefixtures("programs")

Make = Callable[..., Path]

SIZE = (120, 40)
LOAD = {"utilization": 0.7, "bandwidth": 2e12, "usage": 4e10, "power": 500, "temperature": 60}
ALLOWED = 8000
"""Most bytes of one update per second, for a recording with large changes in all values."""


# What is sent.


class Sent:
    """The output of an app to its terminal."""

    def __init__(self, app: GpuwatchApp) -> None:
        self.updates: list[str] = []
        driver = app._driver
        assert isinstance(driver, HeadlessDriver)
        driver.write = self.updates.append  # type: ignore[method-assign]

    @property
    def size(self) -> int:
        """Sizes of the updates in bytes, with the marks of their start and end."""
        around = len("\x1b[?2026h") + len("\x1b[?2026l")
        return sum(len(update.encode()) + around for update in self.updates)


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make Textual's app without a terminal write as with one."""
    monkeypatch.setattr(HeadlessDriver, "is_headless", False)


def grow(path: Path, seconds: int) -> Iterator[int]:
    """Record one second after the other; yields the session time."""
    dice = random.Random(6)
    store = SessionStore.reopen(path)
    metrics = [metric.rpartition(".")[2] for _, metric in store.channels()]
    sql = insert("tick", len(metrics), "n", "t")
    *_, (last, t, _) = store.open_ticks()
    for second in range(1, seconds + 1):
        values = [LOAD.get(metric, 0.5) * dice.uniform(0.75, 1.1) for metric in metrics]
        store.write([(sql, (last + second, t + second * NS, *values))])
        yield t + second * NS
    store.close()


async def watched(app: GpuwatchApp, pilot: Keys, path: Path, seconds: int) -> float:
    """Run the screen until it has shown this number of further seconds; returns the mean of what
    one of them sends, in bytes, without the largest: on a busy machine the clock is redrawn once
    more in one."""
    screen = on_top(app, LiveScreen)
    sent, sizes = Sent(app), [0]
    for t in grow(path, seconds):
        await until(pilot, lambda t=t: screen.snapshot is not None and screen.snapshot.t >= t)  # type: ignore[misc]
        await pilot.pause()
        sizes.append(sent.size)
    each = sorted(later - earlier for earlier, later in itertools.pairwise(sizes))
    return statistics.mean(each[:-1])


@pytest.mark.parametrize("gpus", [1, 8])
async def test_an_update_of_the_live_screen_is_at_most_8_kb(session: Make, gpus: int) -> None:
    path = session(kind="machine", gpus=gpus, interval=1.0, known_card=True)
    async with live(path, SIZE) as (app, pilot):
        assert 0 < await watched(app, pilot, path, 10) <= ALLOWED


async def test_the_grid_of_eight_gpus_sends_at_most_15_kb(session: Make) -> None:
    path = session(kind="machine", gpus=8, interval=1.0, known_card=True)
    async with live(path, SIZE) as (app, pilot):
        await pilot.press("g", shows="8 GPUs")
        await pilot.pause()
        assert 0 < await watched(app, pilot, path, 10) <= 15_000


async def test_a_snapshot_that_says_nothing_new_sends_nothing(session: Make) -> None:
    async with live(session(kind="machine", gpus=2), SIZE) as (app, pilot):
        screen = app.screen
        assert isinstance(screen, LiveScreen) and screen.snapshot is not None
        sent = Sent(app)
        for _ in range(5):
            screen.take(screen.snapshot)
            await pilot.pause()
        assert sent.updates == []
