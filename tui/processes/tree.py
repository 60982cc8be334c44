"""Processes as trees: parents and children are read from ``/proc`` when they are shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuwatch.core.live_process import command_line, command_text
from gpuwatch.core.processes import parents, start_time
from gpuwatch.tui.feed.processes import ProcessNow

Branch = tuple[ProcessNow, str]
"""A process, and what stands before it in a tree."""

_NOT_RECORDED = "not recorded: a parent or child that is neither on a GPU nor of the run"


def family(processes: Sequence[ProcessNow]) -> list[Branch]:
    """``processes``, with the parent and the children of each that runs here."""
    above = parents()
    recorded = {process.pid: process for process in processes}
    nodes: dict[int, ProcessNow] = {}
    for process in processes:
        near = [process.pid]
        if process.start is not None:
            near = [above.get(process.pid, 0), *near]
            near += [pid for pid, parent in above.items() if parent == process.pid]
        for pid in near:
            node = nodes.get(pid) or recorded.get(pid) or _relative(pid, process.t)
            if node is not None:
                nodes[pid] = node
    return list(_branches(nodes, above))


def _relative(pid: int, t: int) -> ProcessNow | None:
    """A process that only ``/proc`` tells of; ``None``: it has ended, or is the system's first."""
    start = start_time(pid) if pid > 1 else None
    if start is None:
        return None
    words = command_line(pid, start)
    command = command_text(words) if words else None
    return ProcessNow(
        *(pid, None, None, None, None, (), None, None, None, True, t, _NOT_RECORDED),
        start=start,
        command=command,
    )


def _branches(nodes: Mapping[int, ProcessNow], above: Mapping[int, int]) -> Iterator[Branch]:
    """Each process once, behind its parent where that is among them."""
    below: dict[int, list[int]] = {}
    roots = []
    for pid, process in nodes.items():
        parent = above.get(pid, 0)
        if process.start is not None and parent in nodes and nodes[parent].start is not None:
            below.setdefault(parent, []).append(pid)
        else:
            roots.append(pid)

    def under(pid: int, before: str) -> Iterator[Branch]:
        children = below.get(pid, [])
        for child in children:
            last = child == children[-1]
            yield nodes[child], f"{before}{'└─ ' if last else '├─ '}"
            yield from under(child, before + ("   " if last else "│  "))

    for pid in roots:
        yield nodes[pid], ""
        yield from under(pid, "")
