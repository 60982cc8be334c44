"""A terminal behind a link that takes less than a screen would send."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.terminal import Pty

pytestmark = pytest.mark.usefixtures("programs")

SLOW = 3000
"""Bytes a second."""


def test_leaving_waits_for_no_picture_that_a_slow_link_has_not_taken(
    session: Callable[..., Path],
) -> None:
    screen = Pty(
        [sys.executable, "-m", "gpuwatch", "replay", "--speed", "64", str(session(seconds=2000))],
        size=(160, 50),
    )
    try:
        screen.taken_over("step ")
        time.sleep(4)  # nothing is taken from the terminal meanwhile
        screen.type("q")
        start, began = len(screen.sent), time.monotonic()
        while screen.process.poll() is None and time.monotonic() < began + 30:
            # One read takes at most what the kernel holds, some 4 KB.
            before = len(screen.sent)
            screen.read(0.1)
            time.sleep((len(screen.sent) - before) / SLOW)
        assert screen.process.poll() == 0
        assert time.monotonic() - began < 8
        assert len(screen.sent) - start < 8 * SLOW
    finally:
        screen.close()
