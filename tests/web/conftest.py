"""`gpuwatch serve` as a process of its own, and a real browser."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import IO, Any

import pytest

from tests.conftest import Cli
from tests.report.html.conftest import browser as chromium  # noqa: F401 (a fixture here too)


@dataclass
class Served:
    process: subprocess.Popen[str]
    address: str
    port: int
    token: str

    def get(self, path: str, **headers: str) -> tuple[int, dict[str, str], str]:
        """Status, headers and text of an answer."""
        with closing(HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode("utf-8", "replace")
            return answer.status, dict(answer.getheaders()), text

    def screens(self) -> list[int]:
        """The processes that draw screens for it."""
        listed = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(pid) for pid in listed.split()]


Serve = Callable[..., Served]


@pytest.fixture
def serve(cli: Cli) -> Iterator[Serve]:
    started: list[Served] = []

    def start(*arguments: object, through: Sequence[str] = ()) -> Served:
        process = cli.start("serve", "--port", "0", *arguments, through=through)
        out: IO[str] | None = process.stdout
        assert out is not None
        line = out.readline()
        found = re.fullmatch(r"(http://127\.0\.0\.1:(\d+)/#(\S+))\n", line)
        if found is None:
            process.kill()
            raise AssertionError((line, process.communicate()))
        started.append(Served(process, found[1], int(found[2]), found[3]))
        return started[-1]

    yield start
    for each in started:
        each.process.terminate()
        each.process.communicate(timeout=60)


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:  # noqa: F811
    """A context of the test's own in Chromium, which waits two minutes for whatever is asked."""
    context = chromium.new_context(viewport={"width": 1000, "height": 600})
    context.set_default_timeout(120_000)
    yield context
    context.close()


@pytest.fixture(autouse=True)
def _programs(programs: None) -> None:
    """Every test of this folder starts programs."""
