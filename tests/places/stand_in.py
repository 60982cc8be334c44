"""A program that starts as gpuwatch's archive does, for tests of places alone: it notes its attempt
under the study's lock, does what ``plan.json`` says, and saves when it is told to end."""

from __future__ import annotations

import zipfile
from pathlib import Path

_MAIN = """
import fcntl, json, os, signal, sys, time

command, folder, *rest = sys.argv[1:]
plan = json.load(open(os.path.join(folder, "plan.json")))

def path(name):
    return os.path.join(folder, name)

def end(*_):
    with open(path("saved"), "a") as file:
        file.write("saved\\n")
    sys.exit(1)

if "--look" in rest:
    sys.exit(plan.get("old") or print("started"))
elif command == "start-plan":
    attempt = rest[1]
    if "refuse" in plan:
        sys.exit(plan["refuse"])
    lock = os.open(folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with open(path("attempts"), "a+") as file:
        file.seek(0)
        if attempt in file.read().split():
            sys.exit("this attempt was started already")
        file.write(attempt + "\\n")
    if "--detach" in rest and os.fork():
        sys.exit(0)
    if "--detach" in rest:
        os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN if plan.get("stubborn") else end)
    with open(path("process.json.part"), "w") as file:
        json.dump({"pid": os.getpid(), "cwd": os.getcwd(), "environment": dict(os.environ)}, file)
    os.rename(path("process.json.part"), path("process.json"))
    memory = bytearray(os.urandom(1 << 20) * plan.get("megabytes", 0))
    until = time.monotonic() + plan.get("seconds", 600)
    while time.monotonic() < until and not os.path.exists(path("go")):
        time.sleep(0.05)
    sys.exit(plan.get("code", 0))
elif command == "stop":
    os.kill(json.load(open(path("process.json")))["pid"], signal.SIGTERM)
    fcntl.flock(os.open(folder, os.O_RDONLY), fcntl.LOCK_SH)
else:
    sys.stdout.write(" ".join([command, *rest]) + "\\n")
    sys.stdout.write(sys.stdin.read())
"""


def make(path: Path) -> Path:
    """Write it to ``path``, and return that."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("__main__.py"), _MAIN)
    return path
