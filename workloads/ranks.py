"""``--nproc N``: a launcher starts N ranks, processes of the same command, and waits for them.

The launcher imports no torch. It forwards SIGTERM and SIGINT, ends all ranks when one fails, and
tells the first failure; a rank tells its own to the launcher only. Ranks meet on the loopback
interface, on a socket that the launcher has opened, so that no port is taken in between.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

from .failures import EnvironmentFailure, Failure, RunFailure, UsageFailure
from .stopping import ONE_REQUEST_SECONDS, leave

LAUNCHER = "GPUWATCH_WORKLOAD_LAUNCHER"
"""Environment variable of a rank: the launcher's PID, and the numbers of the files that the rank
inherits: the pipe for its failure, and the listening socket, -1 except in rank 0."""

GRACE_SECONDS = 2.0
"""From the first signal to SIGKILL: a rank that waits for the others cannot handle a signal."""

BROKEN_PIPE = 141
_LOOPBACK = "127.0.0.1"
_PR_SET_PDEATHSIG = 1
_LONGEST = 1_500
"""Characters of a failure's message and hint: a line of ``PIPE_BUF`` bytes is one write."""


@dataclass(frozen=True)
class Rank:
    """A process of a run: its number, of how many, and what it has from its launcher."""

    number: int = 0
    size: int = 1
    port: int = 0
    """Where rank 0 listens on the loopback interface."""
    listener: int | None = None
    """Rank 0's listening socket."""
    failures: int | None = None
    """The pipe for this rank's failure; None in a run without ranks."""

    def fail(self, failure: Failure) -> None:
        """Tell the launcher why this rank ends."""
        assert self.failures is not None
        line = {
            "rank": self.number,
            "kind": failure.kind,
            "message": failure.message[:_LONGEST],
            "hint": failure.hint[:_LONGEST],
        }
        os.write(self.failures, json.dumps(line).encode() + b"\n")


def own_rank() -> Rank:
    """This process's rank, which ends with its launcher; of a run without ranks, the only one."""
    told = os.environ.get(LAUNCHER)
    if told is None:
        return Rank()
    launcher, failures, listener = map(int, told.split())
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != launcher:
        leave(1)
    number, size, port = (int(os.environ[key]) for key in ("RANK", "WORLD_SIZE", "MASTER_PORT"))
    return Rank(number, size, port, listener if listener >= 0 else None, failures)


def launch(size: int, silent: bool) -> int:
    """Run this command once for each of ``size`` ranks; returns the exit code.

    ``silent``: all ranks report elsewhere; else rank 0 has this process's standard output.

    Raises:
        Failure: a rank failed; the others are ended.
    """
    return _Launcher().run(size, silent)


class _Launcher:
    def __init__(self) -> None:
        self._ranks: list[subprocess.Popen[bytes]] = []
        self._signum: int | None = None
        self._asked = 0.0

    def run(self, size: int, silent: bool) -> int:
        for signum in (signal.SIGTERM, signal.SIGINT):
            signal.signal(signum, self._stop)
        signal.signal(signal.SIGALRM, lambda *_: self._kill())
        reading, writing = os.pipe()
        with socket.create_server((_LOOPBACK, 0), backlog=size) as listener:
            for number in range(size):
                self._start(number, size, writing, listener, silent)
        os.close(writing)
        failed = self._wait()
        if self._signum is not None:
            leave(128 + self._signum)
        if failed:
            codes = [rank.returncode for rank in self._ranks]
            if BROKEN_PIPE in codes:
                return BROKEN_PIPE
            _raise_failure(os.read(reading, 1 << 16), failed)
        return 0

    def _start(
        self, number: int, size: int, failures: int, listener: socket.socket, silent: bool
    ) -> None:
        listening = listener.fileno() if number == 0 else -1
        place = {
            LAUNCHER: f"{os.getpid()} {failures} {listening}",
            "RANK": str(number),
            "LOCAL_RANK": str(number),
            "WORLD_SIZE": str(size),
            "LOCAL_WORLD_SIZE": str(size),
            "MASTER_ADDR": _LOOPBACK,
            "MASTER_PORT": str(listener.getsockname()[1]),
            "GLOO_SOCKET_IFNAME": "lo",
            "NCCL_SOCKET_IFNAME": "lo",
        }
        if self._signum is not None:
            return
        self._ranks.append(
            subprocess.Popen(
                [sys.executable, *sys.orig_argv[1:]],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL if silent or number else None,
                env={**os.environ, **place},
                pass_fds=[failures] if number else [failures, listening],
            )
        )
        if self._signum is not None:
            self._send(self._signum)

    def _wait(self) -> dict[int, int]:
        """Wait for all ranks; the exit codes of those that failed by themselves, by rank."""
        failed: dict[int, int] = {}
        while any(rank.poll() is None for rank in self._ranks):
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT)
            if ended is not None and all(rank.pid != ended.si_pid for rank in self._ranks):
                os.waitpid(ended.si_pid, 0)  # an orphan, where this is a container's first process
            codes = {number: rank.poll() for number, rank in enumerate(self._ranks)}
            if not failed and any(codes.values()):
                failed = {number: code for number, code in codes.items() if code}
                self._send(signal.SIGTERM)
                signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
        signal.setitimer(signal.ITIMER_REAL, 0)
        return failed

    def _stop(self, signum: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        if self._signum is None:
            self._signum, self._asked = signum, now
            self._send(signum)
            signal.setitimer(signal.ITIMER_REAL, GRACE_SECONDS)
        elif now - self._asked > ONE_REQUEST_SECONDS:
            self._kill()

    def _kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, signum: int) -> None:
        for rank in self._ranks:
            rank.send_signal(signum)


def _raise_failure(told: bytes, failed: dict[int, int]) -> NoReturn:
    """Raise the first failure: of a rank that was killed, else the first that was told."""
    for number, code in failed.items():
        if code < 0:
            name = signal.Signals(-code).name
            hint = "the kernel's log tells whether memory ran out" if name == "SIGKILL" else ""
            raise RunFailure(f"rank {number} was ended by {name}", hint)
    if not told:
        number, code = next(iter(failed.items()))
        raise RunFailure(f"rank {number} ended with exit code {code}, and did not say why")
    first = json.loads(told.partition(b"\n")[0])
    for of_all in (UsageFailure, EnvironmentFailure):
        if first["kind"] == of_all.kind:
            raise of_all(first["message"], first["hint"])
    raise RunFailure(f"rank {first['rank']}: {first['message']}", first["hint"])
