"""A relay as a process of its own, with a mirror at the other end of its pipes.

``python -m tests.places.relaying THERE HERE`` mirrors a study to the end.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuwatch.places.frames import BatchFrame, EndFrame, Frame, parse
from gpuwatch.places.mirror import Mirror
from gpuwatch.session.mirror.content import digest_of
from gpuwatch.session.study.plan import PLAN, read

MARKER = "0123abcd"


def prepare(there: Path, here: Path) -> None:
    """A folder for the mirror, with the plan."""
    here.mkdir(exist_ok=True)
    shutil.copyfile(there / PLAN, here / PLAN)


def files_of(folder: Path) -> frozenset[str]:
    """The session files of a study's plan."""
    plan = read(folder)
    assert plan is not None
    return frozenset(run.file for run in plan.runs)


class Link:
    """One connection."""

    def __init__(
        self, there: Path, here: Path, *, env: Mapping[str, str] | None = None, every: float = 0.05
    ) -> None:
        self.mirror = Mirror(here, files_of(here))
        words = ("--marker", MARKER, "--every", str(every))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "gpuwatch", "relay", there, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=env,
        )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self.mirror.cursors()).encode() + b"\n")
        self.process.stdin.flush()

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()
        self.mirror.close()

    def lines(self) -> Iterator[bytes]:
        """What the relay prints after its greeting."""
        assert self.process.stdout is not None
        assert self.process.stdout.readline().split() == [b"gpuwatch-relay", MARKER.encode()]
        yield from self.process.stdout

    def frames(self) -> Iterator[Frame]:
        """The frames, each applied before it is returned."""
        for n, line in enumerate(self.lines(), 1):
            frame = parse(line)
            assert frame.n == n
            if isinstance(frame, BatchFrame):
                self.mirror.take(frame.batch)
            yield frame

    def finish(self) -> EndFrame:
        """Mirror to the end, and check that the mirror is whole."""
        *_, end = self.frames()
        assert isinstance(end, EndFrame), end
        assert self.mirror.differing(end) == []
        assert self.process.wait(60) == 0
        return end


def assert_same(there: Path, here: Path) -> None:
    """Every session of the study is here as it is there."""
    for file in files_of(there):
        assert digest_of(there / file) == digest_of(here / file), file


if __name__ == "__main__":
    with Link(Path(sys.argv[1]), Path(sys.argv[2])) as link:
        print(link.process.pid, flush=True)
        link.finish()
