"""Whether this user may make the user namespaces that rootless engines stand on."""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.core.models import Problem

_SWITCHES = (
    ("user/max_user_namespaces", "user.max_user_namespaces=15000"),
    ("kernel/unprivileged_userns_clone", "kernel.unprivileged_userns_clone=1"),
)
"""Files below ``/proc/sys`` that hold 0 where user namespaces are off, and what turns them on."""


def problem(engine: str, settings: Path = Path("/proc/sys")) -> Problem | None:
    """Why ``engine`` could not make a user namespace for this user; ``None``: nothing is known to
    stand against it."""
    for name, setting in _SWITCHES:
        # The second switch is Debian's own, and not for root.
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
