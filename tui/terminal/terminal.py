"""The terminal under the screens: what to do when it is lost, or can show only ASCII."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textual.drivers.linux_driver import LinuxDriver

from gpuwatch.tui.widgets.ascii import to_ascii

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp

_HANDLED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGTERM),
    *(signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT),
)
"""Signals that a screen has handlers for."""
_GONE = select.POLLHUP | select.POLLERR
_PATIENCE_SECONDS = 5.0


class TerminalDriver(LinuxDriver):
    """Textual's driver for a terminal that may be poor, or gone."""

    def __init__(self, app: GpuwatchApp, **options: Any) -> None:
        super().__init__(app, **options)
        self._ascii = app.look.ascii

    def write(self, data: str) -> None:
        super().write(to_ascii(data) if self._ascii else data)

    def run_input_thread(self) -> None:
        """Read keys until the program or the terminal ends."""
        with contextlib.suppress(OSError):  # the terminal is gone: `watch` ends the app
            super().run_input_thread()


def watch(app: GpuwatchApp) -> None:
    """End ``app`` without a word when its terminal is lost, and as Ctrl-C does when told to end."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, app.call_later, app.action_quit)

    def lost() -> None:
        _let_go()
        app.exit()

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, lost)

    def wait() -> None:
        _hang_up(None)
        _let_go()
        loop.call_soon_threadsafe(lost)
        time.sleep(_PATIENCE_SECONDS)
        os._exit(0)  # the app waits for a terminal that took nothing before it was lost

    threading.Thread(target=wait, name="terminal-watch", daemon=True).start()


def _let_go() -> None:
    """What is written to a terminal that is gone goes nowhere from now on."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in _hang_up(0):
        os.dup2(nowhere, stream)
    os.close(nowhere)


def _hang_up(milliseconds: int | None) -> list[int]:
    """Wait for a terminal to be lost; returns which standard streams it was on."""
    watched = select.poll()
    for stream in range(3):
        if os.isatty(stream) or milliseconds == 0:
            watched.register(stream, 0)  # of a hang-up poll tells unasked
    return [stream for stream, found in watched.poll(milliseconds) if found & _GONE]


@contextlib.contextmanager
def signals_given_back() -> Iterator[None]:
    """Around a screen: signals are handled after it as they were before it.

    Once the terminal was lost, hang-ups that follow say nothing new.
    """
    before, had = {number: signal.getsignal(number) for number in _HANDLED}, _has_terminal()
    try:
        yield
    finally:
        if had and not _has_terminal():
            before[signal.SIGHUP] = signal.SIG_IGN
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    return any(os.isatty(stream) for stream in range(3))
