"""The terminal under the screens: what Textual's own driver leaves to be done.

A terminal that is lost ends the program without a word and without a spin, only presses and the
wheel of a mouse are asked for, and where ASCII is wanted nothing else is written.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import signal
from codecs import getincrementaldecoder
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

from textual._ansi_sequences import SYNC_END
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from gpuwatch.tui.widgets.ascii import to_ascii

if TYPE_CHECKING:
    from gpuwatch.tui.app import GpuwatchApp

_LOOK_SECONDS = 0.1
_LOOKS = 3
"""After a key the thread that reads them looks so often for the rest of a sequence: an Esc alone
is one only after a while. Then it sleeps until the next key, ten wakes a second less."""


_OTHER_SCREEN = "\x1b[?1049h"
"""Goes there, and on many terminals clears it, also where it is shown already."""

_PICTURE = 3
"""Writes that a picture is made of: its start, its cells, its end."""

_ESCAPE = "\x1b"
_ESCAPE_KEY = "\x1b[27u"
"""The key alone, as terminals with the kitty keyboard send it."""
_OF_ITS_OWN = re.compile(r"\x1b(?![\x1b\[\]OP\\bdf\x7f])")
"""An Esc that begins no sequence. What is kept are sequences, and Alt with the keys that move by
words and delete them; Alt with another key is bound to nothing."""


class Escapes:
    """Tells the key Esc from the start of a sequence in what a terminal sends.

    Over a slow link a key that was pressed after Esc arrives together with it.
    """

    def __init__(self) -> None:
        self._held = ""

    def told(self, text: str) -> str:
        """``text`` with each Esc of its own written so that nothing after it changes it.

        An Esc at the end is held until more comes, or nothing does: an empty text.
        """
        if not text:
            held, self._held = self._held, ""
            return _ESCAPE_KEY if held else ""
        text = self._held + text
        self._held = _ESCAPE if text.endswith(_ESCAPE) else ""
        return _OF_ITS_OWN.sub(_ESCAPE_KEY, text[: len(text) - len(self._held)])


_HANDLED = (
    *(signal.SIGHUP, signal.SIGINT, signal.SIGTERM),
    *(signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT),
)
"""What the driver has handlers for; they are of no use without its loop."""


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


class TerminalDriver(LinuxDriver):
    """Textual's driver for a terminal that may be poor, slow, or gone."""

    def __init__(self, app: GpuwatchApp, **options: Any) -> None:
        super().__init__(app, **options)
        if self._file is not None:
            self._file = _Output(self._file, app.look.ascii)  # type: ignore[assignment]
        self._over = False
        self._standing = app.standing
        self._wake: tuple[int, int] | None = None

    def start_application_mode(self) -> None:
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
            signal.signal(signal.SIGHUP, lambda *_: self._lost())
        for asking in (signal.SIGINT, signal.SIGTERM):
            signal.signal(asking, lambda *_: self._loop.call_soon_threadsafe(self._quit))
        self._wake = os.pipe()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def write(self, data: str) -> None:
        """To the terminal; but what stands on its other screen is not cleared by going there."""
        if self._standing and data == _OTHER_SCREEN:
            self._standing = False
        else:
            super().write(data)

    @property
    def behind(self) -> bool:
        """Whether the terminal has yet to take pictures that were drawn before."""
        waiting = self._writer_thread
        return waiting is not None and waiting._queue.qsize() > _PICTURE

    def stop_application_mode(self) -> None:
        """Give the terminal back; pictures that it has not taken yet are not sent any more."""
        if self._writer_thread is not None:
            queue = self._writer_thread._queue
            with queue.mutex:
                queue.queue.clear()
                queue.not_full.notify_all()
            self.write(SYNC_END)
        super().stop_application_mode()

    def _lost(self) -> None:
        """The terminal is gone: everything goes nowhere from now on, and the screens close."""
        if self._over:
            return
        self._over = True
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            if os.isatty(stream) or _hung_up(stream):
                os.dup2(nowhere, stream)
        os.close(nowhere)
        self._loop.call_soon_threadsafe(self._app.exit)

    def _quit(self) -> None:
        """Leave as Ctrl-C does: unlike a hang-up this leaves a terminal to be given back."""
        self._app.call_later(self._app.action_quit)

    def _enable_mouse_support(self) -> None:
        """Presses and the wheel: every move of a mouse would go through a slow link too."""
        if self._mouse:
            self.write("\x1b[?1000h\x1b[?1015h\x1b[?1006h")
            self.flush()

    def _disable_mouse_support(self) -> None:
        if self._mouse:
            self.write("\x1b[?1000l\x1b[?1015l\x1b[?1006l")
            self.flush()

    def _enable_mouse_pixels(self) -> None:
        """Cells are enough."""

    def disable_input(self) -> None:
        """Wake the thread that reads keys, so that it ends, and wait for it."""
        wake, self._wake = self._wake, None
        if wake is not None:
            os.close(wake[1])
        super().disable_input()
        if wake is not None:
            os.close(wake[0])

    def run_input_thread(self) -> None:
        """Read keys until the program or the terminal ends."""
        if self._wake is None:
            return
        ended, _ = self._wake
        parser = XTermParser(self._debug)
        decode = getincrementaldecoder("utf-8")("replace").decode
        watched = select.poll()
        watched.register(self.fileno, select.POLLIN)
        watched.register(ended, 0)
        escapes = Escapes()
        looks = 0
        while not self.exit_event.is_set():
            ready = dict(watched.poll(_LOOK_SECONDS * 1000 if looks else None))
            looks -= 1 if looks else 0
            if ended in ready:
                return
            text = ""
            if ready:
                looks = _LOOKS
                try:
                    data = os.read(self.fileno, 4096)
                except OSError:
                    data = b""
                if not data:
                    self._lost()
                    return
                text = decode(data)
            # To the parser an empty text is the end of everything.
            if told := escapes.told(text):
                for event in parser.feed(told):
                    self.process_message(event)
            for event in parser.tick():
                self.process_message(event)


def _hung_up(stream: int) -> bool:
    watched = select.poll()
    watched.register(stream, 0)
    return any(found & (select.POLLHUP | select.POLLERR) for _, found in watched.poll(0))


class _Output:
    """A stream that outlives its terminal: what cannot be written any more is dropped."""

    def __init__(self, file: IO[str], ascii_only: bool) -> None:
        self._file = file
        self._ascii = ascii_only

    def write(self, text: str) -> int:
        with contextlib.suppress(OSError):
            self._file.write(to_ascii(text) if self._ascii else text)
        return len(text)

    def flush(self) -> None:
        with contextlib.suppress(OSError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()

    def isatty(self) -> bool:
        return self._file.isatty()
