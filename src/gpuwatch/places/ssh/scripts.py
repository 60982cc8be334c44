"""The scripts that run on a host, for any POSIX shell."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from gpuwatch.places.base import STUDY
from gpuwatch.places.shell import NO_PYTHON as NO_PYTHON
from gpuwatch.places.shell import path, python

NO_WORK, NO_TAR, NO_FOLDER, NO_ROOM, NO_CAPSULE = 92, 93, 94, 95, 97
"""Exit codes of the scripts, beside ``NO_PYTHON``."""
_OWN = ".gpuwatch.pyz"
"""gpuwatch's archive in a study's folder: the cache may be emptied while the study runs."""

# Reads an archive from standard input and puts it in place if it is whole.
_RECEIVE = """\
import hashlib, os, sys
path, digest = sys.argv[1:]
data = sys.stdin.buffer.read()
if hashlib.sha256(data).hexdigest() != digest:
    sys.exit("it did not arrive whole")
part = "%s.%d" % (path, os.getpid())
try:
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    with open(part, "wb") as file:
        file.write(data)
    os.replace(part, path)
except OSError as error:
    if os.path.exists(part):
        os.unlink(part)
    sys.stderr.write("%s: %s" % (error.filename or part, error.strerror))
    sys.exit(NO_ROOM)
""".replace("NO_ROOM", str(NO_ROOM))

# Starts a recorder in the background, if its attempt was not started yet. Until it has begun or
# failed, the file "starting" is locked.
_START = """\
import fcntl, os, subprocess, sys, time
folder, attempt, *command = sys.argv[1:]
lock = open(os.path.join(folder, "starting"), "w")
for _ in range(20):  # whoever asks for the state locks it for a moment
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        break
    except BlockingIOError:
        time.sleep(0.1)
else:
    sys.exit(0)
try:
    with open(os.path.join(folder, "attempts")) as file:
        if attempt in file.read().split():
            sys.exit(0)
except FileNotFoundError:
    pass
log = open(os.path.join(folder, "start.log"), "w")
if os.fork() == 0:
    os.setsid()
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    subprocess.call(command, stdout=log, stderr=log)
"""

# Prints what became of an attempt.
_STATE = """\
import fcntl, os, sys
folder, attempt = sys.argv[1:]

def locked(path):
    try:
        fd = os.open(path, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False

starting = locked(os.path.join(folder, "starting"))
if locked(folder):
    print("held")
elif starting:
    print("starting")
else:
    try:
        with open(os.path.join(folder, "attempts")) as file:
            started = attempt in file.read().split()
    except OSError:
        started = False
    print("started" if started else "failed")
"""


def capsule(digest: str) -> str:
    """Sets ``capsule`` to the path of gpuwatch's archive there."""
    return f'capsule="${{XDG_CACHE_HOME:-$HOME/.cache}}/gpuwatch/capsules/{digest}.pyz"'


def study(name: str) -> str:
    """Sets ``study`` to the path of a study's folder there."""
    home = "${XDG_DATA_HOME:-$HOME/.local/share}"
    return f'study="{home}/gpuwatch/studies/"{shlex.quote(name)}'


def look(choice: str | None, digest: str, folder: str | None) -> str:
    """Prints whether gpuwatch's archive is there."""
    return f"""\
{python(choice)}
{_enter(folder) if folder else ""}
{capsule(digest)}
[ -f "$capsule" ] && echo here || echo missing"""


def receive(choice: str | None, digest: str) -> str:
    """Stores gpuwatch's archive, which is on standard input."""
    return f"""\
umask 077
{python(choice)}
{capsule(digest)}
exec "$py" -I -c {shlex.quote(_RECEIVE)} "$capsule" {digest}"""


def store_plan(name: str, size: int) -> str:
    """Stores a plan of ``size`` bytes, which is on standard input, unless there is one."""
    return f"""\
umask 077
{study(name)}
mkdir -p "$study" || exit {NO_ROOM}
[ ! -e "$study/plan.json" ] || exit 0
part="$study/.plan.json.$$"
cat >"$part" && [ "$(wc -c <"$part")" -eq {size} ] && mv "$part" "$study/plan.json" ||
  {{ rm -f "$part"; exit {NO_ROOM}; }}"""


def store_folder(name: str, size: int) -> str:
    """Unpacks a tar archive of ``size`` bytes, which is on standard input, as the working folder of
    a study. tar itself may take a part of an archive for a whole one."""
    return f"""\
umask 077
{study(name)}
mkdir -p "$study" || exit {NO_ROOM}
[ ! -e "$study/work" ] || exit 0
command -v tar >/dev/null || exit {NO_TAR}
part="$study/.work.$$"
mkdir "$part" && cat >"$part.tar" && [ "$(wc -c <"$part.tar")" -eq {size} ] &&
  tar -x -f "$part.tar" -C "$part" && rm "$part.tar" && mv "$part" "$study/work" ||
  {{ rm -rf "$part" "$part.tar"; exit {NO_ROOM}; }}"""


def _enter(folder: str) -> str:
    return f"cd -- {path(folder)} || exit {NO_FOLDER}"


def start(
    choice: str | None, digest: str, name: str, attempt: str, folder: str | None, *, work: bool
) -> str:
    """Starts a recorder of the study in the background: in ``folder``, in what was sent if that is
    so (``work``), or at home."""
    enter = _enter(folder) if folder else ""
    if work:
        enter = f'cd "$study/work" || exit {NO_WORK}'
    return f"""\
umask 077
{python(choice)}
{capsule(digest)}
[ -f "$capsule" ] || exit {NO_CAPSULE}
{study(name)}
{enter}
own="$study/{_OWN}"
if [ ! -f "$own" ]; then
  cp "$capsule" "$own.$$" && mv "$own.$$" "$own" || exit {NO_ROOM}
fi
exec "$py" -I -c {shlex.quote(_START)} "$study" {attempt} \\
  "$py" "$own" start-plan "$study" --attempt {attempt} --detach"""


def state(choice: str | None, name: str, attempt: str) -> str:
    """Prints one word on an attempt at last: ``held``, ``starting``, ``started``, ``failed``, or,
    as gpuwatch there sees it, ``orphaned``; a gpuwatch that cannot look has no say."""
    return f"""\
{python(choice)}
{study(name)}
word="$("$py" -I -c {shlex.quote(_STATE)} "$study" {attempt})" || exit
echo "$word"
[ "$word" = started ] && [ -f "$study/{_OWN}" ] || exit 0
"$py" "$study/{_OWN}" start-plan "$study" --attempt {attempt} --look 2>/dev/null || :"""


def log(name: str) -> str:
    """Prints the end of what the recorder wrote, and at last why it could not start: its log may be
    of an earlier attempt."""
    return f"""\
{study(name)}
for log in recorder start; do tail -c 4000 "$study/$log.log" 2>/dev/null || :; done"""


def watch(choice: str | None, digest: str, arguments: Sequence[str]) -> str:
    """Runs gpuwatch as it was sent, without a study."""
    return f"""\
umask 077
{python(choice)}
{capsule(digest)}
exec "$py" "$capsule" {shlex.join(arguments)}"""


def run(choice: str | None, digest: str, name: str, arguments: Sequence[str]) -> str:
    """Runs gpuwatch as the study was started with it, or as it was sent if no study was started;
    the argument :data:`STUDY` stands for the study's folder there."""
    words = " ".join('"$study"' if word == STUDY else shlex.quote(word) for word in arguments)
    return f"""\
{python(choice)}
{study(name)}
{capsule(digest)}
[ ! -f "$study/{_OWN}" ] || capsule="$study/{_OWN}"
exec "$py" "$capsule" {words}"""
