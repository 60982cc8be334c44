"""Ending a container: SIGTERM to all processes in it, SIGKILL after the grace period."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time

from docker.errors import NotFound

from gpuwatch.core.processes import ProcessId
from gpuwatch.runners.docker.cgroup import Group
from gpuwatch.runners.docker.client import AWAY, Daemon
from gpuwatch.runners.local import GRACE_SECONDS

_LOOK_SECONDS = 0.05
_AGAIN_SECONDS = 0.5


class Ending:
    """Works on its own thread, with the daemon or, if that is away, without it.

    The daemon's own ``stop`` signals only one process. Those that outlive it are killed with it
    without warning, by the kernel's rule for PID namespaces; so all are signalled together.
    """

    def __init__(
        self, daemon: Daemon, name: str, holder: ProcessId | None, group: Group | None
    ) -> None:
        self._daemon = daemon
        self._name = name
        self._holder = holder
        self._group = group
        self._asked = 0

    def ask(self) -> None:
        """First call: ask it to end; second call: kill at once. Safe in a signal handler: returns
        immediately if a thread is available."""
        self._asked += 1
        if self._asked == 1:
            try:
                threading.Thread(target=self._work, daemon=True, name="docker-stop").start()
            except RuntimeError:  # no thread available now
                self._work()

    def _work(self) -> None:
        if self._holder is None:
            self._by_daemon()
            return
        self._unpause()
        if not self._signal_all():
            self._daemon_signal("SIGTERM")
        deadline = time.monotonic() + GRACE_SECONDS
        while self._alive() and self._asked < 2 and time.monotonic() < deadline:
            time.sleep(_LOOK_SECONDS)
        while self._alive():
            # The end of its first process ends everything in the container.
            with contextlib.suppress(OSError):
                os.kill(self._holder.pid, signal.SIGKILL)
            self._unpause()
            self._daemon_signal("SIGKILL")
            time.sleep(_AGAIN_SECONDS)

    def _alive(self) -> bool:
        return self._holder is not None and self._holder.alive() is True

    def _signal_all(self) -> bool:
        """SIGTERM to every process except the container's init; whether that was permitted."""
        assert self._holder is not None
        others = set(self._group.processes() if self._group else ()) - {self._holder.pid}
        if not others or not self._alive():
            return False
        for pid in others:
            try:
                os.kill(pid, signal.SIGTERM)
                os.kill(pid, signal.SIGCONT)  # a stopped process would not receive it
            except ProcessLookupError:
                continue
            except PermissionError:
                return False
        return True

    def _unpause(self) -> None:
        """No signal reaches a paused container; under cgroup v1 not even SIGKILL."""
        if self._group is not None and self._group.frozen():
            with contextlib.suppress(*AWAY), self._daemon.client() as api:
                api.unpause(self._name)

    def _daemon_signal(self, name: str) -> None:
        with contextlib.suppress(*AWAY), self._daemon.client() as api:
            api.kill(self._name, signal=name)

    def _by_daemon(self) -> None:
        """End a container whose processes are not known here, for as long as it takes."""
        while True:
            grace = 0 if self._asked > 1 else int(GRACE_SECONDS)
            try:
                with self._daemon.client() as api:
                    api.stop(self._name, timeout=grace)
                return
            except NotFound:
                return
            except AWAY:
                time.sleep(_AGAIN_SECONDS)
