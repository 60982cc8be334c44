"""The file that ``--out`` names: one that is there already is never overwritten."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from gpuwatch.core import output
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.signals import interruptible


def check(out: Path | None) -> None:
    """Before the work is done: raise ``UsageError`` if ``out`` is a file or a folder."""
    # pathlib's own raise where a name is too long, or a folder is closed.
    there = out is not None and (os.path.isfile(out) or os.path.isdir(out))
    if out is not None and there and not os.path.islink(out):
        raise UsageError(f"{out} already exists", "choose another name, or remove it")


def write(out: Path | None, text: str) -> None:
    """To ``out``, as :func:`opened` does, else to standard output."""
    if out is None:
        sys.stdout.write(text)
    else:
        with opened(out) as file:
            file.write(text.encode())


@contextmanager
def opened(out: Path) -> Iterator[BinaryIO]:
    """``out`` for writing within the block; removed if that fails. A pipe or a device is written to
    as it is.

    Raises:
        UsageError: it exists.
        StorageError: it cannot be written.
    """
    check(out)
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with interruptible(), output.open_output(out) as file:
            yield file
    except OSError as error:
        reason = error.strerror or error
        if isinstance(error, FileExistsError) and not os.path.isdir(out.parent):
            reason = f"{out.parent} is not a folder"
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        hint = "free some space" if full else "choose another --out"
        raise StorageError(f"cannot write {out}: {reason}", hint) from error
