"""The runs of a study that follow another one."""

from __future__ import annotations

from pathlib import Path

from gpuwatch.core.errors import GpuwatchError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.session import placement
from gpuwatch.session.placement import JobState
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import status
from gpuwatch.session.study.progress import Following, following, recorder_alive
from gpuwatch.session.study.study_folder import is_held

_WAITING = (JobState.QUEUED, JobState.UNKNOWN)


@dataclass(frozen=True)
class UpcomingRuns:
    """The runs of a study after a given one."""

    newest: Path | None
    """The live run, else the last finished one; ``None``: none has started."""
    pending: Following | None
    """The first run that has not started; ``None`` unless ``newest`` is ``None``."""
    waits: str = ""
    """What it waits for at another place: ``queued on slurm: Resources``."""


def goes_on(folder: Path) -> bool:
    """Whether a recorder on this host runs the study, also before and between its runs."""
    return is_held(folder) or recorder_alive(folder)


def upcoming_runs(path: Path) -> UpcomingRuns | None:
    """The runs after the session ``path``; ``None``: it is the last one."""
    newest = None
    next_run = following(path)
    while next_run is not None and next_run.path.exists():
        newest = next_run.path
        if not _finished(newest):
            break
        next_run = following(newest)
    if newest is None and next_run is None:
        return None
    if newest is not None:
        return UpcomingRuns(newest, None)
    known = placement.read(path.parent)
    waits = known is not None and known.state in _WAITING
    return UpcomingRuns(None, next_run, known.text if known is not None and waits else "")


def _finished(path: Path) -> bool:
    """Whether a session's run has ended; one that cannot be read yet was only just created."""
    try:
        with SessionReader(path) as reader:
            return not status(reader.meta(), path).live
    except GpuwatchError:
        return False
