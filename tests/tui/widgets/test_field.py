"""The text input of a screen: keys, the clipboard, and many of both at once."""

from __future__ import annotations

import pytest
from textual import events

from gpuwatch.tui.app import GpuwatchApp
from gpuwatch.tui.widgets.base_screen import WritingScreen
from gpuwatch.tui.widgets.line import Line
from tests.tui.harness import Keys, on_top, running, shows, until


class Writes(WritingScreen):
    """A screen with a text input."""

    def paint(self) -> None:
        self.show([Line(80).add("write: ")])
        self.field.stand(7, 0, 70)


async def writing(app: GpuwatchApp, pilot: Keys) -> Writes:
    await shows(pilot, "write:")
    return on_top(app, Writes)


async def test_a_line_is_edited_as_in_a_shell() -> None:
    async with running(Writes) as (app, pilot):
        field = (await writing(app, pilot)).field
        field.write("one two")
        for key, value, at in (
            ("ctrl+w", "one ", 4),
            ("backspace", "one", 3),
            ("home", "one", 0),
            ("delete", "ne", 0),
            ("right", "ne", 1),
            ("ctrl+k", "n", 1),
            ("left", "n", 0),
            ("x", "xn", 1),
            ("end", "xn", 2),
            ("ctrl+u", "", 0),
        ):
            await pilot.press(key)
            assert (field.value, field.cursor_position) == (value, at), key


async def test_keys_that_come_at_once_are_written_in_their_order() -> None:
    async with running(Writes) as (app, pilot):
        field = (await writing(app, pilot)).field
        field.write("")
        for key in ("a", "b", "backspace", "c", "left", "d", "home", "x"):
            app.post_message(events.Key(key, key if len(key) == 1 else None))
        await until(pilot, lambda: field.value == "xadc")


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
async def test_all_lines_that_are_pasted_are_kept(end: str) -> None:
    async with running(Writes) as (app, pilot):
        field = (await writing(app, pilot)).field
        for line_end in (" ", "↵"):
            field.write("", line_end=line_end)
            app.post_message(events.Paste(f"one{end}two\x1b[2J\u202e{end}"))
            await until(pilot, lambda end=line_end: field.value == f"one{end}two")  # type: ignore[misc]


async def test_what_is_pasted_is_cut() -> None:
    async with running(Writes) as (app, pilot):
        field = (await writing(app, pilot)).field
        field.write("", longest=80)
        app.post_message(events.Paste("x" * 5000))
        await until(pilot, lambda: field.value == "x" * 80)
        await pilot.press("y")
        assert field.value == "x" * 80
