"""Where gpuwatch keeps things, after the XDG base directory specification."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import socket
import stat
import tempfile
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import StorageError
from gpuwatch.core.processes import boot_id, is_this_machine, machine_id
from gpuwatch.core.text import shell

_MOST_REMEMBERED = 200
_BOOT = "boot"
"""File of a run's folder that names the machine and its boot."""

RUN_SESSION = "session"
"""The file in a run's folder that names its session file."""

_GOING = ".going-"
"""What the name of a run's folder begins with while it is being removed."""


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


def signing_key() -> Path:
    """The file of the key that this user's plans are signed with."""
    return runs_home().with_name("plans.key")


def _studies_elsewhere() -> Path:
    return runs_home().with_name("studies")


def remember_study(folder: Path) -> None:
    """Note a study outside the default folder, so that lists find it. Best effort."""
    if data_home() in folder.parents or "\n" in str(folder):
        return
    with contextlib.suppress(OSError, StorageError):
        notes = _studies_elsewhere()
        home = os.open(private_folder(notes.parent), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with contextlib.suppress(OSError):  # a file system without locks
                fcntl.flock(home, fcntl.LOCK_EX)
            known = [path for path in studies_elsewhere() if path != folder][-_MOST_REMEMBERED:]
            output.write_text(notes, "".join(f"{path}\n" for path in [*known, folder]))
        finally:
            os.close(home)


def studies_elsewhere() -> list[Path]:
    """The studies recorded with ``--out`` that still exist, oldest first."""
    try:
        text = _studies_elsewhere().read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [Path(line) for line in text.split("\n") if os.path.isdir(line)]


def private_folder(path: Path) -> Path:
    """Make ``path`` (and parents) readable by its owner alone, and return it.

    Raises:
        StorageError: the folder cannot be made or is not ours.
    """
    try:
        make_private(path)
        if path.stat().st_uid != os.geteuid():
            raise StorageError(f"{path} belongs to another user", "choose another folder")
    except OSError as error:
        raise StorageError(
            f"cannot make the folder {path}: {error.strerror}", "choose a writable one"
        ) from error
    return path


def make_private(path: Path) -> None:
    """Make ``path`` and those of its parents that are missing, whatever the umask, mode 0700.

    Raises:
        OSError: it cannot be made.
    """
    missing = [each for each in (path, *path.parents) if not each.exists()]
    for each in reversed(missing):
        each.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def open_regular(path: Path, *, links: bool = True) -> int:
    """A descriptor to read a file with. A pipe is not waited for and a device not opened, whatever
    is put in the file's place meanwhile. ``links``: whether one in its place is followed.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    if not stat.S_ISREG(os.stat(path, follow_symlinks=links).st_mode):
        raise _not_regular(path)
    fd = os.open(path, flags)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return fd
    os.close(fd)
    raise _not_regular(path)


def _not_regular(path: Path) -> OSError:
    return OSError(errno.EINVAL, "it is no regular file", str(path))


def read_regular(path: Path, most: int) -> bytes:
    """What is in a file, as :func:`open_regular` opens it; one byte more than ``most`` where there
    is more.

    Raises:
        OSError: it cannot be read, or is no regular file.
    """
    with open(open_regular(path), "rb") as file:
        return file.read(most + 1)


def session_of(folder: Path) -> Path | None:
    """The session file that the run is recorded to, whether it is still there or not."""
    try:
        text = os.fsdecode((folder / RUN_SESSION).read_bytes().strip())
    except OSError:
        return None
    return Path(text) if text else None


def _temporary_home() -> Path:
    """The folder of runs where the home cannot be written."""
    return Path(tempfile.gettempdir()) / f"gpuwatch-{os.geteuid()}"


def _is_private(path: Path) -> bool:
    """Whether ``path`` is a folder of ours, and no link, that nobody else may look into.

    Anybody may make a name in the temporary folder, and before us.
    """
    return _is_own_folder(path) and not path.lstat().st_mode & 0o077


def new_run_folder(run_id: str) -> Path:
    """A fresh private folder for one run; under the temporary folder if the home is read-only.

    Folders of runs that a restart of the machine ended are removed on the way.

    Raises:
        StorageError: neither can be made and written.
    """
    _forget_before_boot()
    try:
        folder = private_folder(runs_home() / run_id)
    except StorageError:
        fallback = private_folder(_temporary_home())
        if not _is_private(fallback):
            raise StorageError(
                f"{fallback} is a link, or others may look into it",
                f"see what it is, then: rm -r {shell(fallback)}",
            ) from None
        folder = private_folder(fallback / run_id)
    try:
        output.write_text(folder / _BOOT, f"{socket.gethostname()} {boot_id()} {machine_id()}")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise StorageError(
            f"cannot write to {folder.parent}: {error.strerror}",
            "free some space, or set XDG_STATE_HOME to another folder",
        ) from error
    return folder


def _forget_before_boot() -> None:
    for folder in run_folders():
        try:
            host, boot, *machine = (folder / _BOOT).read_text().split(" ")
        except (OSError, ValueError):
            continue
        # Homes may be shared by machines: only this one's runs can be known to be over.
        if is_this_machine(host, "".join(machine)) and boot != boot_id():
            remove_run_folder(folder)


def run_folders() -> list[Path]:
    """The folders of runs that may still be going on, oldest first."""
    found = (each for each in _in_homes_of_runs() if not each.name.startswith(_GOING))
    return sorted(found, key=_changed)


def remove_run_folder(folder: Path) -> None:
    """Remove a run's folder. What is left of it where this process dies meanwhile bears another
    name, and :func:`remove_the_rest` removes that.

    Raises:
        ValueError: it is not the folder of a run of this user.
    """
    if not os.path.lexists(folder):
        return
    if folder.parent not in _homes_of_runs() or not _is_own_folder(folder):
        raise ValueError(f"{folder} is not the folder of a run of this user")
    going = folder.with_name(_GOING + folder.name)
    with contextlib.suppress(OSError):
        folder.rename(going)
        folder = going
    shutil.rmtree(folder, ignore_errors=True)


def remove_the_rest() -> None:
    """Remove what :func:`remove_run_folder` was not given the time to."""
    for folder in _in_homes_of_runs():
        if folder.name.startswith(_GOING):
            shutil.rmtree(folder, ignore_errors=True)


def _homes_of_runs() -> list[Path]:
    """The folders that this user's runs have theirs in."""
    kept, passing = runs_home(), _temporary_home()
    homes = [kept] if kept.is_dir() and kept.stat().st_uid == os.geteuid() else []
    return [*homes, passing] if _is_private(passing) else homes


def _in_homes_of_runs() -> list[Path]:
    inside = (entry for home in _homes_of_runs() for entry in home.iterdir())
    return [entry for entry in inside if _is_own_folder(entry)]


def _is_own_folder(path: Path) -> bool:
    """Whether ``path`` is a folder of this user's, and no link to one."""
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def _changed(path: Path) -> float:
    """When a folder last changed; one whose run ended just now may be gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
