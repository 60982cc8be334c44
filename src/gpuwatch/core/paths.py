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
import time
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import StorageError
from gpuwatch.core.processes import boot_id, is_this_machine, machine_id
from gpuwatch.core.text import shell

_MOST_REMEMBERED = 200
_BOOT = "boot"
"""File in a run's folder that names the machine and its boot."""

RUN_SESSION = "session"
"""The file in a run's folder that names its session file."""

_GOING = ".going-"
"""Prefix of a run's folder while it is being removed."""


def _xdg(variable: str, default: str) -> Path:
    value = os.environ.get(variable, "")
    if value and Path(value).is_absolute():
        return Path(value)
    return Path(os.environ.get("HOME") or Path.home()) / default


def data_home() -> Path:
    """The default folder of studies, without ``--out``."""
    return _xdg("XDG_DATA_HOME", ".local/share") / "gpuwatch" / "studies"


def ceilings_home() -> Path:
    """The folder of the ceilings that `gpuwatch calibrate` measured."""
    return data_home().parent / "ceilings"


def cache_home() -> Path:
    """The cache folder: it may be removed at any time."""
    return _xdg("XDG_CACHE_HOME", ".cache") / "gpuwatch"


def runs_home() -> Path:
    """The folder with one private folder for each current run: its spool, notes and lock.

    Not ``$XDG_RUNTIME_DIR``, which is emptied when the last SSH connection closes: runs go on.
    """
    return _xdg("XDG_STATE_HOME", ".local/state") / "gpuwatch" / "runs"


def signing_key() -> Path:
    """The file with the key that signs this user's plans."""
    return runs_home().with_name("plans.key")


def _studies_elsewhere() -> Path:
    return runs_home().with_name("studies")


def remember_study(folder: Path) -> None:
    """Remember a study outside the default folder, so that lists find it. Best effort."""
    if data_home() in folder.parents or "\n" in str(folder):
        return
    with contextlib.suppress(OSError, StorageError), one_at_a_time():
        private_folder(_studies_elsewhere().parent)
        known = [path for path in studies_elsewhere() if path != folder][-_MOST_REMEMBERED:]
        text = "".join(f"{path}\n" for path in [*known, folder])
        output.write_text(_studies_elsewhere(), text)


_PATIENCE = 5.0
"""Seconds to wait for another process that changes a small file."""


@contextlib.contextmanager
def one_at_a_time() -> Iterator[None]:
    """Be the only process of this user on this machine that changes a small file, where the state
    folder can be locked.

    Raises:
        StorageError: another one has not come to an end within some seconds.
    """
    state, home = runs_home().parent, None
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError, StorageError):
            home = os.open(private_folder(state), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            stack.callback(os.close, home)
        deadline = time.monotonic() + _PATIENCE
        while home is not None and not locked(home, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise StorageError(f"another gpuwatch has locked {state}", "try again")
            time.sleep(0.02)
        yield


def locked(fd: int, how: int) -> bool:
    """Take a lock until ``fd`` is closed; ``False`` if somebody else holds it."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def studies_elsewhere() -> list[Path]:
    """The studies recorded with ``--out`` that still exist, oldest first."""
    try:
        text = _studies_elsewhere().read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:
        return []
    return [Path(line) for line in text.split("\n") if os.path.isdir(line)]


def private_folder(path: Path) -> Path:
    """Create ``path`` and its missing parents, mode 0700, and return it.

    Raises:
        StorageError: the folder cannot be created or belongs to another user.
    """
    try:
        make_private(path)
        if path.stat().st_uid != os.geteuid():
            raise StorageError(f"{path} belongs to another user", "choose another folder")
    except OSError as error:
        raise StorageError(
            f"cannot create the folder {path}: {error.strerror}", "choose a writable folder"
        ) from error
    return path


def make_private(path: Path) -> None:
    """Create ``path`` and its missing parents, mode 0700, whatever the umask.

    Raises:
        OSError: it cannot be created.
    """
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        folder.mkdir(mode=0o700, exist_ok=True)
    if not path.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))


def open_regular(path: Path, *, links: bool = True) -> int:
    """Open a file for reading and return the descriptor.

    Never waits for a pipe or opens a device, even if one takes the file's place in between.
    ``links``: whether to follow a link.

    Raises:
        OSError: it cannot be read, or is not a regular file.
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
    return OSError(errno.EINVAL, "it is not a regular file", str(path))


def read_regular(path: Path, most: int) -> bytes:
    """Read a file opened with :func:`open_regular`, up to ``most`` + 1 bytes: the extra byte shows
    that it is too long.

    Raises:
        OSError: it cannot be read, or is not a regular file.
    """
    with open(open_regular(path), "rb") as file:
        return file.read(most + 1)


def end_of(path: Path, most: int = 4000) -> str:
    """The last ``most`` bytes of a text file; empty if it cannot be read."""
    try:
        with open(open_regular(path), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - most))
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def session_of(folder: Path) -> Path | None:
    """The session file that the run is recorded to; it may be gone."""
    try:
        text = os.fsdecode((folder / RUN_SESSION).read_bytes().strip())
    except OSError:
        return None
    return Path(text) if text else None


def _temporary_home() -> Path:
    """The folder of runs if the home is not writable."""
    return Path(tempfile.gettempdir()) / f"gpuwatch-{os.geteuid()}"


def is_private(path: Path) -> bool:
    """Whether ``path`` is our own folder, not a link, and closed to everybody else.

    In the temporary folder anybody could have created it before us.
    """
    return _is_own_folder(path) and not path.lstat().st_mode & 0o077


def new_run_folder(run_id: str) -> Path:
    """Create a private folder for one run; in the temporary folder if the home is read-only.

    Also removes the folders of runs from before the machine's last restart.

    Raises:
        StorageError: neither place is writable.
    """
    _forget_before_boot()
    try:
        folder = private_folder(runs_home() / run_id)
    except StorageError:
        fallback = private_folder(_temporary_home())
        if not is_private(fallback):
            raise StorageError(
                f"{fallback} is a link, or open to other users",
                f"check what it is, then: rm -r {shell(fallback)}",
            ) from None
        folder = private_folder(fallback / run_id)
    try:
        output.write_text(folder / _BOOT, f"{socket.gethostname()} {boot_id()} {machine_id()}")
    except OSError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise unwritten(folder.parent, error) from error
    return folder


def unwritten(path: Path, error: OSError) -> StorageError:
    """What to say of a place among the state that cannot be written."""
    return StorageError(
        f"cannot write to {path}: {error.strerror}",
        "free some space, or set XDG_STATE_HOME to another folder",
    )


def _forget_before_boot() -> None:
    for folder in run_folders():
        try:
            host, boot, *machine = (folder / _BOOT).read_text().split(" ")
        except (OSError, ValueError):
            continue
        # Machines may share a home: only for this machine's runs a restart proves the end.
        if is_this_machine(host, "".join(machine)) and boot != boot_id():
            remove_run_folder(folder)


def run_folders() -> list[Path]:
    """The folders of runs that may still go on, oldest first."""
    folders = (folder for folder in _in_homes_of_runs() if not folder.name.startswith(_GOING))
    return sorted(folders, key=_changed)


def remove_run_folder(folder: Path) -> None:
    """Remove the folder of one of this user's runs.

    It is renamed first: if this process dies halfway, :func:`remove_the_rest` finds the remains.

    Raises:
        ValueError: it is not the folder of one of this user's runs.
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
    """Remove what an interrupted :func:`remove_run_folder` left."""
    for folder in _in_homes_of_runs():
        if folder.name.startswith(_GOING):
            shutil.rmtree(folder, ignore_errors=True)


def _homes_of_runs() -> list[Path]:
    """The parent folders of this user's run folders."""
    home, temporary = runs_home(), _temporary_home()
    homes = [home] if home.is_dir() and home.stat().st_uid == os.geteuid() else []
    return [*homes, temporary] if is_private(temporary) else homes


def _in_homes_of_runs() -> list[Path]:
    inside = (entry for home in _homes_of_runs() for entry in home.iterdir())
    return [entry for entry in inside if _is_own_folder(entry)]


def _is_own_folder(path: Path) -> bool:
    """Whether ``path`` is a folder that belongs to this user, not a link to one."""
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _changed(path: Path) -> float:
    """Modification time of a folder, Unix seconds; 0 if its run just ended and it is gone."""
    try:
        return path.stat().st_mtime
    except FileNotFoundError:
        return 0.0
