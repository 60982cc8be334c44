"""What is done again and again in a soak: each act starts things, ends them, and checks both."""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import aiohttp

from gpuwatch.recorder.run_folder import recorder_of
from gpuwatch.session.reading.reader import SessionReader
from tests.session.samples import step_numbers
from tests.soak.ground import Ground, first_line
from tests.soak.staying import Staying
from tests.terminal import Pty
from tests.waiting import until

_LONG = 10**6
"""Steps of a run that something else ends."""
_MOST_STUDIES = 12


class Churn:
    """All acts, by name; each raises ``AssertionError`` when something went otherwise."""

    def __init__(self, ground: Ground, staying: Staying, dice: random.Random) -> None:
        self._ground, self._staying, self._dice = ground, staying, dice
        self._kept: list[Path] = []
        self._go = ground.project / "go"
        self.acts: dict[str, Callable[[], None]] = {
            f"run to its end, {kind}": (lambda kind=kind: self._to_its_end(kind))
            for kind in ground.environments
        }
        self.acts |= {
            f"run stopped, {kind}": (lambda kind=kind: self._stopped(kind))
            for kind in ground.environments
        }
        self.acts |= {
            "recorder killed, run taken up": self._taken_up,
            "recorder killed, run stopped": self._recorder_killed,
            "recorder interrupted": self._interrupted,
            "screen of a new run left, run stopped": lambda: self._screen("q"),
            "screen of a new run killed, run stopped": lambda: self._screen("kill"),
            "screen of a new run hung up, run stopped": lambda: self._screen("hang up"),
            "screen attached and left": self._attached,
            "home screen opened and left": lambda: self._home("q"),
            "home screen killed": lambda: self._home("kill"),
            "machine recorded for a time": self._machine,
            "GPU lost and back": self._gpu_lost,
            "show, sessions, log, compare, report, export": self._looked_at,
            "page of the server opened and closed": self._page,
            "server opened and closed": self._served,
            "disk full under a study, which is resumed": self._disk_full,
            "studies deleted": self._deleted,
        }
        if not self._can_mount():
            del self.acts["disk full under a study, which is resumed"]

    def _new(
        self,
        *arguments: object,
        environment: str = "bare",
        steps: int = 20,
        words: tuple[object, ...] = (),
    ) -> Path:
        """A recording in the background; its session, once steps arrive."""
        # No engine can give the GPUs of a driver that is not the machine's.
        done = self._ground.churn(
            "--record", "--detach", "--env", self._ground.environments[environment], *arguments,
            *(() if environment == "bare" else ("--gpus", "none")),
            *(words or self._words(environment, steps)), folder=self._ground.project,
        )  # fmt: skip
        path = Path(done.stdout.strip())
        until(lambda: _steps(path) > 1, f"steps of a run in {environment}")
        return path

    def _words(self, environment: str, steps: int) -> tuple[object, ...]:
        if environment == "bare":
            return self._ground.work(steps)
        return ("--", "python3", self._ground.work(steps)[2], steps, 0.02)

    def _status(self, path: Path) -> str:
        with SessionReader(path) as reader:
            return str(reader.status(reader.meta()).state.value)

    def _over(self, path: Path, state: str) -> None:
        """The run ended so, with every step once and in order, and its folder is gone."""
        until(lambda: not self._ground.folders_of(path), "the end of a run")
        assert self._status(path) == state, f"{path}: {self._status(path)}, not {state}"
        with SessionReader(path) as reader:
            numbers = step_numbers(reader)
        assert numbers == list(range(1, len(numbers) + 1)), f"{path}: steps are missing"
        self._kept.append(path)

    def _to_its_end(self, environment: str) -> None:
        steps = self._dice.randint(5, 40)
        path = self._new(environment=environment, steps=steps)
        self._over(path, "finished")
        assert _steps(path) == steps

    def _stopped(self, environment: str) -> None:
        path = self._new(environment=environment, steps=_LONG)
        self._ground.churn("stop", path)
        self._over(path, "stopped")

    def _killed(self) -> Path:
        """The session of a run whose recorder was killed before its end."""
        held = self._ground.held(self._dice.randint(5, 40), self._go)
        path = self._new("--interval", "0.1", words=held)
        (folder,) = self._ground.folders_of(path)
        recorder = recorder_of(folder)
        assert recorder is not None
        os.kill(recorder.pid, signal.SIGKILL)
        until(lambda: not recorder.alive(), "the end of a recorder that was killed")
        assert self._status(path) == "lost"
        return path

    def _taken_up(self) -> None:
        path = self._killed()
        self._go.touch()
        self._ground.churn("attach", "--record", path)
        self._go.unlink()
        self._over(path, "finished")

    def _recorder_killed(self) -> None:
        path = self._killed()
        self._ground.churn("stop", path, code=None)
        until(lambda: not self._ground.folders_of(path), "the end of a run")
        assert self._status(path) == "stopped", self._status(path)

    def _interrupted(self) -> None:
        path = self._new(steps=_LONG)
        (folder,) = self._ground.folders_of(path)
        recorder = recorder_of(folder)
        assert recorder is not None
        os.kill(recorder.pid, self._dice.choice((signal.SIGINT, signal.SIGTERM)))
        self._over(path, "stopped")

    def _screen(self, end: str) -> None:
        before = self._ground.sessions()
        screen = self._ground.screen(self._ground.churn, "run", *self._ground.work(_LONG))
        try:
            until(lambda: self._ground.sessions() - before and screen.read(0.1), "a new run")
            (path,) = self._ground.sessions() - before
            until(lambda: screen.read(0) and b"step" in screen.sent, "the first steps on a screen")
            _end(screen, end)
        finally:
            screen.close()
        assert self._status(path) == "running", "the run goes on without its screen"
        self._ground.churn("stop", path)
        self._over(path, "stopped")

    def _attached(self) -> None:
        screen = self._ground.screen(self._ground.churn, "attach", self._staying.session)
        try:
            screen.wait("step ", 60)
            for key in (*self._dice.sample(("?", "g", "p", "l", "2", "1", "\t"), 4), "\x1b"):
                screen.type(key)
                _read(screen, 0.4)  # an escape and a key right behind it are one key
            _end(screen, self._dice.choice(("q", "hang up")))
        finally:
            screen.close()

    def _home(self, end: str) -> None:
        screen = self._ground.screen(self._ground.churn)
        try:
            screen.wait("H100", 60)
            _end(screen, end)
        finally:
            screen.close()

    def _machine(self) -> None:
        before = self._ground.sessions()
        self._ground.churn("--record", "--quiet", "--interval", "0.05", "--duration", "2s")
        (path,) = self._ground.sessions() - before
        assert self._status(path) == "finished"
        self._kept.append(path)

    def _gpu_lost(self) -> None:
        lost, back = (self._staying.events(kind) for kind in ("gpu-lost", "gpu-back"))
        self._ground.driver.lose(1)
        try:
            until(lambda: self._staying.events("gpu-lost") > lost, "the event of a lost GPU")
        finally:
            self._ground.driver.restore(1)
        until(lambda: self._staying.events("gpu-back") > back, "the event of a GPU that is back")

    def _looked_at(self) -> None:
        cli, kept = self._ground.churn, self._kept
        if len(kept) < 2:
            self._to_its_end("bare")
            self._to_its_end("bare")
        one, other = self._dice.sample(kept, 2)
        cli("sessions")
        cli("show", one)
        cli("log", one)
        cli("compare", one, other, code=None)
        cli("report", other.parent)
        out = self._ground.project / "exported.csv"
        cli("export", one, "--out", out)
        assert out.stat().st_size > 0
        out.unlink()

    def _page(self) -> None:
        asyncio.run(_one_page(self._staying.port, self._staying.token))

    def _served(self) -> None:
        process = self._ground.churn.start("serve", "--port", "0")
        try:
            address = urlsplit(first_line(process).strip())
            asyncio.run(_one_page(address.port, address.fragment))
            process.terminate()
            process.communicate(timeout=60)
            assert process.returncode == 0
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate()

    def _can_mount(self) -> bool:
        with contextlib.suppress(OSError, subprocess.CalledProcessError), self._small_disk():
            return True
        return False

    @contextlib.contextmanager
    def _small_disk(self) -> Iterator[None]:
        disk = str(self._ground.disk)
        mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "none", disk]
        subprocess.run(mount, check=True, stderr=subprocess.DEVNULL)
        try:
            yield
        finally:
            subprocess.run(["umount", disk], check=True)

    def _disk_full(self) -> None:
        disk, cli = self._ground.disk, self._ground.churn
        with self._small_disk():
            work = self._ground.held(60, self._go)
            study = cli.start("--record", "--quiet", "--out", disk, *work)
            until(lambda: any(_steps(path) for path in disk.glob("*/*.gpuwatch")), "a run on it")
            (path,) = disk.glob("*/*.gpuwatch")
            with (disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
                while True:
                    file.write(b"x" * 4096)
            self._go.touch()
            study.communicate(timeout=60)
            self._go.unlink()
            assert study.returncode == 1, "a session that is not complete is said"
            (disk / "filler").unlink()
            cli("attach", "--record", path)
            assert _steps(path) == 60
            cli("delete", "--yes", path.parent)

    def _deleted(self) -> None:
        while len(self._kept) > _MOST_STUDIES // 2:
            path = self._kept.pop(0)
            self._ground.churn("delete", "--yes", path.parent)
            assert not path.parent.exists()


def _read(screen: Pty, seconds: float) -> None:
    """Read for so long, whatever comes."""
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        screen.read(left)


def _end(screen: Pty, how: str) -> None:
    if how == "kill":
        screen.process.kill()
        screen.process.wait()
        return
    deadline = time.monotonic() + 60
    if how == "q":
        # It leaves one level: help may stand over a page, and that over the screen.
        while screen.process.poll() is None and time.monotonic() < deadline:
            screen.type("q")
            again = time.monotonic() + 2
            while screen.process.poll() is None and time.monotonic() < again:
                screen.read(0.1)
    else:
        screen.hang_up()
    code = screen.end(max(1, deadline - time.monotonic()))
    assert code == 0, f"a screen did not end as it should: {how}"


def _steps(path: Path) -> int:
    with contextlib.suppress(Exception), SessionReader(path) as reader:
        rows = reader.steps(limit=10**6)
        return rows[-1].step if rows else 0
    return 0


async def _one_page(port: int, token: str) -> None:
    """What a browser does: the page, its socket until something is drawn, and away."""
    own = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession() as session:
        async with session.get(own) as page:
            assert page.status == 200
        socket = f"{own}/ws?width=100&height=30"
        async with session.ws_connect(socket, headers={"Origin": own}) as drawn:
            await drawn.send_str(token)
            while (await drawn.receive(timeout=60)).type is not aiohttp.WSMsgType.BINARY:
                pass
