"""The terminal: output in ASCII, and the end of the app when the terminal is lost."""

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

from gpuwatch.core.text import notification
from gpuwatch.tui.widgets.ascii import to_ascii

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp

_HANDLED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGTERM),
    *(signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT),
)
"""Signals that Textual or this module handles."""
_HANGUP = select.POLLHUP | select.POLLERR
_EXIT_SECONDS = 5.0
"""Longest time that the app may take to end after its terminal was lost."""


class TerminalDriver(LinuxDriver):
    """Textual's driver, with ASCII output and for a terminal that may be lost."""

    def __init__(self, app: GpuwatchApp, **options: Any) -> None:
        super().__init__(app, **options)
        self._ascii = app.look.ascii
        app.call = lambda text: self.write(notification(text))

    def write(self, data: str) -> None:
        super().write(to_ascii(data) if self._ascii else data)

    def run_input_thread(self) -> None:
        """Read keys until the app ends or the terminal is lost."""
        with contextlib.suppress(OSError):  # the terminal is lost: `watch` ends the app
            super().run_input_thread()


def watch(app: GpuwatchApp) -> None:
    """End ``app`` silently when its terminal is lost, and as Ctrl-C does on SIGINT or SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, app.call_later, app.action_quit)

    def on_hangup() -> None:
        _redirect_to_null()
        app.exit()

    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, on_hangup)

    def wait_for_hangup() -> None:
        _wait_for_hangup(None)
        _redirect_to_null()
        loop.call_soon_threadsafe(on_hangup)
        time.sleep(_EXIT_SECONDS)
        os._exit(0)  # the app is blocked in a write to the lost terminal

    threading.Thread(target=wait_for_hangup, name="terminal-watch", daemon=True).start()


def _redirect_to_null() -> None:
    """Redirect the standard streams of a lost terminal to ``/dev/null``."""
    null = os.open(os.devnull, os.O_RDWR)
    for stream in _wait_for_hangup(0):
        os.dup2(null, stream)
    os.close(null)


def _wait_for_hangup(milliseconds: int | None) -> list[int]:
    """Wait for the terminal to be lost (``None``: forever); returns its standard streams."""
    poller = select.poll()
    for stream in range(3):
        if os.isatty(stream) or milliseconds == 0:
            poller.register(stream, 0)  # poll reports hang-ups without a mask
    return [stream for stream, event in poller.poll(milliseconds) if event & _HANGUP]


@contextlib.contextmanager
def restored_signals() -> Iterator[None]:
    """Restore the signal handlers at exit; if the terminal was lost, ignore further SIGHUP."""
    before = {number: signal.getsignal(number) for number in _HANDLED}
    had_terminal = _has_terminal()
    try:
        yield
    finally:
        if had_terminal and not _has_terminal():
            before[signal.SIGHUP] = signal.SIG_IGN
        for number, handler in before.items():
            signal.signal(number, handler)


def _has_terminal() -> bool:
    return any(os.isatty(stream) for stream in range(3))
