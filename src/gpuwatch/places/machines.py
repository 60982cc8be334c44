"""Machines elsewhere that are recorded for as long as somebody watches them: nothing stays there.

Each has one connection, and a mirror here of what is recorded there.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from gpuwatch.core.errors import GpuwatchError, NotAvailable
from gpuwatch.core.text import clean
from gpuwatch.places.base import Place
from gpuwatch.places.frames import BadFrame, BatchFrame, EndFrame
from gpuwatch.places.mirror import Mirror
from gpuwatch.places.relay_lines import RelayLines
from gpuwatch.session import placement
from gpuwatch.session.machine_now import MachineNow
from gpuwatch.session.placement import JobState, Placement

_SESSION = "01-bare.gpuwatch"
"""The one session of a machine's recording."""
_SHORTEST_WAIT, _LONGEST_WAIT = 1.0, 30.0
"""Seconds between two tries to reach a machine."""
_LINE_SECONDS = 0.5
_NOTE_SECONDS = 10.0
_LONGEST = 300


class Machine:
    """One machine, followed by a thread of its own."""

    def __init__(self, name: str, place: Place, folder: Path) -> None:
        """``folder``: an empty one of its own, for what is recorded."""
        self._place, self._folder = place, folder
        self.now = MachineNow(name)
        """Safe in another thread."""
        self._connections = 0
        self._noted = 0.0
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"machine-{name}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self, wait: bool) -> None:
        """End the connection, and with it the recorder there; ``wait``: until that is done."""
        self._closed.set()
        if wait and self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        wait = _SHORTEST_WAIT
        while not self._closed.is_set():
            began = time.monotonic()
            try:
                self._follow()
            except BadFrame as error:
                self._away(f"what arrived cannot be read: {error}")
            except GpuwatchError as error:
                self._away(error.message)
            except OSError as error:
                self._away(f"cannot write to {self._folder} here: {error.strerror}")
            if time.monotonic() - began > _LONGEST_WAIT:
                wait = _SHORTEST_WAIT
            self._closed.wait(wait)
            wait = min(2 * wait, _LONGEST_WAIT)

    def _away(self, why: str) -> None:
        now = self.now
        self.now = MachineNow(now.place, now.session, clean(why, _LONGEST), now.heard)
        if now.session is not None:
            self._note(now.session.parent, JobState.UNKNOWN, self.now.trouble)

    def _note(self, folder: Path, state: JobState, reason: str | None = None) -> None:
        """Write down how it is there, for whoever shows the session."""
        known = Placement(self.now.place, secrets.token_hex(8), state, reason=reason)
        with contextlib.suppress(OSError):  # a full disk: it is said by the mirror
            placement.write(folder, placement.seen_now(known, None))
        self._noted = time.monotonic()

    def _follow(self) -> None:
        """Follow the machine until the connection is lost, or it is no longer wanted.

        Raises:
            NotAvailable: it cannot be reached, or is gone.
            BadFrame: it tells what no relay tells.
        """
        self._place.connect(person=False)
        for problem in self._place.preflight():
            raise NotAvailable(problem.text, problem.hint)
        self._connections += 1
        folder = self._folder / str(self._connections)
        folder.mkdir(mode=0o700)
        self._note(folder, JobState.RUNNING)
        marker = secrets.token_hex(16)
        with tempfile.TemporaryFile() as errors:
            process = self._place.watch(["watch-machine", "--marker", marker], errors)
            lines = RelayLines(process, marker)
            mirror = Mirror(folder, frozenset({_SESSION}))
            try:
                lines.begin(mirror)
                self._take(lines, mirror, folder / _SESSION)
            except NotAvailable as error:
                if last := _last_line(errors):
                    raise NotAvailable(last, error.hint) from error
                raise
            finally:
                lines.end()
                mirror.close()

    def _take(self, lines: RelayLines, mirror: Mirror, session: Path) -> None:
        while not self._closed.is_set():
            frame = lines.frame(_LINE_SECONDS)
            if frame is None:
                continue
            if isinstance(frame, BatchFrame):
                mirror.take(frame.batch)
            if isinstance(frame, EndFrame):
                raise NotAvailable("its recorder ended", "it is started again")
            there = session if session.exists() else self.now.session
            self.now = MachineNow(self.now.place, there, None, time.monotonic())
            if time.monotonic() - self._noted > _NOTE_SECONDS:
                self._note(session.parent, JobState.RUNNING)


def _last_line(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read(1 << 16).decode("utf-8", "replace").strip().splitlines()
    return lines[-1].removeprefix("gpuwatch: error: ") if lines else ""


class Machines:
    """All that are watched; entering begins, leaving ends them."""

    def __init__(self, places: Sequence[tuple[str, Place]], folder: Path) -> None:
        """``places``: each with its name, as on the command line. ``folder``: for what is
        recorded."""
        self._machines = []
        for n, (name, place) in enumerate(places):
            (own := folder / str(n)).mkdir(mode=0o700)
            self._machines.append(Machine(name, place, own))

    def __enter__(self) -> Machines:
        for machine in self._machines:
            machine.start()
        return self

    def __exit__(self, *_: object) -> None:
        for machine in self._machines:
            machine.close(wait=False)
        for machine in self._machines:
            machine.close(wait=True)

    def now(self) -> tuple[MachineNow, ...]:
        """What is known of each, in the order given."""
        return tuple(machine.now for machine in self._machines)


@contextlib.contextmanager
def temporary_folder(*, in_memory: bool = True) -> Iterator[Path]:
    """A private folder, which is removed at the end of the block, also when this process is killed.
    ``in_memory``: where possible in the user's runtime folder."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    in_memory &= os.path.isabs(runtime) and os.access(runtime, os.W_OK | os.X_OK)
    folder = Path(tempfile.mkdtemp(prefix="gpuwatch-", dir=runtime if in_memory else None))
    remover = subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; rm -rf -- "$0"', folder],
        stdin=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        yield folder
    finally:
        remover.communicate()
