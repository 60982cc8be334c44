"""Whose a process is: the number of its user, and the name."""

from __future__ import annotations

import pwd
import threading
from collections.abc import Callable

# A directory service can take seconds to tell a name, and no caller waits for it.
_PATIENCE = 0.1
"""Seconds; local files answer much faster. Only one look-up is waited for this long."""
_MOST = 256
"""Maximum number of looked-up users; beyond it the number stands for the name."""


def _from_the_system(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name


class Users:
    """Looks up names, each on its own thread, which may hang without harm."""

    def __init__(self, look_up: Callable[[int], str] = _from_the_system) -> None:
        self._look_up = look_up
        self._known: dict[int, str] = {}
        """Name by number; ``uid 1234`` until the name is known, or without one."""
        self._slow = False

    def name(self, uid: int) -> str:
        """The name of a user; ``uid 1234`` while it is unknown, or without one."""
        if uid not in self._known:
            if len(self._known) == _MOST:
                return f"uid {uid}"
            thread = threading.Thread(target=self._ask, args=(uid,), name="user", daemon=True)
            self._known[uid] = f"uid {uid}"
            try:
                thread.start()
            except RuntimeError:  # no thread available now
                return self._known.pop(uid)
            if not self._slow:
                thread.join(_PATIENCE)
                self._slow = thread.is_alive()
        return self._known[uid]

    def _ask(self, uid: int) -> None:
        try:
            self._known[uid] = self._look_up(uid)
        except (KeyError, OSError, OverflowError):
            return


USERS = Users()
"""The users of this machine."""


def uid_of(status: bytes) -> int | None:
    """The real user's number in ``/proc/PID/status``; the folder's owner would be root if a process
    is not dumpable."""
    for line in status.split(b"\n"):
        if line.startswith(b"Uid:"):
            return int(line.split()[1])
    return None
