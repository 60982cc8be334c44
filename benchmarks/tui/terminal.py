"""A program in a pseudoterminal: when it drew what, and how much it sent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import signal
import struct
import termios
import threading
import time
from collections.abc import Mapping, Sequence

import psutil

COLUMNS, ROWS = 120, 40
_PATIENCE_SECONDS = 3.0
"""For each way to end a program."""

_CONTROL = re.compile(
    rb"\x1b\[[0-?]*[ -/]*[@-~]"  # a control sequence: colours, positions, modes
    rb"|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)"  # a title
    rb"|\x1b[P_^X][^\x1b]*\x1b\\"
    rb"|\x1b[()][0-9A-B]|\x1b[=>78cDEHM]"
    rb"|[\x00-\x08\x0b-\x1f\x7f]"
)
_ANSWERS = (
    (b"\x1b[6n", b"\x1b[1;1R"),  # where the cursor is
    (b"\x1b[c", b"\x1b[?62;22c"),  # what terminal this is
    (b"\x1b[?2026$p", b"\x1b[?2026;2$y"),  # synchronized output is known
)
"""Questions of programs, some of which wait, as a terminal of today answers them."""
_BLANK = re.compile(rb"\s+")


def words(sent: bytes) -> bytes:
    """The characters among what a program sent, without blanks."""
    return _BLANK.sub(b"", _CONTROL.sub(b" ", sent))


class Terminal:
    """Runs ``command`` in a terminal of 120 columns and 40 rows, and takes the time of its output.

    Times are seconds since just before the program was started.
    """

    def __init__(self, command: Sequence[str], env: Mapping[str, str]) -> None:
        self.chunks: list[tuple[float, bytes]] = []
        self.sent = 0
        self._arrived = threading.Condition()
        self.started = time.monotonic()
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            try:
                size = struct.pack("HHHH", ROWS, COLUMNS, 0, 0)
                fcntl.ioctl(0, termios.TIOCSWINSZ, size)
                os.execvpe(command[0], list(command), dict(env))
            finally:
                os._exit(127)
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                data = b""
            now = time.monotonic() - self.started
            for question, answer in _ANSWERS:
                if question in data:
                    os.write(self._fd, answer)
            with self._arrived:
                self.chunks.append((now, data))
                self.sent += len(data)
                self._arrived.notify_all()
            if not data:
                return

    def type(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def first_text(self) -> float | None:
        """When the first character that is no blank was sent."""
        sent = b""
        for at, data in self.chunks:
            sent += data
            if words(sent):
                return at
        return None

    def wait_for(self, marks: Sequence[str], seconds: float) -> float | None:
        """When the last of ``marks`` had been sent; ``None`` if that did not happen in time."""
        wanted = [_BLANK.sub(b"", mark.encode()) for mark in marks]
        deadline = time.monotonic() + seconds
        looked = 0
        with self._arrived:
            while True:
                while looked < len(self.chunks):
                    looked += 1
                    text = words(b"".join(data for _, data in self.chunks[:looked]))
                    if all(mark in text for mark in wanted):
                        return self.chunks[looked - 1][0]
                left = deadline - time.monotonic()
                if left <= 0 or (self.chunks and not self.chunks[-1][1]):
                    return None
                self._arrived.wait(left)

    def text(self) -> str:
        """All characters sent so far: for a message about what went wrong."""
        return words(b"".join(data for _, data in self.chunks)).decode("utf-8", "replace")

    def close(self, key: str | None = None) -> None:
        """End the program: by its own ``key``, then by a hang-up, at last by force."""
        if key is not None:
            with contextlib.suppress(OSError):
                self.type(key)
            if self._gone():
                os.close(self._fd)
                return
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)
            if self._gone():
                break
        os.close(self._fd)

    def _gone(self) -> bool:
        try:
            psutil.Process(self.pid).wait(_PATIENCE_SECONDS)
        except psutil.TimeoutExpired:
            return False
        except psutil.NoSuchProcess:
            pass
        return True
