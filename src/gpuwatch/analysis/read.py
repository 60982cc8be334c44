"""Session files and study folders, read once each, to a result."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from gpuwatch.analysis.cells import Read as Read
from gpuwatch.analysis.results import StudyResult


def read_study(
    folder: Path, *, across_devices: bool = False, margin: float | None = None
) -> StudyResult:
    """The result of the study in ``folder``, of a plan of any schema or none.

    A session that cannot be read is a note that names the file.
    """
    raise NotImplementedError


def read_sessions(
    paths: Sequence[Path], *, across_devices: bool = False, margin: float | None = None
) -> StudyResult:
    """The result of sessions that were put together by hand.

    Sessions of one study whose plan has blocks are compared in its blocks; others in groups of the
    same workload, parameters, environment, device and study, which no block pairs.

    Raises:
        GpuwatchError: a file cannot be read as a session.
    """
    raise NotImplementedError
