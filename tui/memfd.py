"""Files without a name, for what other programs write."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import IO


def nameless_file() -> IO[bytes]:
    """In memory where the system can, for a full disk is what some commands have to tell of."""
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("gpuwatch"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def text_in(file: IO[bytes]) -> str:
    """All that was written to it."""
    file.seek(0)
    return file.read().decode("utf-8", "replace")
