"""Where gpuwatch keeps things, after the XDG base directory specification."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import tempfile
from pathlib import Path

from gpuwatch.errors import StorageError
from gpuwatch.processes import boot_id

_MOST_REMEMBERED = 200
_BOOT = "boot"
"""File of a run's folder that names the machine and its boot."""


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    if value and Path(value).is_absolute():
        return Path(value)
    return Path(os.environ.get("HOME") or Path.home()) / default


def data_home() -> Path:
    """The folder of studies when ``--out`` is not given."""
    return _xdg("XDG_DATA_HOME", ".local/share") / "gpuwatch" / "studies"


def ceilings_home() -> Path:
    """The folder of what `gpuwatch calibrate` measured."""
    return data_home().parent / "ceilings"


def cache_home() -> Path:
    """The folder of what can be read again: it may be removed at any time."""
    return _xdg("XDG_CACHE_HOME", ".cache") / "gpuwatch"


def runs_home() -> Path:
    """The folder with one private folder per run that is going on: its spool, notes and lock.

    Not ``$XDG_RUNTIME_DIR``: it is emptied when the last SSH connection closes; runs outlive that.
    """
    return _xdg("XDG_STATE_HOME", ".local/state") / "gpuwatch" / "runs"


def _studies_elsewhere() -> Path:
    return _xdg("XDG_STATE_HOME", ".local/state") / "gpuwatch" / "studies"


def remember_study(folder: Path) -> None:
    """Note a study outside the default folder, so that lists find it. Best effort."""
    if data_home() in folder.parents or "\n" in str(folder):
        return
    with contextlib.suppress(OSError, StorageError):
        notes = private_folder(_studies_elsewhere().parent) / _studies_elsewhere().name
        known = [path for path in studies_elsewhere() if path != folder][-_MOST_REMEMBERED:]
        notes.write_text("".join(f"{path}\n" for path in [*known, folder]))


def studies_elsewhere() -> list[Path]:
    """The studies recorded with ``--out`` that still exist, oldest first."""
    try:
        listed = _studies_elsewhere().read_text(errors="surrogateescape").splitlines()
    except OSError:
        return []
    return [path for path in map(Path, listed) if path.is_dir()]


def private_folder(path: Path) -> Path:
    """Make ``path`` (and parents) readable by its owner alone, and return it.

    Raises:
        StorageError: the folder cannot be made or is not ours.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        if path.stat().st_uid != os.geteuid():
            raise StorageError(f"{path} belongs to another user", "choose another folder")
    except OSError as error:
        raise StorageError(
            f"cannot make the folder {path}: {error.strerror}", "choose a writable one"
        ) from error
    return path


def new_run_folder(run_id: str) -> Path:
    """A fresh private folder for one run; under the temporary folder if the home is read-only.

    Folders of runs that a restart of the machine ended are removed on the way.
    """
    _forget_before_boot()
    try:
        folder = private_folder(runs_home() / run_id)
    except StorageError:
        fallback = Path(tempfile.gettempdir()) / f"gpuwatch-{os.geteuid()}"
        folder = private_folder(private_folder(fallback) / run_id)
    (folder / _BOOT).write_text(f"{socket.gethostname()} {boot_id()}")
    return folder


def _forget_before_boot() -> None:
    for folder in run_folders():
        try:
            host, _, boot = (folder / _BOOT).read_text().partition(" ")
        except OSError:
            continue
        # Homes may be shared by machines: only this one's runs can be known to be over.
        if host == socket.gethostname() and boot != boot_id():
            shutil.rmtree(folder, ignore_errors=True)


def run_folders() -> list[Path]:
    """The folders of runs that may still be going on, oldest first."""
    found: list[Path] = []
    for home in (runs_home(), Path(tempfile.gettempdir()) / f"gpuwatch-{os.geteuid()}"):
        if home.is_dir() and home.stat().st_uid == os.geteuid():
            found.extend(entry for entry in home.iterdir() if entry.is_dir())
    return sorted(found, key=_changed)


def _changed(path: Path) -> float:
    """When a folder last changed; one whose run ended just now may be gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
