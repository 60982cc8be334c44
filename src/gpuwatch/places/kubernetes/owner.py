"""The random name of this user's state folder, which every object in a cluster bears."""

from __future__ import annotations

import re
import secrets
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import StorageError

_FILE = "owner"
_FORM = re.compile(r"[0-9a-f]{16}")


def was_used() -> bool:
    """Whether anything was noted of clusters."""
    return _home().is_dir()


def home() -> Path:
    """The folder of what is noted of clusters, private to this user."""
    return paths.private_folder(_home())


def _home() -> Path:
    return paths.runs_home().with_name("kubernetes")


def owner() -> str:
    """It is made when it is first needed.

    Raises:
        StorageError: the state folder cannot be written.
    """
    path = home() / _FILE
    try:
        if not path.exists():
            output.write_once(path, secrets.token_hex(8).encode())
        found = path.read_text(errors="replace").strip()
    except OSError as error:
        raise StorageError(
            f"cannot write to {path.parent}: {error.strerror}",
            "free some space, or set XDG_STATE_HOME to another folder",
        ) from error
    if not _FORM.fullmatch(found):
        raise StorageError(f"{path} holds no name", f"remove it: rm {path}")
    return found
