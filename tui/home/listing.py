"""The list of sessions being read for a home screen that is not there yet.

It imports little, so that the command loads while the program of the screens does.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence

from gpuwatch.own_command import OWN_COMMAND
from gpuwatch.tui.commands import LIST_COMMAND
from gpuwatch.tui.home.watch import signature
from gpuwatch.tui.memfd import nameless_file, text_in


class HomeListing:
    """Reads the list by gpuwatch's own command, which it starts at once."""

    def __init__(self, command: Sequence[str] = OWN_COMMAND) -> None:
        """``command`` is gpuwatch's own."""
        self.before = signature(())
        """What a change of the list would touch, as it was before it was read."""
        self._out, self._err = nameless_file(), nameless_file()
        self._process = subprocess.Popen(
            [*command, *LIST_COMMAND],
            stdin=subprocess.DEVNULL,
            stdout=self._out,
            stderr=self._err,
            start_new_session=True,
        )

    def result(self, timeout: float) -> tuple[int, str, str] | None:
        """Exit code and both outputs; ``None``: it goes on after so many seconds."""
        try:
            code = self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            return None
        return code, text_in(self._out), text_in(self._err)

    def close(self) -> None:
        """End it, where it goes on."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.wait()
        self._out.close()
        self._err.close()
