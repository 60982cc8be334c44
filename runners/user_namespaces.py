"""Whether this user may create the user namespaces that rootless engines need."""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.core.models import Problem

_SWITCHES = (
    ("user/max_user_namespaces", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone=1"),
)
"""Files below ``/proc/sys`` that contain 0 if user namespaces are off, and how to turn them on."""


def problem(engine: str, settings: Path = Path("/proc/sys")) -> Problem | None:
    """Why ``engine`` cannot create a user namespace for this user; ``None`` if no obstacle is
    known."""
    for name, setting in _SWITCHES:
        # The second switch is Debian's own, and does not affect root.
        if os.geteuid() == 0 and name.startswith("kernel"):
            continue
        try:
            off = (settings / name).read_text().strip() == "0"
        except OSError:
            continue
        if off:
            return Problem(
                "user-namespaces-off",
                f"{engine} needs user namespaces, and {name.replace('/', '.')} is 0",
                f"sudo sysctl -w {setting}",
            )
    return None
