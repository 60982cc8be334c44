"""A session whose owner, another user, swaps what lies there while root reads it.

``python -m tests.fuzz.swaps [TRIES]`` tells how often something of root's came to harm.
"""

from __future__ import annotations

import os
import random
import select
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz import bases, raw

NOBODY = 65534
_PATIENCE = 30.0
"""Seconds for one reading; a quiet machine takes a hundredth of one."""

_OWNER = """
import os, random, sys
os.chdir(sys.argv[1])
rng, parent, every = random.Random(sys.argv[2]), os.getppid(), sys.argv[3] == "all"
secret = sys.argv[4]
session = "study/01-bare.gpuwatch"
journal, ahead = session + "-journal", session + "-wal"
names = os.listdir("kept")

def put(name, to):
    if os.path.lexists("new"):
        os.unlink("new")
    if name == "pipe":
        os.mkfifo("new")
    elif name.startswith("/"):
        os.symlink(name, "new")
    else:
        os.link("kept/" + name, "new")
    os.rename("new", to)

def gone(path):
    if os.path.lexists(path):
        os.unlink(path)

def folder():
    os.rename("study", "aside")
    os.symlink(secret, "study")
    os.unlink("study")
    os.rename("aside", "study")

def swap():
    if not every:
        return put(rng.choice(("journal", "journal-names")), journal)
    what = rng.randrange(12)
    if what < 4:
        put(rng.choice(journals), journal)
    elif what < 8:
        put(rng.choice(sessions), session)
    elif what == 8:
        put(rng.choice(("journal", "pipe")), ahead)
        gone(ahead)
    elif what == 9:
        gone(journal)
    else:
        folder()

journals = [n for n in names if n.startswith("journal")] + ["pipe", secret + "/kept"]
sessions = [n for n in names if n.startswith("session")] + ["pipe", secret + "/01-bare.gpuwatch"]
sessions += ["session", "session-whole"] * 4
print("begun", flush=True)
while os.getppid() == parent:
    try:
        swap()
    except OSError:  # what a reader did to a file of ours is its harm, and told by the other side
        pass
"""

_ROOT = """
import os, sys
from gpuwatch.cli import main
told = os.fdopen(os.dup(1), "w")
os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
for line in sys.stdin:
    try:
        word = ("read", "?", "refused")[main(["log", line.rstrip("\\n")])]
    except BaseException as error:
        word = f"{type(error).__name__}: {error}"
    told.write(word + "\\n")
    told.flush()
"""


@dataclass
class Tally:
    """What became of all tries."""

    words: Counter[str] = field(default_factory=Counter)
    """``read``, ``refused``, or what else a reading came to."""
    harmed: Counter[str] = field(default_factory=Counter)
    """Files that only root may write to, which are not what they were."""

    def text(self) -> str:
        told = ", ".join(f"{count} {word}" for word, count in self.words.most_common())
        harm = ", ".join(f"{name} {count} times" for name, count in self.harmed.items())
        return f"{self.words.total()} readings of what another user swaps meanwhile: {told}; " + (
            f"harmed: {harm}" if harm else "nothing of root's was harmed"
        )


def run(tries: int, seed: str, *, every: bool) -> Tally:
    """Let root read so often; ``every``: all that can be swapped is, else the journal alone, for
    one that names a file of root's."""
    work = Path(tempfile.mkdtemp(prefix="gpuwatch-swaps-"))
    try:
        work.chmod(0o711)
        path, secret = _prepared(work)
        return _read(path, secret, tries, [str(work / "theirs"), seed, "all" if every else ""])
    finally:
        shutil.rmtree(work)


def _prepared(work: Path) -> tuple[Path, Path]:
    """A folder of another user's with a session and what is put in its place, and one of root's."""
    theirs, secret = work / "theirs", work / "secret"
    (theirs / "study").mkdir(parents=True)
    (theirs / "kept").mkdir()
    secret.mkdir(mode=0o700)
    path = bases._torn(theirs / "study" / "01-bare.gpuwatch")
    session, journal = path.read_bytes(), Path(f"{path}-journal").read_bytes()
    for name in ("kept", "01-bare.gpuwatch-wal", "01-bare.gpuwatch-journal"):
        (secret / name).write_text("root's\n")
    own = bases._rich(work / "own" / "01-bare.gpuwatch")
    shutil.copy(own, secret)
    ahead = bytearray(session)
    ahead[18:20] = b"\2\2"
    huge = bytearray(journal)
    huge[16:20] = (2**31 - 1).to_bytes(4, "big")
    rng = random.Random("swaps")
    for name, content in {
        "session": session,
        "session-cut": session[: len(session) // 2],
        "session-empty": b"",
        "session-ahead": bytes(ahead),
        "session-whole": own.read_bytes(),
        "journal": journal,
        "journal-names": journal + raw.super_journal(secret / "kept"),
        "journal-huge": bytes(huge),
        "journal-empty": b"",
        "journal-noise": rng.randbytes(5000),
    }.items():
        (theirs / "kept" / name).write_bytes(content)
    for each in (theirs, *theirs.rglob("*")):
        os.chown(each, NOBODY, NOBODY)
    theirs.chmod(0o755)
    return path, secret


def _read(path: Path, secret: Path, tries: int, arguments: list[str]) -> Tally:
    tally, before = Tally(), _state(secret)
    kept = {each: each.read_bytes() for each in secret.iterdir()}
    # One that another user may start.
    python = shutil.which("python3", path="/usr/bin:/bin") or sys.executable
    with (
        subprocess.Popen(
            [python, "-c", _OWNER, *arguments, str(secret)],
            stdout=subprocess.PIPE,
            user=NOBODY,
            group=NOBODY,
        ) as owner,
        subprocess.Popen(
            [sys.executable, "-c", _ROOT],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as root,
    ):
        assert owner.stdout and root.stdin and root.stdout
        try:
            assert owner.stdout.readline() == b"begun\n"
            for _ in range(tries):
                root.stdin.write(f"{path}\n")
                root.stdin.flush()
                if not select.select([root.stdout], [], [], _PATIENCE)[0]:
                    tally.words["hung"] += 1
                    break
                tally.words[root.stdout.readline().rstrip("\n")] += 1
                now = _state(secret)
                for name in before.keys() | now.keys():
                    if before.get(name) != now.get(name):
                        tally.harmed[name] += 1
                if now != before:
                    for each, content in kept.items():
                        each.write_bytes(content)
                    before = _state(secret)
        finally:
            owner.kill()
            root.kill()
    return tally


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    return {
        each.name: (known.st_size, known.st_mtime_ns)
        for each in folder.iterdir()
        for known in (each.lstat(),)
    }


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 500
    print(run(count, "journal", every=False).text())
    print(run(count, "all", every=True).text())
