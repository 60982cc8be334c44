"""The programs that stay through a soak: each is looked at every few seconds."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from gpuwatch.session.reading.reader import SessionReader
from tests.soak.ground import Ground, first_line
from tests.soak.growth import Sample, look
from tests.terminal import Pty
from tests.waiting import until

LOOK_SECONDS = 2.0
_NEVER = 10**8
"""Steps of a run that is stopped long before."""


@dataclass
class Watched:
    """A process and what it took, look by look."""

    name: str
    pid: int
    samples: list[Sample] = field(default_factory=list)


class Staying:
    """A recorder of a run, a live screen of it, a home screen with its recorder, and a server."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self._started = time.monotonic()
        self._over = threading.Event()
        self._threads: list[threading.Thread] = []
        cli = ground.stays
        self._recorder = subprocess.Popen(
            cli.argv("--record", "--quiet", *ground.work(_NEVER, 0.05)),
            env=cli.env,
            cwd=ground.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,
        )
        until(lambda: self._steps() > 3, "the first steps of the run that stays")
        (self.session,) = ground.sessions()
        self._live = ground.screen(cli, "attach", self.session)
        self._live.wait("step ")
        self._home = ground.screen(cli)
        self._home.wait("H100")
        self._server = subprocess.Popen(
            cli.argv("serve", "--port", "0", self.session),
            env=cli.env,
            cwd=ground.project,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#(\S+)\n", first_line(self._server))
        assert found is not None, "the server did not say where it is"
        self.port, self.token = int(found[1]), found[2]
        self.watched = (
            Watched("recorder of a run, 2 GPUs", self._recorder.pid),
            Watched("live screen", _descendant(self._live.process.pid, "attach")),
            Watched("home screen", self._home.process.pid),
            Watched("its recorder of the machine", _descendant(self._home.process.pid, "--record")),
            Watched("server for browsers", self._server.pid),
        )
        for screen in (self._live, self._home):
            self._begin(lambda screen=screen: self._drain(screen))
        self._begin(self._look)

    def _begin(self, target: object) -> None:
        thread = threading.Thread(target=target, daemon=True)  # type: ignore[arg-type]
        thread.start()
        self._threads.append(thread)

    def _drain(self, screen: Pty) -> None:
        """A terminal that is read, and remembers nothing."""
        while not self._over.is_set():
            screen.read(0.5)
            screen.sent = b""

    def _look(self) -> None:
        while not self._over.wait(LOOK_SECONDS):
            for each in self.watched:
                sample = look(each.pid, time.monotonic() - self._started)
                if sample is not None:
                    each.samples.append(sample)

    def _steps(self) -> int:
        for path in self._ground.sessions():
            with contextlib.suppress(Exception), SessionReader(path) as reader:
                return reader.last_step() or 0
        return 0

    def gone(self) -> list[str]:
        """Those that ended, which none should."""
        return [each.name for each in self.watched if not os.path.exists(f"/proc/{each.pid}")]

    def events(self, kind: str) -> int:
        """How many events of a kind the run that stays has."""
        with SessionReader(self.session) as reader:
            return sum(each.kind == kind for each in reader.events(limit=10**6))

    def close(self) -> dict[str, int]:
        """End them as a person would; their exit codes."""
        self._over.set()
        for thread in self._threads:
            thread.join()
        codes = {}
        for name, screen in (("live screen", self._live), ("home screen", self._home)):
            screen.type("q")
            codes[name] = screen.end(60)
            screen.close()
        self._server.send_signal(signal.SIGTERM)
        codes["server"] = self._server.wait(60)
        assert self._server.stdout is not None
        self._server.stdout.close()
        self._ground.stays("stop", self.session)
        codes["recorder"] = self._recorder.wait(60)
        return codes


def _descendant(root: int, word: str) -> int:
    """The process with ``word`` on its command line at ``root`` or below it, of which one is."""
    waiting = [root]
    while waiting:
        pid = waiting.pop(0)
        if word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
            return pid
        for task in os.listdir(f"/proc/{pid}/task"):
            children = Path(f"/proc/{pid}/task/{task}/children").read_text()
            waiting += map(int, children.split())
    raise AssertionError(f"no process with {word} below {root}")
