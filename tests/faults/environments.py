"""The same fault in each environment: a program's command line, and what an engine left of it."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from pathlib import Path

import docker
import pytest

from tests.conftest import Cli
from tests.faults.aftermath import Kept, complete, events, kept, log, nothing_left, sessions
from tests.runners.docker.conftest import containers
from tests.waiting import until

KINDS = [
    "bare",
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("apptainer", marks=pytest.mark.apptainer),
]


@dataclass(frozen=True)
class Place:
    """gpuwatch's command line with one environment, and where its sessions go."""

    cli: Cli
    kind: str
    env: str
    out: Path

    def arguments(self, *command: object, options: str = "") -> list[object]:
        head = ["--record", "--quiet", "--interval", "0.1", "--out", self.out]
        return [*head, "--env", self.env + options, "--", *command]

    @property
    def path(self) -> Path:
        """The only session."""
        until(lambda: sessions(self.out))
        (path,) = sessions(self.out)
        return path

    def kept(self) -> Kept:
        return kept(self.path)

    def wait_for_line(self, text: str) -> None:
        """Wait until the workload's log holds a line."""
        until(lambda: sessions(self.out) and text in log(self.path))

    def happened(self, event: str) -> str:
        """Wait for an event; its text."""
        until(lambda: event in events(self.path))
        return text_of(self.kept(), event)

    def nothing_left(self, mark: str = "") -> str:
        """``nothing``, once no process, folder, file or container of the run is there.

        ``mark`` is in the command line of every process of the workload.
        """
        if mark:
            until(lambda: not marked(mark))
        if self.kind == "docker":
            with contextlib.closing(docker.APIClient(self.cli.env["DOCKER_HOST"])) as api:
                assert containers(api, self.cli.home) == []
        assert not mounts(self.cli.home.parent)
        return nothing_left(self.cli, self.out)


def text_of(found: Kept, event: str) -> str:
    """The text of the first event of a kind."""
    return next(text for kind, text in found.events if kind == event)


def marked(mark: str) -> list[int]:
    """The processes of this machine with ``mark`` in their command line, without gpuwatch's own."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                own = b"gpuwatch" in words or any(word.endswith(b"/shim.py") for word in words)
                if not own and any(mark.encode() in word for word in words):
                    found.append(int(entry.name))
    return found


def mounts(folder: Path) -> list[str]:
    """What is mounted below a folder, or of a file below it."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    return [line for line in lines if f"{folder}/" in line]


def words(said: str) -> str:
    """What a command said, for the table: without its prefix, paths as ``PATH``."""
    return re.sub(r"(?<![\w/])/[\w/.+-]+", "PATH", said.replace("gpuwatch: error: ", "").strip())


STEP = """
import json, os, sys, time
def step(number):
    line = json.dumps({"event": "step", "step": number, "samples": 1, "seconds": 0.01})
    for text in (f":::GPUWATCH {line}\\n", f"log line {number}\\n"):
        sys.stdout.write(text)  # whole, whatever PYTHONUNBUFFERED says
        sys.stdout.flush()
"""


def python(mark: str, body: str) -> list[str]:
    """A program that can tell of steps; ``mark`` tells its processes from all others."""
    return ["python3", "-c", f"# {mark}\n{STEP}{body}"]


def goes_on(mark: str, folder: Path, steps: int, code: int = 0) -> list[str]:
    """A program that makes a step every 0.02 s, until there is a file ``go`` in the test's folder
    and it has made a multiple of ``steps``; it ends with ``code``."""
    body = f"""
n = 0
while n == 0 or n % {steps} or not os.path.exists({str(folder / "go")!r}):
    n += 1
    step(n)
    time.sleep(0.02)
sys.exit({code})
"""
    return python(mark, body)


def whole(found: Kept, steps: int) -> None:
    """Such a program is recorded to its last step."""
    complete(found, len(found.steps))
    assert found.steps[-1] == len(found.steps) and len(found.steps) % steps == 0


def stepping_program(mark: str, steps: int, code: int = 0) -> list[str]:
    """A program that makes a step every 0.02 s and ends with ``code``."""
    body = f"for n in range(1, {steps + 1}):\n    step(n)\n    time.sleep(0.02)\nsys.exit({code})\n"
    return python(mark, body)
