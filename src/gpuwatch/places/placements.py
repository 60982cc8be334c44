"""This user's own record of what was sent to places: the only authority on what may be submitted,
called or cancelled there.

Each is a private folder ``placements/ID`` in the state folder, with the study that it belongs to.
``placement.json`` in the study's folder may come from anybody, and only describes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import time
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.processes import ProcessId, identify
from gpuwatch.core.text import shell, to_paste
from gpuwatch.core.typed import typed
from gpuwatch.places.base import Job
from gpuwatch.session.reading.status import process_id
from gpuwatch.session.study.attempts import ATTEMPT
from gpuwatch.session.study.outcomes import missing
from gpuwatch.session.study.plan import read as read_plan

_RECORD, _LEASE = "record.json", "lease.json"
LEASE_SECONDS = 60.0
"""A lease of another machine is over when it was not renewed for this long."""


@dataclass(frozen=True)
class Placed:
    """A study that was sent to a place."""

    id: str
    """16 hexadecimal digits, and the name of the folder."""
    place: str
    """As on the command line: ``ssh=gpu1``."""
    study: str
    """The study's folder here: an absolute path without links."""
    attempt: str
    """The attempt that runs, or ran last."""
    sent: float
    """When it was sent first, in Unix seconds."""
    missing: int
    """Runs of the study that were missing when the attempt was noted."""
    native: str | None = None
    """The place's id of that job, once it is submitted."""
    done: bool = False
    """Whether the attempt is over and all is here that the place has."""
    work: bool = False
    """Whether the folder that its commands run in is sent along."""
    whole: bool = False
    """Whether the attempt is over and all is here; the place may still keep something of it."""

    @property
    def job(self) -> Job:
        """The job of its attempt."""
        folder = Path(self.study)
        return Job(self.attempt, f"{folder.name}-{self.id[:8]}", folder, self.work)

    @property
    def capsule(self) -> Path:
        """gpuwatch as one file, as it was when the study was sent."""
        return _home() / self.id / "gpuwatch.pyz"


def create(place: str, study: Path, capsule: Path, *, work: bool = False) -> Placed:
    """Note durably that ``study`` is to run at ``place``, before anything is submitted.

    ``capsule``, gpuwatch as one file, is kept beside: a study is followed by what began it.
    ``work``: the folder that its commands run in is sent along.

    Raises:
        StorageError: it cannot be written.
    """
    folder = str(study.resolve())
    placed = Placed(
        id=secrets.token_hex(8),
        place=place,
        study=folder,
        attempt=secrets.token_hex(8),
        sent=time.time(),
        missing=missing_runs(study),
        work=work,
    )
    paths.private_folder(_home() / placed.id)
    try:
        output.write_once(placed.capsule, capsule.read_bytes())
    except OSError as error:
        raise paths.unwritten(placed.capsule, error) from error
    _write(placed)
    return placed


def new_attempt(placed: Placed) -> Placed:
    """Note a further attempt, for the runs that are missing.

    Raises:
        StorageError: it cannot be written.
    """
    placed = replace(
        placed,
        attempt=secrets.token_hex(8),
        missing=missing_runs(Path(placed.study)),
        native=None,
        done=False,
        whole=False,
    )
    _write(placed)
    return placed


def missing_runs(study: Path) -> int:
    """How many runs of the study in this folder are missing."""
    plan = read_plan(study)
    return 0 if plan is None else len(missing(study, plan))


def update(placed: Placed, **changes: object) -> Placed:
    """Note ``changes`` of the fields, on top of what is noted by now.

    Raises:
        StorageError: it cannot be written.
    """
    placed = replace(read(placed.id) or placed, **changes)  # type: ignore[arg-type]
    _write(placed)
    return placed


def _write(placed: Placed) -> None:
    folder = _home() / placed.id
    try:
        output.write_text(folder / _RECORD, json.dumps(asdict(placed)), flush=True)
    except OSError as error:
        raise paths.unwritten(folder, error) from error


def log_of(placed: Placed) -> Path:
    """Where the process that follows it writes what goes wrong."""
    return _home() / placed.id / "follower.log"


def read(id_: str) -> Placed | None:
    """What is noted under this id; ``None`` if nothing is, or the folder is not this user's own."""
    folder = _home() / id_
    if not ATTEMPT.fullmatch(id_) or not paths.is_private(folder):
        return None
    try:
        placed = typed(Placed, json.loads((folder / _RECORD).read_text()))
    except (OSError, ValueError, TypeError):
        return None
    return placed if placed.id == id_ else None


def of_study(folder: Path) -> Placed | None:
    """What is noted of a study, by its folder; ``None``: this user sent it nowhere."""
    study = str(folder.resolve())
    return next((placed for placed in all_placed() if placed.study == study), None)


def named(text: str) -> Placed | None:
    """What is noted of the study that ``text`` names: its folder, or that folder's name.

    Raises:
        UsageError: several have the name.
    """
    path = Path(text)
    if os.path.isdir(path):
        return of_study(path)
    found = dict.fromkeys(each.study for each in all_placed() if Path(each.study).name == text)
    if len(found) > 1:
        ones = ", ".join(map(shell, found))
        raise UsageError(f"{text} may be any of {len(found)}", f"name one: {ones}")
    return next((of_study(Path(each)) for each in found), None)


def newest() -> Placed | None:
    """The study that goes on at a place and was sent there last."""
    return next((placed for placed in all_placed() if not placed.done), None)


def all_placed() -> list[Placed]:
    """Everything that this user sent to places, the newest first."""
    found = (placed for name in _ids() if (placed := read(name)) is not None)
    return sorted(found, key=lambda placed: -placed.sent)


def unreadable() -> list[Path]:
    """Folders of what was sent, of which nothing can be read, as of another gpuwatch's."""
    return [_home() / name for name in _ids() if read(name) is None]


def _ids() -> list[str]:
    try:
        return sorted(os.listdir(_home()))
    except OSError:
        return []


def forget(placed: Placed) -> None:
    """Remove the note of a study that is deleted."""
    shutil.rmtree(_home() / placed.id, ignore_errors=True)


@contextlib.contextmanager
def lease(placed: Placed) -> Iterator[Lease]:
    """Be the only one that follows the study, until the end of the block.

    Raises:
        UsageError: somebody else does.
        StorageError: it cannot be written.
    """
    path = _home() / placed.id / _LEASE
    lease_ = Lease(path)
    try:
        with paths.one_at_a_time():
            if follower(placed) is None:  # nobody's, or of somebody who is dead
                path.unlink(missing_ok=True)
            taken = lease_.take()
    except OSError as error:
        raise StorageError(
            f"cannot write to {path.parent}: {error.strerror}", "free some space"
        ) from error
    if not taken:
        holder = process_id(_held_by(path)[0])
        raise UsageError(
            f"{placed.study} is followed already, on {holder.host if holder else 'another host'}",
            f"watch it: {to_paste('attach', Path(placed.study).name)}",
        )
    try:
        yield lease_
    finally:
        lease_.give_back()


def follower(placed: Placed) -> ProcessId | None:
    """Who follows the study now; ``None``: nobody."""
    path = _home() / placed.id / _LEASE
    holder, renewed = _held_by(path)
    process = process_id(holder)
    return process if process is not None and not _expired(process, renewed) else None


class Lease:
    """A file that names its holder. It is renewed, since only on its own machine a process can be
    seen to be dead: the state folder may be shared."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._due = 0.0

    def take(self) -> bool:
        """Take it; returns ``False`` if somebody has it."""
        own = identify(os.getpid())
        assert own is not None
        text = json.dumps({"holder": asdict(own), "token": secrets.token_hex(8)})
        output.write_once(self._path, text.encode())
        self._text = text
        return self._is_own()

    def renew(self) -> bool:
        """Tell others that it is still held; returns ``False`` if it was taken away."""
        if time.monotonic() < self._due:
            return True
        self._due = time.monotonic() + LEASE_SECONDS / 4
        with contextlib.suppress(OSError):
            if not self._is_own():
                return False
            os.utime(self._path)
        return True

    def give_back(self) -> None:
        """Let others have it."""
        with contextlib.suppress(OSError):
            if self._is_own():
                self._path.unlink()

    def _is_own(self) -> bool:
        return self._path.read_text() == self._text


def _held_by(path: Path) -> tuple[object, float]:
    """The holder of a lease as written, and when it was renewed in Unix seconds."""
    try:
        return json.loads(path.read_text()).get("holder"), path.stat().st_mtime
    except (OSError, ValueError, AttributeError):
        return None, 0.0


def _expired(holder: ProcessId, renewed: float) -> bool:
    alive = holder.alive()
    return not alive if alive is not None else time.time() - renewed > LEASE_SECONDS


def _home() -> Path:
    return paths.runs_home().with_name("placements")
