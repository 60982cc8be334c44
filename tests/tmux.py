"""A tmux server of the test's own."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

_TELL_A_SIZE = ("TMUX", "COLUMNS", "LINES")
"""Variables that would tell the program another size than the terminal has."""


class Tmux:
    """A server without a session so far."""

    def __init__(self, folder: Path, settings: str = "") -> None:
        self._socket, self._settings = folder / "tmux", folder / "tmux.conf"
        self._settings.write_text(settings)

    def command(self, *arguments: str) -> list[str]:
        return ["tmux", "-S", str(self._socket), "-f", str(self._settings), *arguments]

    @staticmethod
    def variables(environment: Mapping[str, str]) -> dict[str, str]:
        """``environment`` as the server is to have it."""
        return {k: v for k, v in environment.items() if k not in _TELL_A_SIZE}

    def run(self, *arguments: str) -> str:
        """What a command of tmux prints."""
        return subprocess.run(
            self.command(*arguments),
            capture_output=True,
            text=True,
            check=True,
            env=self.variables(os.environ),
        ).stdout

    def close(self) -> None:
        subprocess.run(self.command("kill-server"), check=False, stderr=subprocess.DEVNULL)


class Pane(Tmux):
    """A shell in a session of ``size`` columns and rows that no terminal shows."""

    def __init__(self, folder: Path, size: tuple[int, int]) -> None:
        super().__init__(folder)
        columns, rows = map(str, size)
        self.run("new-session", "-d", "-x", columns, "-y", rows, "sh")

    def type(self, text: str, *keys: str) -> None:
        """Type ``text``, then press ``keys`` by tmux's names."""
        self.run("send-keys", "-l", text)
        for key in keys:
            self.run("send-keys", key)

    def text(self) -> str:
        """What stands on the screen."""
        return self.run("capture-pane", "-p")

    def wait(self, text: str, seconds: float = 120.0) -> str:
        """Look until ``text`` stands on the screen; all that does."""
        deadline = time.monotonic() + seconds
        while text not in (shown := self.text()):
            assert time.monotonic() < deadline, f"no {text!r} in:\n{shown}"
            time.sleep(0.05)
        return shown

    def wait_gone(self, text: str, seconds: float = 120.0) -> None:
        """Look until ``text`` stands on the screen no more."""
        deadline = time.monotonic() + seconds
        while text in (shown := self.text()):
            assert time.monotonic() < deadline, f"still {text!r} in:\n{shown}"
            time.sleep(0.05)
