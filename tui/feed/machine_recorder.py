"""A temporary recording of the machine, for a screen that shows its current devices.

It imports next to nothing, so that the recorder loads while the screens do.
"""

from __future__ import annotations

import os
import time

from gpuwatch.own_command import NOW_PREFIX, OWN_COMMAND

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TERMINATE_SECONDS = 3.0
_POLL_SECONDS = 0.005


class MachineRecorder:
    """A recorder of the machine alone in a temporary folder.

    It ends with this process, and removes the folder if this process is killed.
    """

    def __init__(
        self, interval: float, command: Sequence[str] = OWN_COMMAND, more: Sequence[str] = ()
    ) -> None:
        """Start it with a sample every ``interval`` seconds; ``command`` runs gpuwatch, ``more``
        are further options of ``--record``.

        Raises:
            OSError: its folder cannot be made, or no process can be started.
        """
        from tempfile import TemporaryFile

        self._folder = _new_folder()
        self._errors = TemporaryFile()  # noqa: SIM115 - :meth:`close` closes it
        arguments = ("--record", "--out", self._folder, "--interval", f"{interval:g}")
        whole = [*command, *arguments, "--while-pid", str(os.getpid()), "--quiet", *more]
        try:
            self._pid = _spawn(whole, self._errors.fileno())
        except OSError:
            self._errors.close()
            os.rmdir(self._folder)
            raise
        self._ended = False

    def session(self) -> Path | None:
        """The session file; ``None``: it does not exist yet."""
        from pathlib import Path

        return next(iter(sorted(Path(self._folder).glob("*/*.gpuwatch"))), None)

    def error_lines(self) -> list[str] | None:
        """Its standard error once it has ended; ``None``: it still runs."""
        if not self._has_ended():
            return None
        self._errors.seek(0)
        return self._errors.read().decode("utf-8", "replace").splitlines()

    def close(self) -> None:
        """End it and remove its folder."""
        import shutil
        import signal

        deadline = time.monotonic() + _TERMINATE_SECONDS
        if not self._has_ended():
            os.kill(self._pid, signal.SIGTERM)
        while not self._has_ended():
            if time.monotonic() > deadline:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(_POLL_SECONDS)
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _has_ended(self) -> bool:
        if not self._ended:
            self._ended = os.waitpid(self._pid, os.WNOHANG)[0] == self._pid
        return self._ended


def _spawn(command: list[str], errors: int) -> int:
    """Start a program in a new session, away from this terminal's signals; returns its PID."""
    null = os.open(os.devnull, os.O_RDWR)
    try:
        streams = [(os.POSIX_SPAWN_DUP2, fd, n) for n, fd in enumerate((null, null, errors))]
        return os.posix_spawnp(command[0], command, os.environ, file_actions=streams, setsid=True)
    finally:
        os.close(null)


def _new_folder() -> str:
    """A new folder, in memory (the user's runtime folder) where possible, so that only looking
    at devices does not write to a disk."""
    from tempfile import mkdtemp

    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if os.path.isabs(runtime):
        try:
            return mkdtemp(prefix=NOW_PREFIX, dir=runtime)
        except OSError:
            pass  # it is not ours, or gone
    return mkdtemp(prefix=NOW_PREFIX)
