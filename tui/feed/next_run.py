"""Which run of a study a watcher is shown after another one."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import status
from gpuwatch.session.study.progress import Following, following, recorder_alive
from gpuwatch.session.study.study_folder import is_held


@dataclass(frozen=True)
class UpcomingRuns:
    """What the study has after a run."""

    newest: Path | None
    """The run that goes on, else the last of those that are over; ``None``: none has begun."""
    awaited: Following | None
    """The first that has not begun; looked for only where ``newest`` is ``None``."""


def goes_on(folder: Path) -> bool:
    """Whether a recorder goes through the study here, between two runs and before the first too."""
    return is_held(folder) or recorder_alive(folder)


def ahead(path: Path) -> UpcomingRuns | None:
    """What comes after ``path``; ``None`` where nothing does."""
    newest = None
    coming = following(path)
    while coming is not None and coming.path.exists():
        newest = coming.path
        if not _over(newest):
            break
        coming = following(newest)
    if newest is None and coming is None:
        return None
    return UpcomingRuns(newest, None if newest is not None else coming)


def _over(path: Path) -> bool:
    """Whether nothing more is recorded to a session; one that cannot be read yet is just made."""
    try:
        with SessionReader(path) as reader:
            return not status(reader.meta(), path).live
    except GpuwatchError:
        return False
