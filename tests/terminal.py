"""A program on a terminal of the test's own, and every byte that it sends there."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]

SEQUENCES = re.compile(
    r"\x1b\[[0-9;:]*m"  # colours and weight
    r"|\x1b\[[0-9;]*[CHJK]"  # step, place and erase
    r"|\x1b\[\?[0-9;]+[hl]"  # modes
    r"|\x1b\[\?[0-9]+\$p"  # asks for a mode
    r"|\x1b\[[<>=][0-9;]*u"  # the kitty keyboard
    r"|\x1b\]22;\w+\x07"  # the mouse's pointer
    r"|\r|\n"
)
"""All that a screen has to say to a terminal besides text."""

TAKEN_OVER = "\x1b[?2004h"
"""Bracketed paste: Textual asks for it when it takes a terminal over."""

_START = 'test -z "$2" || trap "" HUP; exec <>"$1"; shift 2; exec "$@"'
"""The leader of a session that opens a terminal is controlled by it from then on."""


def surroundings(**changes: str) -> dict[str, str]:
    """The tests' own variables, but for those that tell a size, with gpuwatch to be imported."""
    known = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), known.get("PYTHONPATH", "")]))
    return {**known, "PYTHONPATH": path, **changes}


class Pty:
    """``command`` on a terminal of ``size`` columns and rows, which controls it."""

    def __init__(
        self,
        command: Sequence[str],
        size: tuple[int, int] = (80, 24),
        environment: Mapping[str, str] | None = None,
        *,
        folder: Path | None = None,
        ignores_hang_up: bool = False,
    ) -> None:
        """``environment``: all variables, else :func:`surroundings`."""
        self._master, slave = pty.openpty()
        self.resize(*size)
        ignoring = "yes" if ignores_hang_up else ""
        self.process = subprocess.Popen(
            ["/bin/sh", "-c", _START, "sh", os.ttyname(slave), ignoring, *command],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            cwd=folder,
            env=surroundings() if environment is None else environment,
            start_new_session=True,
        )
        os.close(slave)
        self.sent = b""

    def resize(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys: str) -> None:
        os.write(self._master, keys.encode())

    def wait(self, text: str, seconds: float = 120.0, start: int = 0) -> bytes:
        """Read until ``text`` was sent behind byte ``start``; all that was sent."""
        deadline = time.monotonic() + seconds
        while text.encode() not in self.sent[start:]:
            left = deadline - time.monotonic()
            assert left > 0 and self.read(left), f"no {text!r} in {self.text()[-3000:]!r}"
        return self.sent

    def taken_over(self, text: str, seconds: float = 120.0) -> None:
        """Wait until Textual has the terminal, and drew ``text``: a first picture stands there
        before, but who it came from handles no signal and reads no key yet."""
        self.wait(TAKEN_OVER, seconds)
        self.wait(text, seconds, start=self.sent.index(TAKEN_OVER.encode()))

    def read(self, seconds: float) -> bool:
        """Read once; whether something came in time."""
        if not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 1 << 16)
        except OSError:  # its last user has closed it
            return False
        self.sent += data
        return bool(data)

    def text(self) -> str:
        return self.sent.decode("utf-8", "replace")

    def hang_up(self) -> None:
        """The connection is lost."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    def end(self, seconds: float = 60.0) -> int:
        """Read until the program has ended; its exit code, or minus the signal that ended it."""
        deadline = time.monotonic() + seconds
        while self._master >= 0 and self.process.poll() is None and time.monotonic() < deadline:
            self.read(0.1)
        code = self.process.wait(max(0.1, deadline - time.monotonic()))
        while self._master >= 0 and self.read(0):
            pass
        return code

    def state(self) -> str:
        """``T`` of a program that is stopped, ``R`` or ``S`` of one that goes on."""
        return Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(") ")[2][0]

    def close(self) -> None:
        """Hang up; a program that is still there is killed."""
        self.hang_up()
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
