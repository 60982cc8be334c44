"""Rows of processes for the session files of tests."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from gpuwatch.session.writing.statements import Row

from .sessions import GIB, NS, put


@dataclass(frozen=True)
class Made:
    """A process at one moment; ``gpus``: device, bytes and share of time. Half of that time it uses
    the memory."""

    pid: int
    name: str | None = "python train.py"
    user: str | None = "alice"
    place: str | None = None
    owned: int | None = 1
    cores: float | None = 1.0
    resident: int | None = 2 * GIB
    gpus: tuple[tuple[str, int | None, float | None], ...] = (("gpu0", 30 * GIB, 0.8),)
    started: float = 1.0
    kind: str = "compute"
    reason: str | None = None


RUN = Made(4711, "python workloads.pyz", "root", gpus=(("gpu0", 36 * GIB, 0.81),), cores=1.3)
LOADERS = tuple(
    Made(4720 + i, "pt_data_worker", "root", gpus=(), cores=0.9 - i / 10) for i in (0, 1)
)
STRANGER = Made(
    31337,
    "python sweep.py",
    "bob",
    "docker 3f2a9c1b4d5e",
    owned=0,
    cores=2.4,
    resident=5 * GIB,
    gpus=(("gpu0", 12 * GIB + GIB // 3, 0.15),),
    started=-7200.0,
)
HIDDEN = Made(
    999,
    None,
    None,
    owned=0,
    cores=None,
    resident=None,
    gpus=(("gpu0", None, None),),
    reason="NVML does not say how much memory it holds",
)


_USED = """
UPDATE device SET used = id IN (SELECT device FROM gpu_process WHERE owned = 1)
WHERE kind = 'gpu' AND EXISTS (SELECT 1 FROM gpu_process WHERE owned = 1)
"""
"""Marks the GPUs with a process of the run as used, as a recorder does."""


def add(path: Path, *processes: Made, t: float = 80.0, running: bool = True) -> Path:
    """Add processes to a session at ``t`` seconds."""
    rows: list[Row] = []
    for process in processes:
        rows.append(
            (
                "INSERT INTO process (t, pid, started, name, user, place, owned, running, reason) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    int(t * NS),
                    process.pid,
                    int(process.started * NS),
                    process.name,
                    process.user,
                    process.place,
                    process.owned,
                    int(running),
                    None,
                ),
            )
        )
        rows.append(
            (
                "INSERT INTO process_use (t, pid, cores, resident) VALUES (?, ?, ?, ?)",
                (int(t * NS), process.pid, process.cores, process.resident),
            )
        )
        for device, size, share in process.gpus:
            rows.append(
                (
                    "INSERT INTO gpu_process (t, device, pid, name, owned, bytes, running, kind, "
                    "share, memory_share, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        int(t * NS),
                        device,
                        process.pid,
                        process.name,
                        process.owned,
                        size,
                        int(running),
                        process.kind,
                        share,
                        None if share is None else share / 2,
                        process.reason,
                    ),
                )
            )
    return put(path, *rows, (_USED, ()))
