"""The workloads as one file, ``workloads.pyz``, which runs in any Python with torch.

The same source gives the same bytes on every machine: names are sorted, times and permissions are
fixed, and nothing is compressed, because compression differs between versions of zlib.
"""

from __future__ import annotations

import io
import os
import tempfile
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
    content = pack(source if source is not None else Path(__file__).resolve().parent)
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


def pack(source: Path) -> bytes:
    """The archive's bytes: a ``__main__.py`` and every Python file of ``source``."""
    import zipfile  # here, like hashlib: recorders of other programs need neither

    files = {"__main__.py": MAIN.encode()}
    for path in source.rglob("*.py"):
        files[f"{PACKAGE}/{path.relative_to(source).as_posix()}"] = path.read_bytes()
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _TIMESTAMP)
            entry.create_system = _UNIX
            entry.external_attr = _REGULAR_FILE
            archive.writestr(entry, files[name])
    return buffer.getvalue()
