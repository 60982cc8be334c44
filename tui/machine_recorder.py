"""A throw-away recording of the machine, for a screen that shows its devices now.

It imports little, so that the recorder loads while the program of the screens does.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.own_command import OWN_COMMAND

_PATIENCE_SECONDS = 3.0


class MachineRecorder:
    """A recorder of the machine alone in a temporary folder.

    It ends with this process; where this process is killed it removes the folder as well.
    """

    def __init__(self, interval: float, command: Sequence[str] = OWN_COMMAND) -> None:
        """Start it, with a sample every ``interval`` seconds; ``command`` is gpuwatch's own."""
        self.interval = interval
        self._folder = Path(tempfile.mkdtemp(prefix="gpuwatch-now-", dir=_memory_folder()))
        self._errors = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115 see close()
        arguments = ("--record", "--out", str(self._folder), "--interval", f"{interval:g}")
        self._process = subprocess.Popen(
            [*command, *arguments, "--while-pid", str(os.getpid()), "--quiet"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
            start_new_session=True,
        )

    def session(self) -> Path | None:
        """The session, as soon as there is one."""
        return next(iter(sorted(self._folder.glob("*/*.gpuwatch"))), None)

    def last_words(self) -> list[str] | None:
        """What it wrote before it ended, in lines; ``None`` while it goes on."""
        if self._process.poll() is None:
            return None
        size = os.fstat(self._errors.fileno()).st_size
        return os.pread(self._errors.fileno(), size, 0).decode(errors="replace").splitlines()

    def close(self) -> None:
        """End it and remove what it wrote."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()
        try:
            self._process.wait(_PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)


def _memory_folder() -> str | None:
    """The user's runtime folder: who only looks writes to no disk. ``None`` where there is none."""
    folder = os.environ.get("XDG_RUNTIME_DIR", "")
    return folder if os.path.isabs(folder) and os.access(folder, os.W_OK | os.X_OK) else None
