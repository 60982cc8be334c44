"""Names of users. A directory service may take seconds to tell one: nobody waits for it."""

from __future__ import annotations

import pwd
import threading
from collections.abc import Callable

_PATIENCE = 0.1
"""Seconds: files of this machine answer in far less. Only one look-up is waited for that long."""
_MOST = 256
"""Users that are looked up; of more the number stands for the name."""


def _from_the_system(uid: int) -> str:
    return pwd.getpwuid(uid).pw_name


class Users:
    """Looks names up, each in a thread of its own that may stay where it is."""

    def __init__(self, look_up: Callable[[int], str] = _from_the_system) -> None:
        self._look_up = look_up
        self._known: dict[int, str] = {}
        """By number; ``uid 1234`` until the name is known, and where there is none."""
        self._slow = False

    def name(self, uid: int) -> str:
        """The name of a user; ``uid 1234`` as long as it is not known, and where there is none."""
        if uid not in self._known:
            if len(self._known) == _MOST:
                return f"uid {uid}"
            thread = threading.Thread(target=self._ask, args=(uid,), name="user", daemon=True)
            self._known[uid] = f"uid {uid}"
            try:
                thread.start()
            except RuntimeError:  # the system gives no thread now
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
"""Those of this machine."""
