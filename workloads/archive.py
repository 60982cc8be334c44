"""The workloads as one file, ``workloads.pyz``, which runs in any Python with torch.

The same source gives the same bytes on every machine: names are sorted, times and permissions are
fixed, and nothing is compressed, because compression differs between versions of zlib.
"""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

PACKAGE = "workloads"
MAIN = f"""\
import time

LAUNCHED_NS = time.monotonic_ns()

import sys

from {PACKAGE}.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], LAUNCHED_NS))
"""

_TIMESTAMP = (1980, 1, 1, 0, 0, 0)
_REGULAR_FILE = 0o100644 << 16
_UNIX = 3


def build(target: Path, source: Path | None = None) -> str:
    """Write the archive to ``target``, read-only (0444), and return its SHA-256 in hex.

    ``source`` is the folder of this package, by default that of this module; it works from a
    checkout and from an installed wheel. The file is written atomically.

    Raises:
        OSError: the folder cannot be read or the target cannot be written.
    """
    folder = source if source is not None else Path(__file__).resolve().parent
    return write(target, {"__main__.py": MAIN.encode(), **modules(folder, PACKAGE)})


def modules(source: Path, package: str) -> dict[str, bytes]:
    """Every Python file of the folder ``source``, by its name in the archive."""
    return {
        f"{package}/{path.relative_to(source).as_posix()}": path.read_bytes()
        for path in source.rglob("*.py")
    }


def write(target: Path, files: Mapping[str, bytes]) -> str:
    """Write an archive of ``files`` to ``target``; see `build`."""
    content = pack(files)
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(temporary).chmod(0o444)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    from hashlib import sha256

    return sha256(content).hexdigest()


def pack(files: Mapping[str, bytes]) -> bytes:
    """The bytes of an archive of ``files``."""
    import zipfile  # here, like hashlib: recorders of the machine alone need neither

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.create_system = _UNIX
            entry.external_attr = _REGULAR_FILE
            archive.writestr(entry, files[name])
    return buffer.getvalue()
