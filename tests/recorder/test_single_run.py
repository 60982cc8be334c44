"""What is told of a run that could not be started."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from gpuwatch.core.errors import StorageError
from gpuwatch.recorder.single_run import refused


def error(number: int, filename: Path | None = None) -> OSError:
    return OSError(number, os.strerror(number), *([] if filename is None else [str(filename)]))


def test_a_full_disk_is_told_of_the_folder_that_is_on_it(tmp_path: Path) -> None:
    told = refused(error(errno.ENOSPC), tmp_path / "run")
    assert isinstance(told, StorageError) and f"cannot write to {tmp_path}: No space" in str(told)
    assert "free some space" in str(told) and "XDG_STATE_HOME" in str(told)


def test_what_else_the_system_refuses_is_not_told_as_a_full_disk(tmp_path: Path) -> None:
    told = refused(error(errno.EMFILE, Path("/proc/stat")), tmp_path / "run")
    assert str(told) == (
        "cannot start the run: Too many open files: /proc/stat; allow more: ulimit -n 4096"
    )
    told = refused(error(errno.EAGAIN), None)
    assert not isinstance(told, StorageError) and "temporarily unavailable" in str(told)
