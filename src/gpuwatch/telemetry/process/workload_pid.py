"""The workload's own process in a tree, below shells, launchers and inits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core.processes import parents


def innermost(roots: Sequence[int], *, container: bool, proc: Path = Path("/proc")) -> int | None:
    """The process reached from ``roots`` by following single children.

    With ``container`` the search starts at the first process with other mounts than this one,
    preferably one with its own PID namespace: everything before it belongs to the engine. ``None``
    while there is no such process.
    """
    children: dict[int, list[int]] = {}
    for pid, parent in parents(proc).items():
        children.setdefault(parent, []).append(pid)
    start = _inside(roots, children, proc) if container else next(iter(roots), None)
    if start is None:
        return None
    while len(below := children.get(start, [])) == 1:
        start = below[0]
    return start


def _inside(roots: Sequence[int], children: dict[int, list[int]], proc: Path) -> int | None:
    tree = list(roots)
    for pid in tree:
        tree += sorted(children.get(pid, ()))
    elsewhere = [pid for pid in tree if _differs(pid, "mnt", proc)]
    numbered = [pid for pid in elsewhere if _differs(pid, "pid", proc)]
    return next(iter(numbered or elsewhere), None)


def _differs(pid: int, namespace: str, proc: Path) -> bool:
    try:
        own = (proc / "self/ns" / namespace).readlink()
        return (proc / str(pid) / "ns" / namespace).readlink() != own
    except OSError:
        return False
