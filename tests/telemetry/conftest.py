from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[2]
if str(_ROOT) not in sys.path:
    sys.path.insert(0, str(_ROOT))

from tests.fake_nvml import FakeDriver
from tests.waiting import until


class Remote:
    """An NVML source in a program of its own, where the fake driver is the driver."""

    def __init__(self, env: dict[str, str], **options: Any) -> None:
        env = env | {"PYTHONPATH": os.pathsep.join([str(_ROOT / "src"), *sys.path[1:]])}
        server = Path(__file__).with_name("nvml_server.py")
        self._program = subprocess.Popen(
            [sys.executable, str(server), json.dumps(options)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.first: dict[str, Any] = self._line()
        self.channels = {(c["device"], c["metric"]): c for c in self.first.get("channels", ())}
        self.changes: list[dict[str, Any]] = []
        """All so far, also those that the next one took back before anybody looked."""
        self.events: list[dict[str, Any]] = []
        self.of_processes: list[dict[str, Any]] = []
        """Events about lists of processes: the stand-in is busy and lists none."""

    def _line(self) -> Any:
        assert self._program.stdout
        return json.loads(self._program.stdout.readline())

    def ask(self, question: str) -> Any:
        assert self._program.stdin
        self._program.stdin.write(question + "\n")
        self._program.stdin.flush()
        return self._line()

    def sample(self) -> dict[tuple[str, str], float | None]:
        """Sample and note changes and events; the values by device and metric."""
        values = self.ask("sample")
        sampled = {
            (c["device"], c["metric"]): v
            for c, v in zip(self.first["channels"], values, strict=True)
        }
        changes, events = self.ask("drain")
        for channel in changes:
            self.channels[channel["device"], channel["metric"]] = channel
        self.changes += changes
        for event in events:
            told = self.of_processes if event["kind"].startswith("processes-") else self.events
            told.append(event)
        return sampled

    def until(self, claim: Callable[[dict[tuple[str, str], float | None]], bool]) -> None:
        """Sample until the claim holds."""
        until(lambda: claim(self.sample()))

    def registered(self) -> None:
        """Come back once Xid errors are waited for: one from before is not told."""
        until(lambda: self.ask("waiting"))

    def stop(self) -> None:
        self._program.kill()
        self._program.communicate()


@pytest.fixture
def remote() -> Iterator[Callable[..., Remote]]:
    started: list[Remote] = []

    def start(driver: FakeDriver | dict[str, str], **options: Any) -> Remote:
        env = driver if isinstance(driver, dict) else driver.env
        started.append(Remote(env, **options))
        return started[-1]

    yield start
    for one in started:
        one.stop()
