"""A real terminal for tests: a program on a pseudo-terminal of its own, as its session's leader."""

from __future__ import annotations

import contextlib
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from fcntl import ioctl


class Terminal:
    """Runs a program; collects what it draws."""

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        *,
        columns: int = 80,
        rows: int = 24,
    ) -> None:
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.execvpe(command[0], list(command), {**environment, "TERM": "xterm-256color"})
        ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.drawn = ""

    def read_until(self, text: str, seconds: float = 30) -> None:
        """Read until ``text`` was drawn."""
        deadline = time.monotonic() + seconds
        while text not in self.drawn:
            assert time.monotonic() < deadline, f"{text!r} was never drawn: {self.drawn[-3000:]!r}"
            self._read()

    def send(self, keys: str) -> None:
        os.write(self._fd, keys.encode())

    def hang_up(self) -> None:
        """What a lost connection does: the terminal is gone."""
        os.close(self._fd)

    def wait(self, seconds: float = 20) -> int:
        """The program's exit code, or minus the signal that ended it."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            with contextlib.suppress(OSError, ValueError):
                self._read()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        raise AssertionError("the program did not end")

    def _read(self) -> None:
        ready, _, _ = select.select([self._fd], [], [], 0.1)
        if ready:
            self.drawn += os.read(self._fd, 65536).decode("utf-8", "replace")
