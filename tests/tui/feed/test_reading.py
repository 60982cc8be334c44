"""Screens that read in a thread: leaving at any time, and errors."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from textual.screen import Screen

from gpuwatch.core.errors import StorageError
from gpuwatch.tui.compare.histories import Case, Group, HistoriesScreen
from gpuwatch.tui.compare.kernel_differences import KernelDifferencesScreen, Pair
from gpuwatch.tui.compare.screen import CompareScreen
from gpuwatch.tui.feed.posting import Post

from ..compare.test_compare import many
from ..harness import running, screen_text, shows, until

Make = Callable[..., Path]
Work = Callable[[], None]


def compare(paths: list[Path], work: Work) -> Screen[Any]:
    class Odd(CompareScreen):
        def _compare(self, post: Post) -> None:
            work()
            super()._compare(post)

    return Odd(paths)


def histories(paths: list[Path], work: Work) -> Screen[Any]:
    class Odd(HistoriesScreen):
        def _read(self, post: Post) -> None:
            work()
            super()._read(post)

    return Odd([Case("", tuple(Group(path.stem, (path,)) for path in paths))], {})


def kernels(paths: list[Path], work: Work) -> Screen[Any]:
    class Odd(KernelDifferencesScreen):
        def _look(self, post: Post) -> None:
            work()
            super()._look(post)

    return Odd([Pair(("one", "two"), (paths[0], paths[1]))])


SCREENS = pytest.mark.parametrize("screen", [compare, histories, kernels])


@SCREENS
async def test_escape_leaves_at_once_however_long_the_reading_takes(
    session: Make, screen: Callable[[list[Path], Work], Screen[Any]]
) -> None:
    paths = many(session, 2)
    began, go_on = threading.Event(), threading.Event()

    def held() -> None:
        began.set()
        go_on.wait()

    async with running(lambda: CompareScreen(paths)) as (app, pilot):
        await shows(pilot, "NO VERDICT")
        app.push_screen(screen(paths, held))
        try:
            await until(pilot, began.is_set)
            await pilot.press("escape", shows="NO VERDICT")
        finally:
            go_on.set()


@SCREENS
@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ZeroDivisionError("odd \x1b[31mvalue"), "ZeroDivisionError: odd value"),
        (StorageError("the disk is gone", "see `gpuwatch sessions`"), "the disk is gone"),
    ],
)
async def test_of_whatever_the_reading_ends_the_screen_says_so(
    session: Make, screen: Callable[[list[Path], Work], Screen[Any]], error: Exception, message: str
) -> None:
    def broken() -> None:
        raise error

    paths = many(session, 2)
    async with running(lambda: screen(paths, broken)) as (app, pilot):
        await shows(pilot, message)
        assert "reading the" not in screen_text(app) and "reading …" not in screen_text(app)


async def test_of_one_session_whose_curves_cannot_be_made_the_others_are_drawn(
    session: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuwatch.tui.compare import curves

    paths = many(session, 2)
    real = curves.read_curves

    def odd(path: Path, points: int = 300) -> curves.Curves:
        if path == paths[0]:
            raise OverflowError("too large")
        return real(path, points)

    monkeypatch.setattr(curves, "read_curves", odd)
    case = Case("", tuple(Group(path.stem, (path,)) for path in paths))
    async with running(lambda: HistoriesScreen([case], {})) as (_, pilot):
        await shows(pilot, "reading failed: OverflowError: too large")
        await shows(pilot, "b 01-env1  5.56 ms  mean")
