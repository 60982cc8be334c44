"""Step lines: one JSON object after a prefix on standard output; of ranks, a line of a file."""

from __future__ import annotations

import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

PREFIX = ":::GPUWATCH "

CHANNEL = "GPUWATCH_HOOK"
"""Environment variable: the folder in which each rank of a run reports to a file of its own."""

_channel: int | None = None


def open_channel(folder: Path, **first: Any) -> None:
    """Send all further lines to a new file in ``folder``, without the prefix.

    ``first`` are the keys of its first line, the event ``hook``.

    Raises:
        OSError: the file cannot be created.
    """
    global _channel
    path = folder / f"{os.getpid()}-{time.monotonic_ns()}.jsonl"
    _channel = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o600)
    emit("hook", version=1, pid=os.getpid(), **first, monotonic_ns=time.monotonic_ns())


def emit(event: str, **keys: Any) -> None:
    """Print one step line, or add it to the channel, in a ``write`` of its own.

    A pipe keeps a write of up to ``PIPE_BUF`` (4,096) bytes in one piece, so that no other
    process's line ends up inside it. A non-finite value (a diverged loss) becomes ``null``, because
    JSON has no NaN.
    """
    keys = {"event": event, **keys}
    try:
        line = json.dumps(keys, allow_nan=False)
    except ValueError:
        line = json.dumps(finite(keys))
    if _channel is not None:
        os.write(_channel, f"{line}\n".encode())
        return
    sys.stdout.flush()
    sys.stdout.write(f"{PREFIX}{line}\n")
    sys.stdout.flush()


def finite(value: Any) -> Any:
    """The same value with every float that is NaN or infinite replaced by None."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [finite(item) for item in value]
    if isinstance(value, dict):
        return {key: finite(item) for key, item in value.items()}
    return value
