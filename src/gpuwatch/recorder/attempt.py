"""Runs what is missing of a study that was sent here from elsewhere, once for each attempt."""

from __future__ import annotations

import os
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.core.errors import ExitCode, StorageError
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.request import Request
from gpuwatch.recorder.resume import execute_missing
from gpuwatch.recorder.sources import check_dcgm
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.attempts import ATTEMPTS, attempts


def run_attempt(request: Request, folder: Path, attempt: str, observer: Observer) -> ExitCode:
    """Execute the missing runs of the study in ``folder``, unless ``attempt`` was started before: a
    scheduler may start a job again, but runs are never repeated unasked.

    Raises:
        UsageError: the study has another recorder.
        StorageError: the study cannot be written.
    """
    if attempt in attempts(folder):
        return ExitCode.DONE
    with study_folder.held(folder):
        _note(folder, attempt)
        check_dcgm(request.plan.settings.dcgm)
        return execute_missing(request, folder, observer)


def _note(folder: Path, attempt: str) -> None:
    """Note durably that ``attempt`` was started."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    try:
        file = output.private_file(str(folder / ATTEMPTS), flags)
        try:
            os.write(file, f"{attempt}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
    except OSError as error:
        raise StorageError(
            f"cannot write to {folder}: {error.strerror}", "free some space there"
        ) from error
