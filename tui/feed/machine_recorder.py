"""A throw-away recording of the machine, for a screen that shows its devices now.

It imports next to nothing, so that the recorder loads while the program of the screens does.
"""

from __future__ import annotations

import os
import time

from gpuwatch.own_command import OWN_COMMAND
from gpuwatch.tui.memfd import nameless_file, text_in

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_PREFIX = "gpuwatch-now-"
_PATIENCE_SECONDS = 3.0
_LOOK_SECONDS = 0.005


class MachineRecorder:
    """A recorder of the machine alone in a temporary folder.

    It ends with this process; where this process is killed it removes the folder as well.
    """

    def __init__(self, interval: float, command: Sequence[str] = OWN_COMMAND) -> None:
        """Start it, with a sample every ``interval`` seconds; ``command`` is gpuwatch's own.

        Raises:
            OSError: there is no room for its folder, or no process can be started.
        """
        self.interval = interval
        self._folder = _new_folder()
        self._errors = nameless_file()
        arguments = ("--record", "--out", self._folder, "--interval", f"{interval:g}")
        whole = [*command, *arguments, "--while-pid", str(os.getpid()), "--quiet"]
        try:
            self._pid = _spawn(whole, self._errors.fileno())
        except OSError:
            self._errors.close()
            os.rmdir(self._folder)
            raise
        self._ended = False

    def session(self) -> Path | None:
        """The session, as soon as there is one."""
        from pathlib import Path

        return next(iter(sorted(Path(self._folder).glob("*/*.gpuwatch"))), None)

    def last_words(self) -> list[str] | None:
        """What it wrote before it ended, in lines; ``None`` while it goes on."""
        if not self._has_ended():
            return None
        return text_in(self._errors).splitlines()

    def close(self) -> None:
        """End it and remove what it wrote."""
        import shutil
        import signal

        patience = time.monotonic() + _PATIENCE_SECONDS
        if not self._has_ended():
            os.kill(self._pid, signal.SIGTERM)
        while not self._has_ended():
            if time.monotonic() > patience:
                os.kill(self._pid, signal.SIGKILL)
            time.sleep(_LOOK_SECONDS)
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _has_ended(self) -> bool:
        if not self._ended:
            self._ended = os.waitpid(self._pid, os.WNOHANG)[0] == self._pid
        return self._ended


def _spawn(command: list[str], errors: int) -> int:
    """Start a program in a session of its own, which hears nothing of this terminal."""
    nothing = os.open(os.devnull, os.O_RDWR)
    try:
        given = [
            (os.POSIX_SPAWN_DUP2, of, to) for of, to in ((nothing, 0), (nothing, 1), (errors, 2))
        ]
        return os.posix_spawnp(command[0], command, os.environ, file_actions=given, setsid=True)
    finally:
        os.close(nothing)


def _new_folder() -> str:
    """In the user's runtime folder, where there is one: who only looks writes to no disk."""
    runtime, temporary = (os.environ.get(name, "") for name in ("XDG_RUNTIME_DIR", "TMPDIR"))
    for parent in (runtime, temporary or "/tmp"):  # noqa: S108 - a new folder, for us alone
        folder = os.path.join(parent, _PREFIX + os.urandom(6).hex())
        if os.path.isabs(folder) and os.access(parent, os.W_OK | os.X_OK):
            try:
                os.mkdir(folder, 0o700)
            except OSError:
                continue
            return folder
    import tempfile

    return tempfile.mkdtemp(prefix=_PREFIX)
