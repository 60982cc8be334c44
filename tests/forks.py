"""Programs that use torch, each in a fork of one process that has imported it already.

A program prints and ends there as in a process of its own, and takes a tenth of the processor
time. What matters to a test of when something is imported, or of what a process starts with, runs
in a process of its own.
"""

from __future__ import annotations

import gc
import json
import os
import runpy
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path


class Forks:
    """Runs programs one after the other."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def run(
        self, *argv: str, folder: Path, variables: Mapping[str, str]
    ) -> subprocess.CompletedProcess[str]:
        """A script or an archive and its arguments, in ``folder``, with no other ``variables``."""
        assert self._server.stdin and self._server.stdout
        with tempfile.NamedTemporaryFile("r") as out, tempfile.NamedTemporaryFile("r") as errors:
            job = [argv, str(folder), dict(variables), out.name, errors.name]
            print(json.dumps(job), file=self._server.stdin, flush=True)
            code = int(self._server.stdout.readline())
            return subprocess.CompletedProcess(argv, code, out.read(), errors.read())


@contextmanager
def forks(**variables: str) -> Iterator[Forks]:
    """``variables``: what torch reads when it is imported."""
    with subprocess.Popen(
        [sys.executable, __file__],
        env={**os.environ, **variables},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as server:
        yield Forks(server)  # it ends with its input


def _serve() -> None:
    import torch._dynamo  # noqa: F401 (and with it torch; every optimizer imports it)

    gc.freeze()  # no child looks through all of torch when it ends
    for job in sys.stdin:
        if child := os.fork():
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        else:
            _become(*json.loads(job))
            break


def _become(argv: list[str], folder: str, variables: dict[str, str], out: str, errors: str) -> None:
    for number, path in enumerate((os.devnull, out, errors)):
        os.dup2(os.open(path, os.O_RDWR), number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(variables)
    sys.argv = argv
    sys.path[0] = os.path.dirname(argv[0])
    runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    _serve()
