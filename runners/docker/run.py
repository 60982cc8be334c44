"""A workload in a container: following, finding again, ending."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from docker.errors import NotFound

from gpuwatch.core import paths
from gpuwatch.core.models import JSON, Output, Result, RunState
from gpuwatch.core.processes import ProcessId, identify
from gpuwatch.runners.docker import container, outcome
from gpuwatch.runners.docker.cgroup import Group, holds
from gpuwatch.runners.docker.client import AWAY, Daemon
from gpuwatch.runners.docker.logs import LogReader, outputs
from gpuwatch.runners.docker.stopping import Ending

KIND = "docker"

GIVE_UP_SECONDS = 30.0
"""After this long without an answer, a run whose processes are gone is given up."""

_SOON_SECONDS, _AGAIN_SECONDS = 0.01, 0.25
"""First and longest delay between two checks of the run; each wait doubles the last."""
_PAUSE_SECONDS = 1.0
"""Interval between two checks whether the container is paused."""
_STUCK_SECONDS = 2.0
"""After the end and this long without output, the daemon's log is taken to be stuck."""

_UNLOGGED = "it ended while the Docker daemon was away: what it wrote meanwhile is not in its log"
_UNSEEN = "whether the Docker daemon was running when it ended is unknown"
_UNREAD = "the end of its log could not be read"


class DockerRun:
    """A container, identified by its name. Its own thread follows it once somebody reads.

    The end of the log is not the end of the run. Only the daemon decides that, once the container's
    first process is gone from this machine; while it lives, the daemon is not asked.
    """

    def __init__(
        self,
        daemon: Daemon,
        folder: Path,
        *,
        holder: ProcessId | None = None,
        spawned_ns: int | None = None,
        cursor: str | None = None,
    ) -> None:
        self._daemon = daemon
        self._folder = folder
        self._name = container.name(folder)
        self._id: str | None = None
        self._holder = holder
        self._spawned_ns = spawned_ns
        self._group = Group(holder.pid) if holder is not None and holder.alive() else None
        self._log = LogReader(cursor)
        self._cpu: tuple[float, float] | None = None
        self._looked, self._paused = 0.0, False
        self._follower: threading.Thread | None = None
        self._ending: Ending | None = None
        self._away_since: float | None = None
        self._gone = False
        self._ended: Mapping[str, JSON] | None = None
        self._read_out = False
        self._dead_ns: int | None = None
        self._unwatched = False
        """Whether it had already ended when it was attached."""
        self._doubt: str | None = None
        """Why the end of its output is missing. A daemon that comes back reads the pipes of a
        living container, but no longer those of a dead one."""

    @classmethod
    def attach(cls, handle: Mapping[str, JSON], cursor: str | None, url: str) -> DockerRun:
        """The run for a handle, however incomplete; ``url`` is the default daemon's."""
        noted = handle.get("holder") or {}
        holder = ProcessId(**noted) if noted else None
        spawned = handle.get("spawned_ns")
        run = cls(
            Daemon(str(handle.get("host") or url)),
            Path(str(handle["folder"])),
            holder=holder,
            spawned_ns=spawned if isinstance(spawned, int) else None,
            cursor=cursor,
        )
        if holder is None:  # the recorder died before it noted the start
            with contextlib.suppress(*AWAY), run._daemon.client() as api:
                run.add_details(api.inspect_container(run._name))
        run._unwatched = not run._alive()
        return run

    def add_details(self, details: Mapping[str, JSON]) -> None:
        """Add what was unknown so far from the daemon's description of the container."""
        self._id = str(details["Id"])
        labels = details["Config"].get("Labels") or {}
        if self._spawned_ns is None:
            spawned = labels.get(f"{container.LABEL}spawned_ns", "")
            self._spawned_ns = int(spawned) if spawned.isdigit() else None
        pid = details["State"].get("Pid") or 0
        if self._holder is None and pid:
            holder, group = identify(pid), Group(pid)
            # In this order: a reused PID is not in the container.
            if holds(pid, self._id):
                self._holder, self._group = holder, group

    def handle(self) -> dict[str, JSON]:
        return {
            "kind": KIND,
            "folder": str(self._folder),
            "host": self._daemon.url,
            "container": self._id,
            "name": self._name,
            "holder": None if self._holder is None else asdict(self._holder),
            "spawned_ns": self._spawned_ns,
        }

    def spawned_ns(self) -> int | None:
        return self._spawned_ns

    def state(self) -> RunState:
        if self._ended is not None:
            return RunState.EXITED
        if self._gone or self._away_since is not None:
            return RunState.LOST
        return RunState.PAUSED if self._is_paused() else RunState.RUNNING

    def pids(self) -> Sequence[int]:
        return (self._holder.pid,) if self._holder is not None and self._alive() else ()

    def read(self) -> list[Output]:
        self._follow()
        return outputs(self._log.read(), self._spawned_ns or 0)

    def cursor(self) -> str:
        return self._log.cursor()

    def release(self, cursor: str) -> None:
        """Does nothing: the daemon keeps the log until the container is removed."""

    def result(self) -> Result | None:
        self._follow()
        if self._group is not None:
            self._cpu = self._group.cpu_seconds() or self._cpu
        if self._alive():
            return None
        if self._dead_ns is None and self._holder is not None:
            self._dead_ns = time.monotonic_ns()
        if not self._log.empty:
            return None
        if self._ended is not None and self._read_out:
            return self._result(self._ended, self._doubt)
        if self._gone:
            return self._lost("its container is gone")
        return self._overdue()

    def stop(self) -> None:
        if self._ending is None:
            self._ending = Ending(self._daemon, self._name, self._holder, self._group)
        self._ending.ask()

    def forget(self) -> None:
        with contextlib.suppress(*AWAY), self._daemon.client(timeout=60) as api:
            api.remove_container(self._name, v=True, force=True)
        paths.remove_run_folder(self._folder)

    def _is_paused(self) -> bool:
        """State within the last second."""
        now = time.monotonic()
        if self._group is not None and now - self._looked > _PAUSE_SECONDS:
            self._looked, self._paused = now, self._group.frozen()
        return self._paused

    def _alive(self) -> bool:
        return self._holder is not None and self._holder.alive() is True

    def _overdue(self) -> Result | None:
        """Give up once the processes are gone and the daemon does not report the end or the log."""
        dead = 0.0 if self._dead_ns is None else (time.monotonic_ns() - self._dead_ns) / 1e9
        silent = self._log.silent_seconds()
        if self._ended is not None:
            if silent > GIVE_UP_SECONDS and dead > GIVE_UP_SECONDS:
                return self._result(self._ended, _UNREAD)
            return None
        if dead > _STUCK_SECONDS and silent > _STUCK_SECONDS:
            self._log.interrupt()
        away = self._away_since
        if away is None or time.monotonic() - away < GIVE_UP_SECONDS:
            return None
        if self._holder is not None and dead < GIVE_UP_SECONDS:
            return None
        return self._lost("the Docker daemon went away and did not come back")

    def _result(self, state: Mapping[str, JSON], note: str | None) -> Result:
        """The result of a container that is over; ``note`` says why the end of its output is
        missing, if it is."""
        failure = outcome.failure(state, self._log.last_words)
        user, system = self._cpu or (None, None)
        finished = outcome.unix_ns(str(state.get("FinishedAt") or ""))
        # A daemon that was away reports the time of its own return, not when the processes went.
        times = [self._dead_ns, None if finished is None else outcome.monotonic_ns(finished)]
        known = [t for t in times if t is not None]
        return Result(
            code=None if failure else state.get("ExitCode"),
            signal=None,
            t=max(self._spawned_ns or 0, min(known, default=time.monotonic_ns())),
            user_seconds=user,
            sys_seconds=system,
            out_of_memory=bool(state.get("OOMKilled")),
            cpu_is_bound=self._cpu is not None,
            launcher_failed=failure is not None,
            text=failure or note,
            output_until=None if failure or note is None else self._output_until(),
        )

    def _lost(self, text: str) -> Result:
        return Result(
            None,
            None,
            self._dead_ns or time.monotonic_ns(),
            lost=True,
            text=f"{text} (container {self._name})",
            output_until=self._output_until(),
        )

    def _output_until(self) -> int:
        """``CLOCK_MONOTONIC`` of the last output that is known."""
        newest, spawned = self._log.newest, self._spawned_ns or 0
        return max(spawned, outcome.monotonic_ns(newest)) if newest else spawned

    def _follow(self) -> None:
        if self._follower is None:
            follower = threading.Thread(target=self._work, daemon=True, name="docker-log")
            with contextlib.suppress(RuntimeError):  # no thread available now
                follower.start()
                self._follower = follower

    def _work(self) -> None:
        """Read the log, find out why it ends, and wait for a daemon that is away."""
        pause = _SOON_SECONDS
        while not (self._gone or self._read_out):
            try:
                with self._daemon.client() as api:
                    details = api.inspect_container(self._name)
                    self.add_details(details)
                    self._away_since = None
                    if self._alive():
                        self._doubt = None
                    elif outcome.over(details["State"]):
                        if self._unwatched:
                            seen = outcome.seen(api, self._name, details["State"])
                            self._doubt = None if seen else _UNSEEN
                        self._ended = details["State"]
                    # A log that breaks off is not an event; the next check finds out why.
                    with contextlib.suppress(*AWAY):
                        self._log.take(api, self._name, follow=self._ended is None)
                        self._read_out = self._ended is not None
            except NotFound:
                self._gone = True
            except AWAY:
                self._away_since = self._away_since or time.monotonic()
                self._doubt = _UNLOGGED
            if not self._read_out:
                time.sleep(pause)
                pause = min(2 * pause, _AGAIN_SECONDS)
