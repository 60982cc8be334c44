"""Identity of a process: program, user, container or job. Cheap, and read once per process."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from pathlib import Path

from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.users import USERS, Users, uid_of

_CONTAINERS = (
    (re.compile(r"docker[-/]([0-9a-f]{12})[0-9a-f]{52}"), "docker {}"),
    (re.compile(r"libpod-(?:conmon-)?([0-9a-f]{12})[0-9a-f]{52}"), "podman {}"),
    (re.compile(r"kubepods.*?([0-9a-f]{12})[0-9a-f]{52}"), "kubernetes {}"),
    (re.compile(r"slurm.*?/job_(\d+)"), "slurm job {}"),
    (re.compile(r"lxc(?:\.payload\.|/)([\w.-]+)"), "lxc {}"),
    (re.compile(r"machine-([\w.-]+?)\.scope"), "machine {}"),
    (re.compile(r"(?:nerdctl|containerd|crio)-([0-9a-f]{12})[0-9a-f]{52}"), "container {}"),
)
"""Control group names that engines and schedulers create; the kernel's path of a process passes
through them even if it has nested groups inside."""

_MOST_BYTES = 4096
_PYTHON = re.compile(r"python[\d.]*(?:t|d|td)?")
_WITH_VALUE = re.compile(r"-(?!-)[^cmWX]*([cmWX])(.*)", re.DOTALL)
"""Python's short flags that end in one with a value: the rest of the word, or the next word."""


@dataclass(frozen=True)
class ProcessIdentity:
    """What is known about a process besides its numbers."""

    name: str | None
    """``python train.py`` for a Python interpreter, otherwise the kernel's name of the program."""
    user: str | None
    place: str | None
    """``docker 3f2a9c1b4d5e``, ``slurm job 4711``; ``None`` outside known containers."""
    reason: str | None
    """Why something is unknown."""
    uid: int | None = None
    """The user's number; the name may become known later, see :func:`with_user_name`."""


def identify(pid: int, proc: Path = Path("/proc"), users: Users = USERS) -> ProcessIdentity:
    """Describe a process. Never raises; everything is ``None`` for one that is gone."""
    folder = proc / str(pid)
    program = _read(folder / "comm")
    if program is None:
        return ProcessIdentity(
            None, None, None, "/proc does not show it: another user's (hidepid), or just ended"
        )
    name = program.decode("utf-8", "replace").strip()
    words = (_read(folder / "cmdline") or b"").split(b"\0")
    uid = uid_of(_read(folder / "status") or b"")
    user = None if uid is None else users.name(uid)
    place = place_of((_read(folder / "cgroup") or b"").decode("utf-8", "replace"))
    reason = None if user is not None else "/proc/PID/status does not show its user"
    return ProcessIdentity(_script(words) or name, user, place, reason, uid)


def with_user_name(identity: ProcessIdentity, users: Users = USERS) -> ProcessIdentity:
    """``identity`` with the user's name as currently known."""
    if identity.uid is None or (user := users.name(identity.uid)) == identity.user:
        return identity
    return replace(identity, user=user)


def place_of(cgroup: str) -> str | None:
    """The container or job in ``/proc/PID/cgroup``; the outermost of several."""
    matches = [
        (match.start(), text.format(match[1]))
        for line in cgroup.splitlines()[:64]
        for pattern, text in _CONTAINERS
        if (match := pattern.search(line)) is not None
    ]
    return min(matches)[1] if matches else None


def _script(words: list[bytes]) -> str | None:
    """``python train.py`` or ``python -m package``: never more of a command line, which may hold
    private data. ``None`` if it is not a Python interpreter, or set its own title."""
    program, *rest = (word.decode("utf-8", "replace") for word in words)
    program = os.path.basename(program)
    if not _PYTHON.fullmatch(program):
        return None
    arguments = iter(rest)
    for text in arguments:
        if text in ("", "-"):
            break
        if not text.startswith("-"):
            return f"{program} {os.path.basename(text)}"
        if text == "--check-hash-based-pycs":
            next(arguments, None)
        flag = _WITH_VALUE.fullmatch(text)
        if flag is None:
            continue
        if flag[1] == "c":
            return f"{program} -c"
        value = flag[2] or next(arguments, "")
        if flag[1] == "m":
            return f"{program} -m {value}"
    return program


def _read(path: Path) -> bytes | None:
    try:
        with path.open("rb", buffering=0) as file:
            return file.read(_MOST_BYTES)
    except OSError:
        return None
