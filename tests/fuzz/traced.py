"""``python -m tests.fuzz.traced [FILES]``: sessions that name what they have no business with,
through the real commands, with the kernel's word (strace) on what these did.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz import bases, claims, holes
from tests.fuzz.child import made_targets

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = (
    ("show",),
    ("log",),
    ("export",),
    ("compare",),
    ("resume",),
    ("attach", "--record"),
    ("stop",),
    ("delete", "--yes"),
)
_CALLS = (
    "kill,tkill,tgkill,pidfd_send_signal,connect,bind,unlink,unlinkat,rmdir,rename,renameat,"
    "renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,truncate,chmod,fchmodat,chown,open,"
    "openat,creat,execve"
)
_WRITES = re.compile(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND)")
_PATH = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OWN_PROGRAM = """
import sys
from tests.fuzz.holes import HOLES
from gpuwatch.cli import main
hole = sys.argv.pop(1)
if hole:
    HOLES[hole]()
sys.exit(main(sys.argv[1:]))
"""


def run(file: int, seed: str, home: Path, sound: bases.Bases, hole: str = "") -> list[str]:
    """Make one file, give it to every command; what they did that they must not."""
    kind = sorted(claims.KINDS)[file % len(claims.KINDS)]
    rng = random.Random(f"{seed}-{file}")
    (home / "tmp").mkdir(parents=True)
    targets, victim, server = made_targets(home)
    try:
        study = home / "case" / "study"
        base = rng.choice(sound.sessions)
        shutil.copytree(base.parent, study)
        path = study / base.name
        how = claims.mutate(rng, path, targets, kind)
        told: list[str] = []
        for command in COMMANDS:
            other = [str(sound.good)] if command == ("compare",) else []
            argv = [*command, *other, str(path)]
            told += [f"{command[0]}: {each}" for each in _traced(argv, home, targets, hole)]
        if victim.poll() is not None:
            told.append("the process was ended")
        try:
            server.accept()
            told.append("the address was called")
        except BlockingIOError:
            pass
        return [f"{file} ({how[:120]}): {each}" for each in told]
    finally:
        victim.kill()
        victim.wait()
        server.close()


def _traced(argv: list[str], home: Path, targets: claims.Targets, hole: str) -> Iterator[str]:
    trace, folder = home / "trace", home / "case"
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("XDG_", "GPUWATCH_"))}
    done = subprocess.run(
        [
            *("strace", "-f", "-qq", "-s", "4096", "--seccomp-bpf", "-e", f"trace={_CALLS}"),
            *("-o", trace, sys.executable, "-c", _OWN_PROGRAM, hole, *argv),
        ],
        cwd=folder,
        env={
            **kept,
            "HOME": str(home / "home"),
            "TMPDIR": str(home / "tmp"),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "Traceback" in done.stderr:
        yield f"a traceback: {done.stderr[-300:]}"
    yield from _unwanted(trace.read_text(errors="replace"), home, targets)
    if (targets.folder / "ran").exists():
        yield "the command of its plan was run"


def _unwanted(trace: str, home: Path, targets: claims.Targets) -> Iterator[str]:
    """Calls that reach out of the folders that a command may write."""
    allowed = tuple(f"{home / each}/" for each in ("case", "home/.cache", "tmp"))
    own = set()
    for line in trace.splitlines():
        pid, _, call = line.partition(" ")
        own.add(pid)
        name, _, rest = call.strip().partition("(")
        if " = -1 " in rest and name != "connect":
            continue
        if name in ("kill", "tkill", "tgkill", "pidfd_send_signal"):
            if rest.partition(",")[0] not in own:
                yield call[:200]
        elif name in ("connect", "bind"):
            if targets.address.rpartition(":")[2] in rest or "docker.sock" in rest:
                yield call[:200]
        elif name == "execve":
            if "touch" in rest or "dcgmi" in rest:
                yield call[:200]
        elif name not in ("open", "openat") or _WRITES.search(rest):
            for found in _PATH.findall(rest):
                there = os.path.abspath(os.path.join(home / "case", found))
                if not there.startswith(allowed) and not there.startswith(("/dev/", "/proc/")):
                    yield call[:200]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.traced", description=__doc__)
    parser.add_argument("files", nargs="?", type=int, default=200)
    parser.add_argument("--seed", default=secrets.token_hex(4))
    parser.add_argument("--hole", choices=sorted(holes.HOLES), default="")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    told = campaign(asked.files, asked.seed, asked.hole, asked.processes)
    print("\n".join(told))
    many = asked.files * len(COMMANDS)
    print(f"{asked.files} files, {many:,} commands traced, {len(told)} to complain of")
    return 1 if told else 0


def campaign(files: int, seed: str, hole: str = "", processes: int = 1) -> list[str]:
    """So many files through all commands; what is to be complained of."""
    with tempfile.TemporaryDirectory(prefix="gpuwatch-traced-") as name:
        folder = Path(name)
        sound = bases.make(folder / "bases")

        def one(file: int) -> list[str]:
            home = folder / str(file)
            told = run(file, seed, home, sound, hole)
            shutil.rmtree(home)
            return told

        with ThreadPoolExecutor(processes) as pool:
            return [each for told in pool.map(one, range(files)) for each in told]


if __name__ == "__main__":
    sys.exit(main())
