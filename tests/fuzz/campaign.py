"""Many hostile sessions, read in processes of their own; what became of them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tests.fuzz.child import Task

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests" / "data" / "fuzz"


@dataclass
class Tally:
    """What became of all files of a campaign."""

    files: int = 0
    read: int = 0
    """Files that no use refused."""
    partly: int = 0
    refused: int = 0
    """Files that every use of the file itself refused."""
    uses: int = 0
    slowest: tuple[float, str, str] = (0.0, "", "")
    """CPU seconds of one use, the use, and the file."""
    memory: int = 0
    """The most that a process had resident, in bytes."""
    complaints: dict[str, list[str]] = field(default_factory=dict)
    """By file."""

    def complain(self, name: str, how: str, told: list[str]) -> None:
        name = f"{name} ({how[:300]})"
        self.complaints[name] = told
        print("\n  ".join([name, *told[:6]]), flush=True)

    def add(self, done: dict[str, Any]) -> None:
        self.files += 1
        self.uses += done["uses"]
        self.read += done["refused"] == 0
        self.refused += done["refused"] >= 0.7 * done["uses"]
        seconds, use = done["slowest"]
        self.slowest = max(self.slowest, (seconds, use, f"{done['name']} ({done['how'][:80]})"))
        self.memory = max(self.memory, done["memory"])
        if done["complaints"]:
            self.complain(done["name"], done["how"], done["complaints"])

    def fell(self, task: Task, use: dict[str, Any], how: str) -> None:
        """The process ended with this file: a hang, or a crash."""
        self.files += 1
        self.complain(task.name, str(use.get("how")), [f"use {use.get('use')}: {how}"])

    def text(self) -> str:
        """What to tell at the end."""
        some = self.files - self.read - self.refused
        return (
            f"{self.files:,} hostile files, {self.uses:,} uses: {self.read:,} read, "
            f"{some:,} read in part, {self.refused:,} refused with a word, "
            f"{len(self.complaints):,} to complain of; slowest use {self.slowest[0]:.2f} s of CPU "
            f"({self.slowest[1]} of {self.slowest[2]}); at most "
            f"{self.memory / 2**20:.0f} MiB resident"
        )


def tasks(seed: str, count: int, kind: str = "session", every: int = 1) -> list[Task]:
    """Files that follow from a seed."""
    names = [f"{kind}-{seed}-{n}" for n in range(count)]
    return [Task(name, name, kind, every=every) for name in names]


def corpus() -> list[Task]:
    """The files that once failed."""
    return [
        Task(each.name, each.name, kept=str(each)) for each in sorted(CORPUS.glob("*.gpuwatch"))
    ]


def run(all_: Iterable[Task], processes: int = 1, hole: str | None = None) -> Tally:
    """Read all of them; what is to be complained of is printed at once. ``hole``: one of
    ``holes.HOLES``, which is put back."""
    listed, tally = list(all_), Tally()
    parts = [listed[n::processes] for n in range(processes)]
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(lambda part: _take(part, tally, hole), parts))
    return tally


def _take(part: list[Task], tally: Tally, hole: str | None) -> None:
    for task, done, use, how in _outcomes(part, hole):
        if done is not None:
            tally.add(done)
        else:
            tally.fell(task, use, how)


def _outcomes(
    part: list[Task], hole: str | None
) -> Iterator[tuple[Task, dict[str, Any] | None, dict[str, Any], str]]:
    """Each task with what came of it: an outcome, or at which use its process ended, and how."""
    left = list(part)
    while left:
        home = Path(tempfile.mkdtemp(prefix="gpuwatch-fuzz-"))
        try:
            for told in _child(home, tuple(left), hole):
                left.remove(told[0])
                yield told
        finally:
            shutil.rmtree(home, ignore_errors=True)


def _child(
    home: Path, part: Sequence[Task], hole: str | None
) -> Iterator[tuple[Task, dict[str, Any] | None, dict[str, Any], str]]:
    """The outcomes of one process, until it is through or has ended."""
    variables = {n: v for n, v in os.environ.items() if not n.startswith(("XDG_", "GPUWATCH_"))}
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzz.child", str(home), *([hole] if hole else ())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env={**variables, "OPENBLAS_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"},
            text=True,
        )
        assert process.stdin is not None and process.stdout is not None
        use: dict[str, Any] = {}
        try:
            if not any("ready" in line for line in process.stdout):
                process.wait()
                errors.seek(0)
                raise RuntimeError(f"the process did not start: {errors.read()[-3000:]}")
            for task in part:
                process.stdin.write(json.dumps(asdict(task)) + "\n")
                process.stdin.flush()
                done = None
                for line in process.stdout:
                    told = json.loads(line)
                    if "done" in told:
                        done = told["done"]
                        break
                    use = told
                if done is None:
                    process.wait()
                    errors.seek(0)
                    yield task, None, use, f"ended ({process.returncode}): {errors.read()[-1500:]}"
                    return
                yield task, done, use, ""
        finally:
            process.kill()
            process.wait()
            process.stdin.close()
            process.stdout.close()
