"""Limits of a process that reads hostile files, and what it must not do, noticed as it does it."""

from __future__ import annotations

import faulthandler
import os
import re
import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_NEVER = (
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork"),
    *("socket.bind", "socket.connect", "socket.getaddrinfo", "pty.spawn"),
    *("os.kill", "os.killpg", "signal.pidfd_send_signal"),
    *("ctypes.dlopen", "pickle.find_class", "sqlite3.load_extension", "webbrowser.open"),
)
"""Audit events that reading a file never causes."""
_SIGNALS = ("os.kill", "os.killpg", "signal.pidfd_send_signal")
_CHANGES = {
    **dict.fromkeys(("os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod"), (0,)),
    **dict.fromkeys(("os.rename", "os.link"), (0, 1)),
    **dict.fromkeys(("os.chown", "os.utime", "shutil.rmtree", "os.setxattr"), (0,)),
    "os.symlink": (1,),
    "shutil.copyfile": (1,),
}
"""Audit events of what changes files, with where the paths stand in their arguments."""
_HARMLESS = {"/dev/null"}


def most_resident() -> int:
    """Bytes that this program had resident at most; ``ru_maxrss`` counts who started it as well."""
    (most,) = re.findall(r"^VmHWM:\s*(\d+) kB$", Path("/proc/self/status").read_text(), re.M)
    return int(most) * 1024


class Watch:
    """Notes what the process does that a reader of files must not."""

    def __init__(self, *allowed: Path) -> None:
        """``allowed``: the folders in which it may write."""
        self._allowed = tuple(os.path.realpath(each) + "/" for each in allowed)
        self._on = False
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    @contextmanager
    def watching(self) -> Iterator[None]:
        self.seen.clear()
        self._on = True
        try:
            yield
        finally:
            self._on = False

    def _hook(self, event: str, values: tuple[Any, ...]) -> None:
        if not self._on:
            return
        if event in _NEVER:
            self._note(f"{event} {values!r}")
            if event in _SIGNALS:  # whoever is named may be whoever runs the tests
                raise PermissionError(f"{event} is not for a reader")
        elif event == "open":
            path, mode, flags = values
            writes = bool(flags & _WRITES) or any(c in (mode or "") for c in "wax+")
            if writes and not isinstance(path, int):
                self._within(event, path, follows=not flags & os.O_NOFOLLOW)
        elif event in _CHANGES:
            for place in _CHANGES[event]:
                self._within(event, values[place])
        elif event == "import" and isinstance(values[1], str):
            self._note(f"import of {values[1]}")

    def _within(self, event: str, path: Any, follows: bool = False) -> None:
        if isinstance(path, int):
            return
        self._on = False  # what looks at the path is no reader's doing
        text = os.fsdecode(path)
        folder, name = os.path.split(os.path.abspath(text))
        real = f"{os.path.realpath(folder)}/{name}"
        if follows and os.path.islink(real):
            real = os.path.realpath(real)
        self._on = True
        if real not in _HARMLESS and not real.startswith(self._allowed):
            self._note(f"{event} {text!r}")

    def _note(self, text: str) -> None:
        self.seen.append(text[:300])


def limit_memory(more: int) -> None:
    """Let the process have at most ``more`` bytes of address space beside what it has."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


@contextmanager
def no_large_files(size: int) -> Iterator[None]:
    """No file grows beyond ``size`` bytes: what would fill the disk fails with a word instead."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """End the process, with where it stood, once that took longer."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
