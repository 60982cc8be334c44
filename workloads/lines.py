"""Step lines: one JSON object after a prefix on standard output."""

from __future__ import annotations

import json
import math
import sys
from typing import Any

PREFIX = ":::GPUWATCH "


def emit(event: str, **keys: Any) -> None:
    """Print one step line, in a ``write`` of its own.

    A pipe keeps a write of up to ``PIPE_BUF`` (4,096) bytes in one piece, so that no other
    process's line ends up inside it. A non-finite value (a diverged loss) becomes ``null``, because
    JSON has no NaN.
    """
    keys = {"event": event, **keys}
    try:
        line = json.dumps(keys, allow_nan=False)
    except ValueError:
        line = json.dumps(finite(keys))
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
