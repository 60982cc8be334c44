"""A process that makes hostile sessions, one after the other, and reads each as gpuwatch does.

``python -m tests.fuzz.child HOME`` with a list of tasks on standard input, a line of JSON each; it
answers with a line when it begins one and another when it is done. What hangs ends the process. A
second argument names one of ``holes.HOLES``, which is put back.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuwatch.core.processes import identify
from tests.fuzz import (
    bases,
    claims,
    folders,
    holes,
    jail,
    neighbours,
    raw,
    rows,
    schemas,
    uses,
    written,
)

_SECONDS = 60.0
"""For one use of one file; the quiet machine takes a hundredth."""
_MEMORY = 768 << 20
"""Bytes of address space beside what the program itself has."""
_LARGEST_FILE = 256 << 20
_KINDS = ("raw", "raw", "raw", "rows", "rows", "rows", "schema", "neighbours")


@dataclass(frozen=True)
class Task:
    """A file to be read: made from a seed, or one that is kept."""

    name: str
    seed: str
    kind: str = "session"
    """One of ``uses.COMMANDS``."""
    kept: str | None = None
    """A file of the corpus, in place of one that is made."""
    every: int = 1
    """Of a session: each so many-th use alone, from one that the seed chooses."""
    lie: str | None = None
    """Of claims: one of ``claims.KINDS``."""
    keep: str | None = None
    """Where a session goes once it is made, with its journal: a path without their suffixes."""


class Child:
    """The jail's folders, what lies in them, and the sound sessions."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.case, self.out, self.tmp = home / "case", home / "out", home / "tmp"
        self.outside = home / "outside"
        for each in (self.case, self.out, self.tmp, self.outside, home / "home"):
            each.mkdir(parents=True, exist_ok=True)
        os.environ.update(HOME=str(home / "home"), TMPDIR=str(self.tmp))
        self.targets, self._victim, self._server = made_targets(home)
        self.canary = self.outside / "kept"
        self.canary.write_text("stays\n")
        self.bases = bases.make(home / "bases")
        self.study = folders.study(home / "study")
        self.watch = jail.Watch(self.case, self.out, self.tmp, home / "home")
        self.before = self._outside()
        self._warm_up()
        self.files, self.threads = jail.open_files(), threading.active_count()
        jail.limit_memory(_MEMORY)

    def _warm_up(self) -> None:
        """Import all that reading needs, once."""
        sessions = self.bases.sessions[0].parent
        for kind, sound in (("session", sessions), ("claims", sessions), ("folder", self.study)):
            study = self.case / "warm"
            shutil.copytree(sound, study)
            path = next(study.glob("01-*.gpuwatch"))
            place = uses.Place(study, path, self.bases.good, self.out)
            for which in range(uses.number(kind)):
                if told := uses.use(kind, place, which).complaints:
                    raise AssertionError(f"a sound {kind}: {which} {told}")
            shutil.rmtree(study, ignore_errors=True)
        for kind in ("claims", "study", "profile", "output"):
            self.files, self.threads = 1000, 1000
            self.run(Task("", "1", kind))

    def run(self, task: Task) -> dict[str, Any]:
        """Make the file, use it, clean up; what is to be complained of."""
        rng = random.Random(task.seed)
        shutil.rmtree(self.case, ignore_errors=True)
        self.case.mkdir()
        os.chdir(self.case)
        path, how = self._made(rng, task)
        if task.keep is not None:
            for each in path.parent.glob(f"{path.stem}.*"):
                shutil.copy(each, task.keep + each.name.removeprefix(path.stem))
        place = uses.Place(path.parent, path, self.bases.good, self.out)
        complaints, words, slowest = [], [], (0.0, "")
        every = task.every if task.kind == "session" else 1
        for which in range(rng.randrange(every), uses.number(task.kind), every):
            _say(use=which, how=how)
            with jail.at_most(_SECONDS), jail.no_large_files(_LARGEST_FILE), self.watch.watching():
                done = uses.use(task.kind, place, which)
            words.append(done.word)
            slowest = max(slowest, (done.seconds, done.use))
            complaints += [f"{done.use}: {each}" for each in (*done.complaints, *self.watch.seen)]
            complaints += [f"{done.use}: {each}" for each in self._left()]
        return {
            "name": task.name,
            "how": how,
            "complaints": complaints,
            "refused": words.count("refused"),
            "uses": len(words),
            "slowest": slowest,
            "memory": jail.most_resident(),
        }

    def _made(self, rng: random.Random, task: Task) -> tuple[Path, str]:
        study = self.case / "study"
        if task.kept is not None:
            study.mkdir()
            kept = Path(task.kept)
            for each in kept.parent.glob(f"{kept.stem}.*"):
                name = each.name.replace(kept.stem, "01-bare")
                shutil.copy(each, study / name)
            return study / "01-bare.gpuwatch", f"kept {kept.name}"
        if task.kind not in ("session", "claims"):
            return self._other(rng, task.kind, study)
        base = rng.choice(self.bases.sessions)
        shutil.copytree(base.parent, study)
        path = study / base.name
        if task.kind == "claims":
            lie = task.lie or rng.choice(sorted(claims.KINDS))
            told = claims.mutate(rng, path, self.targets, lie)
            return path, f"{base.parent.name}: {told}"
        kind = rng.choice(_KINDS)
        if kind == "raw":
            return path, f"{base.parent.name}: {raw.mutate(rng, path)}"
        if kind == "rows":
            return path, f"{base.parent.name}: {rows.mutate(rng, path)}"
        if kind == "schema":
            return path, f"{base.parent.name}: {schemas.mutate(rng, path)}"
        path, how = neighbours.mutate(rng, path, self.canary)
        return path, f"{base.parent.name}: neighbours: {how}"

    def _other(self, rng: random.Random, kind: str, study: Path) -> tuple[Path, str]:
        if kind == "folder":
            shutil.copytree(self.study, study)
            return study / "01-run.gpuwatch", folders.spoil(rng, study)
        study.mkdir()
        shutil.rmtree(self.out / "imported", ignore_errors=True)
        if kind == "output":
            path = study / "01-bare.gpuwatch"
            with jail.at_most(_SECONDS):
                return path, written.record(rng, path)
        how = {"study": folders.toml, "profile": folders.profile}[kind]
        path = how(rng, study)
        return path, f"{kind} {path.name}"

    def _left(self) -> list[str]:
        """What a reader left behind, or changed where nothing of the file's is."""
        told = []
        if self._victim.poll() is not None:
            told.append("a process that the file named was ended")
            self.targets, self._victim, self._server = made_targets(self.home)
        with contextlib.suppress(BlockingIOError):
            self._server.accept()
            told.append("the address that the file named was called")
        for left in os.listdir(self.tmp):
            told.append(f"left behind in the temporary folder: {left}")
            shutil.rmtree(self.tmp / left, ignore_errors=True)
        if (now := self._outside()) != self.before:
            told.append(f"changed elsewhere: {sorted(set(now) ^ set(self.before))}")
            self.canary.write_text("stays\n")
            self.before = self._outside()
        if (files := jail.open_files()) > self.files:
            told.append(f"{files - self.files} files left open")
            self.files = files
        if (threads := threading.active_count()) > self.threads:
            told.append(f"{threads - self.threads} threads left")
            self.threads = threads
        return told

    def _outside(self) -> list[tuple[str, int, int]]:
        found = []
        runs = self.home / "home/.local/state/gpuwatch/runs"
        for folder in (self.outside, self.bases.good.parent, runs):
            for each in sorted(folder.rglob("*")):
                known = each.lstat()
                found.append((str(each), known.st_size, known.st_mtime_ns))
        return found


def made_targets(home: Path) -> tuple[claims.Targets, subprocess.Popen[bytes], socket.socket]:
    """What files may try to reach, and by what it is seen whether they did."""
    # It ends with this process, however that ends.
    victim = subprocess.Popen(["cat"], stdin=subprocess.PIPE, start_new_session=True)
    process = identify(victim.pid)
    assert process is not None
    server = socket.create_server(("127.0.0.1", 0))
    server.setblocking(False)
    address = "{}:{}".format(*server.getsockname())
    note = {"workload": victim.pid, "workload_start_time": process.start_time}
    other = home / "home/.local/state/gpuwatch/runs/0123456789ab"
    for folder in (home / "outside/run", other):
        (folder / "spool").mkdir(parents=True, exist_ok=True)
        (folder / "file").write_text("stays\n")
        (folder / "started.json").write_text(json.dumps({**asdict(process), **note}))
    # A run of this user's own, of which no file that is read here is the session.
    (other / "session").write_text(str(home / "outside" / "another.gpuwatch"))
    handle = {"kind": "bare", "folder": str(other), "holder": asdict(process)}
    (other / "handle.json").write_text(json.dumps(handle))
    (other / "recorder.lock").write_text(json.dumps(asdict(process)))
    targets = claims.Targets(home / "outside/run", process, address, other.name)
    return targets, victim, server


def _say(**what: object) -> None:
    sys.__stdout__.write(json.dumps(what) + "\n")  # type: ignore[union-attr]
    sys.__stdout__.flush()  # type: ignore[union-attr]


def main(home: Path, hole: str | None = None) -> None:
    child = Child(home)
    if hole is not None:
        holes.HOLES[hole]()
    _say(ready=True)
    for line in sys.stdin:
        task = Task(**json.loads(line))
        began = time.monotonic()
        outcome = child.run(task)
        _say(done=outcome, seconds=time.monotonic() - began, task=asdict(task))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
