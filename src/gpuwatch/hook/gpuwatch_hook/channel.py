"""The file into which a process reports: a JSON object per line, one ``write`` each."""

from __future__ import annotations

import fcntl
import json
import math
import os
import sys
import time
from typing import Any

LONGEST = 64 << 10
"""Bytes of the longest line; a longer one is left out by who reads it."""


class Channel:
    """A new file in the folder; its first line says who writes."""

    def __init__(self, folder: str, world: tuple[int | None, int | None, int | None]) -> None:
        """``world``: rank, local rank and number of ranks, where they are known.

        Raises:
            OSError: the file cannot be created.
        """
        path = os.path.join(folder, f"{os.getpid()}-{time.monotonic_ns()}.jsonl")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        opened = os.open(path, flags, 0o600)
        # Not 0, 1 or 2, which a program may have closed: what it prints would go there.
        self._file = fcntl.fcntl(opened, fcntl.F_DUPFD_CLOEXEC, 3)
        os.close(opened)
        self._opened = os.fstat(self._file)
        self.introduce(world)

    def introduce(self, world: tuple[int | None, int | None, int | None]) -> None:
        """Tell who writes; told again once the rank is known."""
        rank, local_rank, size = world
        torch = sys.modules.get("torch")
        self.tell(
            event="hook",
            version=1,
            pid=os.getpid(),
            rank=rank,
            local_rank=local_rank,
            world_size=size,
            local_world_size=_number("LOCAL_WORLD_SIZE"),
            python=sys.version.split()[0],
            executable=sys.executable,
            torch=getattr(torch, "__version__", None),
            program=os.path.basename(sys.argv[0]) if sys.argv else None,
            monotonic_ns=time.monotonic_ns(),
        )

    def tell(self, **keys: Any) -> None:
        """Write one line; what is not finite becomes null.

        Raises:
            OSError: it cannot be written, or the program closed the file, as daemons do.
        """
        try:
            line = json.dumps(keys, allow_nan=False)
        except ValueError:
            line = json.dumps(_finite(keys))
        if not os.path.samestat(os.fstat(self._file), self._opened):
            raise OSError("the program closed the file and opened another one in its place")
        os.write(self._file, line.encode() + b"\n")


def world() -> tuple[int | None, int | None, int | None]:
    """Rank, local rank and number of ranks: as the launcher gave them, or as torch was told."""
    rank, local_rank, size = (_number(key) for key in ("RANK", "LOCAL_RANK", "WORLD_SIZE"))
    distributed = sys.modules.get("torch.distributed")
    if rank is not None or distributed is None or not distributed.is_available():
        return rank, local_rank, size
    if distributed.is_initialized():
        rank, size = distributed.get_rank(), distributed.get_world_size()
    return rank, local_rank, size


def _number(name: str) -> int | None:
    text = os.environ.get(name, "")
    return int(text) if text.isdecimal() else None


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return value
