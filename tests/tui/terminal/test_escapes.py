"""The key Esc and a key soon after it, which a slow link brings together."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from textual._xterm_parser import XTermParser

from gpuwatch.tui.terminal.terminal import Escapes
from tests.terminal import Pty

pytestmark = pytest.mark.usefixtures("programs")


def keys(*pieces: str) -> list[str]:
    """The keys that a terminal's pieces of text are; an empty one: nothing came for a while."""
    escapes, parser = Escapes(), XTermParser(False)
    texts = [escapes.told(piece) for piece in pieces]
    found = [event for text in texts if text for event in parser.feed(text)]
    return [str(getattr(event, "key", event)) for event in found]


@pytest.mark.parametrize(
    ("pieces", "pressed"),
    [
        (("\x1bq",), ["escape", "q"]),
        (("\x1bQ\x1b/x",), ["escape", "Q", "escape", "slash", "x"]),
        (("\x1b1",), ["escape", "1"]),
        (("\x1b", "q"), ["escape", "q"]),
        (("\x1b", "", "q"), ["escape", "q"]),
        (("\x1b\x1b[A", "\x1bOP"), ["escape", "up", "f1"]),
        (("\x1b", "[A"), ["up"]),
        (("\x1bb\x1b[1;5C",), ["ctrl+left", "ctrl+right"]),
    ],
)
def test_escape_and_a_key_after_it_are_two_keys(
    pieces: tuple[str, ...], pressed: list[str]
) -> None:
    assert keys(*pieces) == pressed


def test_keys_that_arrive_together_each_do_their_work(session: Callable[..., Path]) -> None:
    screen = Pty([sys.executable, "-m", "gpuwatch", "replay", str(session())])
    try:
        screen.wait("step ")
        start = len(screen.sent)
        screen.type("l")
        screen.wait("log of", start=start)
        screen.type("\x1bq")
        assert screen.end() == 0
    finally:
        screen.close()
