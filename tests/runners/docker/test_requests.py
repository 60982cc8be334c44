"""What a run asks the Docker daemon, and how often."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runners.docker.conftest import Lab

pytestmark = pytest.mark.docker

REQUEST = re.compile(rb"^([A-Z]+) (?:/v[\d.]+)?(/[a-z]+)[^ ]*? HTTP/1", re.MULTILINE)


class Listener:
    """A socket in front of the daemon's that passes everything on and notes what is asked."""

    def __init__(self, path: Path, daemon: str) -> None:
        self._daemon = daemon
        self.asked: Counter[str] = Counter()
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.bind(str(path))
        self._socket.listen()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                daemon = socket.socket(socket.AF_UNIX)
                daemon.connect(self._daemon)
                for ends in ((client, daemon), (daemon, client)):
                    asks = ends[0] is client
                    threading.Thread(target=self._pass_on, args=(*ends, asks), daemon=True).start()

    def _pass_on(self, here: socket.socket, there: socket.socket, asks: bool) -> None:
        with contextlib.suppress(OSError):
            while data := here.recv(1 << 16):
                if asks:
                    self._note(data)
                there.sendall(data)
            there.shutdown(socket.SHUT_WR)

    def _note(self, data: bytes) -> None:
        for method, path in REQUEST.findall(data):
            self.asked[f"{method.decode()} {path.decode()}"] += 1


@pytest.fixture
def listener(tmp_path: Path, lab: Lab) -> Iterator[Listener]:
    url = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    path = tmp_path / "docker.sock"
    found = Listener(path, url.removeprefix("unix://"))
    lab.cli.variables["DOCKER_HOST"] = f"unix://{path}"
    yield found
    found.close()


def test_a_run_asks_the_daemon_once_who_it_is_after_the_preflight(
    lab: Lab, listener: Listener
) -> None:
    assert lab.record("true").result["code"] == 0
    asked = listener.asked
    assert asked["GET /info"] == 2
    assert asked["GET /version"] == 3, "a third time for the name of the engine"
    assert asked["POST /containers"] == 2 and asked["DELETE /containers"] == 1
    assert asked["GET /images"] == 2
