"""The program in a capsule: unpacks it where that was not done yet, and runs gpuwatch from there.

It is ``__main__.py`` of the archive that :mod:`gpuwatch.places.capsule` writes, and stands alone:
any Python from 3.6 on can read it, so that an old one gets an error in one line.
"""

import errno
import os
import runpy  # which Python loaded to run this
import sys

NOT_AVAILABLE, STORAGE = 3, 2
"""Exit codes, as in gpuwatch.core.errors."""
MANIFEST, PAYLOAD = "manifest", "payload.xz"
"""Members of the archive. The manifest has a line ``SHA256 SIZE PATH`` for each file and is
compressed; the payload is all files after each other, in that order."""
DIGEST = "gpuwatch/capsule"
"""The file that holds the SHA-256 of the archive, once it is unpacked."""

_FOLDER_NAME = 16
"""Digits of the archive's SHA-256 that name its folder."""


def main() -> None:
    """Run gpuwatch."""
    if sys.version_info < (3, 10):  # noqa: UP036 - that is the question
        version = f"{sys.version_info[0]}.{sys.version_info[1]}"
        raise _failure(
            f"gpuwatch needs Python 3.10 or newer, and {sys.executable} is {version}; "
            "start it with another one",
            NOT_AVAILABLE,
        )
    archive = os.path.dirname(os.path.abspath(__file__))
    _search_only_packages(archive)
    folder = _unpacked(archive)
    sys.path.insert(0, folder)
    runpy.run_module("gpuwatch", run_name="__main__")


def _failure(text: str, code: int) -> SystemExit:
    """Print an error; what is to be raised."""
    sys.stderr.write(f"gpuwatch: error: {text}\n")
    return SystemExit(code)


def _search_only_packages(archive: str) -> None:
    """Import from Python and its site-packages alone: what ``PYTHONPATH`` names, the working folder
    perhaps, is for the workload."""
    named = os.environ.get("PYTHONPATH", "")
    others = {os.path.join(_working_folder(), each) for each in named.split(os.pathsep) if named}
    refused = {os.path.normpath(each) for each in others} | {archive}
    sys.path[:] = [each for each in sys.path if os.path.isabs(each) and each not in refused]


def _working_folder() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return os.sep


def _unpacked(archive: str) -> str:
    """The folder with the files of ``archive``: in the cache, or in the temporary folder if the
    cache cannot be written."""
    import hashlib
    import zlib
    from zipimport import zipimporter

    with open(archive, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()
    members = zipimporter(archive)
    lines = zlib.decompress(members.get_data(MANIFEST)).decode().splitlines()
    listed = [line.split(" ", 2) for line in lines]
    expected = {path: known for known, _, path in listed}
    expected[DIGEST] = hashlib.sha256(digest.encode()).hexdigest()

    def unpack(home: str) -> str:
        folder = os.path.join(home, digest[:_FOLDER_NAME])
        if not _is_whole(folder, expected):
            data = memoryview(_decompressed(members.get_data(PAYLOAD)))
            files = {DIGEST: memoryview(digest.encode())}
            for _, size, path in listed:
                files[path], data = data[: int(size)], data[int(size) :]
            _place(folder, files, expected)
        return folder

    cache = _cache()
    try:
        return unpack(cache)
    except OSError as error:
        problem = f"cannot write to {cache}: {error.strerror}"
    import tempfile

    elsewhere = os.path.join(tempfile.gettempdir(), f"gpuwatch-capsules-{os.geteuid()}")
    try:
        folder = unpack(elsewhere)
    except OSError as error:
        raise _failure(
            f"{problem}; nor to {elsewhere}: {error.strerror}; "
            "free some space, or set XDG_CACHE_HOME to another folder",
            STORAGE,
        ) from None
    sys.stderr.write(f"gpuwatch: {problem}; it runs from {elsewhere}\n")
    return folder


def _cache() -> str:
    """The folder of capsules, after the XDG base directory specification."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):
        cache = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(cache, "gpuwatch", "capsules")


def _decompressed(data: bytes) -> bytes:
    try:
        import lzma
    except ImportError:
        raise _failure(
            f"{sys.executable} was built without its lzma module; start it with another Python",
            NOT_AVAILABLE,
        ) from None
    return lzma.decompress(data)


def _is_whole(folder: str, expected: "dict[str, str]") -> bool:
    """Whether ``folder`` is this user's alone and holds just the files of ``expected``: paths and
    SHA-256. Python may have put its bytecode beside them."""
    import hashlib

    unseen = dict(expected)
    try:
        if not (_is_private(os.path.dirname(folder)) and _is_private(folder)):
            return False
        folders = [(folder, "")]
        while folders:
            place, prefix = folders.pop()
            with os.scandir(place) as entries:
                for entry in entries:
                    path = prefix + entry.name
                    if entry.is_dir(follow_symlinks=False):
                        if entry.name != "__pycache__":
                            folders.append((entry.path, path + "/"))
                        continue
                    known = unseen.pop(path, None)
                    if known is None or not entry.is_file(follow_symlinks=False):
                        return False
                    with open(entry.path, "rb") as file:
                        if hashlib.sha256(file.read()).hexdigest() != known:
                            return False
    except OSError:
        return False
    return not unseen


def _is_private(folder: str) -> bool:
    """Whether it is a folder of this user's, no link, and closed to everybody else.

    Raises:
        OSError: it does not exist.
    """
    import stat

    status = os.lstat(folder)
    own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return own and not status.st_mode & 0o077


def _place(folder: str, files: "dict[str, memoryview]", expected: "dict[str, str]") -> None:
    """Make ``folder`` of ``files``, in place of whatever is there.

    The files are written beside it, and the folder is renamed. Others that start at once wait.

    Raises:
        OSError: it cannot be written.
    """
    home, name = os.path.split(folder)
    beside = os.path.join(home, f".{name}.{os.urandom(4).hex()}")
    part, old = beside + ".new", beside + ".old"
    before = os.umask(0o077)
    try:
        os.makedirs(home, exist_ok=True)
        lock = _lock(home, f".{name}.")
        try:
            if not _is_whole(folder, expected):
                _write(part, files)
                if os.path.lexists(folder):
                    os.rename(folder, old)
                os.rename(part, folder)
        finally:
            _remove(part)
            _remove(old)
            os.close(lock)
    finally:
        os.umask(before)


def _write(folder: str, files: "dict[str, memoryview]") -> None:
    os.mkdir(folder)
    for path, data in files.items():
        target = os.path.join(folder, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "xb") as file:
            file.write(data)


def _lock(home: str, prefix: str) -> int:
    """Lock the folder of capsules and return its descriptor. It becomes private if it is not, and
    what others left there that were killed, whose names begin with ``prefix``, is removed.

    Raises:
        OSError: it is a link, or another user's.
    """
    import fcntl

    if os.path.islink(home):
        raise OSError(errno.ENOTDIR, "it is a link", home)
    opened = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        status = os.fstat(opened)
        if status.st_uid != os.geteuid():
            raise OSError(errno.EPERM, "it belongs to another user", home)
        if status.st_mode & 0o077:
            os.fchmod(opened, 0o700)
        try:
            fcntl.flock(opened, fcntl.LOCK_EX)
        except OSError:
            return opened  # a file system without locks
        for name in os.listdir(home):
            if name.startswith(prefix):
                _remove(os.path.join(home, name))
        return opened
    except BaseException:
        os.close(opened)
        raise


def _remove(path: str) -> None:
    import shutil

    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):
        os.unlink(path)


if __name__ == "__main__":
    main()
