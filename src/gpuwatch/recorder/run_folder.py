"""A run's private folder: the only thing that says what may be stopped, called or removed.

A session file may come from anybody, and may have been replaced by anybody who can write its
folder. What is in it is shown, never acted on.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import GpuwatchError, StorageError, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.processes import ProcessId, identify
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import process_id
from gpuwatch.session.writing.write_hints import room

_LOCK, _HANDLE, _SETTINGS, _STOP = "recorder.lock", "handle.json", "settings.json", "stop"
_LAUNCHED = "started.json"
"""The shim's note, there before its recorder knows of it."""
_IN_THE_MAKING = 60.0
"""Seconds: a folder that names no recorder yet may get one for so long."""


@dataclass(frozen=True)
class Settings:
    """What another recorder of a run needs to know, and takes from no session file."""

    interval: float = 0.5
    """Seconds between two samples."""
    dcgm: str | None = None
    """Where DCGM's host engine is asked; ``None``: it is not."""


STOP_COMMAND = "stop"
"""Why a run was stopped that ``gpuwatch stop`` ended."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the run's recorder until the end of the block or of this process, and name it there.

    Raises:
        StorageError: another recorder has it, or the folder cannot be written.
    """
    try:
        fd = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(
            f"cannot write to {folder}: {error.strerror}", room(folder, error)
        ) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise StorageError(
                "another recorder has this run", "watch it: gpuwatch attach"
            ) from error
        recorder = identify(os.getpid())
        with contextlib.suppress(OSError):  # a full disk: the session names it as well
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(asdict(recorder) if recorder else None).encode(), 0)
        yield
    finally:
        os.close(fd)


def sweep() -> None:
    """Remove the folders that recorders which died left of runs that nothing more is to be read of.

    Those are runs whose end is in their session, and runs that never began.
    """
    paths.remove_the_rest()
    for folder in paths.run_folders():
        with contextlib.suppress(OSError):
            if _is_over(folder):
                paths.remove_run_folder(folder)


def _is_over(folder: Path) -> bool:
    recorder = recorder_of(folder)
    if recorder is None:
        if time.time() - folder.stat().st_mtime < _IN_THE_MAKING:
            return False
    elif recorder.alive() is not False:
        return False
    session = paths.session_of(folder)
    if session is None or not session.exists():
        # Of a session that was deleted, or whose disk is away, the run may still go on.
        begun = handle_of(folder).get("holder") or (folder / _LAUNCHED).exists()
        return not begun and (session is None or session.parent.is_dir())
    try:
        with SessionReader(session) as reader:
            meta = reader.meta()
    except GpuwatchError:
        return False
    result = mapping(meta.get("result"))
    ended = result.get("code") is not None or result.get("signal") is not None
    own = mapping(meta.get("session")).get("id") == folder.name
    return own and (ended or bool(result.get("launcher_failed")))


def note_session(folder: Path, session: Path) -> None:
    """Keep which file the run is recorded to.

    Raises:
        OSError: it cannot be written.
    """
    output.write_text(folder / paths.RUN_SESSION, str(session.resolve()))


def note_handle(folder: Path, handle: Mapping[str, JSON]) -> None:
    """Keep what the run is found by again.

    Raises:
        OSError: it cannot be written.
    """
    output.write_text(folder / _HANDLE, json.dumps(handle))


def note_settings(folder: Path, settings: Settings) -> None:
    """Keep what another recorder of the run needs to know.

    Raises:
        OSError: it cannot be written.
    """
    output.write_text(folder / _SETTINGS, json.dumps(asdict(settings)))


def note_stop(folder: Path) -> None:
    """Keep that the signal which the recorder gets now is ``gpuwatch stop``'s. Best effort."""
    with contextlib.suppress(OSError):
        (folder / _STOP).touch()


def why_stopped(folder: Path, why: str | None) -> str | None:
    """``why`` as the recorder knows it, or that it was ``gpuwatch stop``."""
    return STOP_COMMAND if why == "SIGTERM" and (folder / _STOP).exists() else why


def recorder_of(folder: Path) -> ProcessId | None:
    """The process that records the run, or did."""
    return process_id(_read(folder / _LOCK))


def handle_of(folder: Path) -> dict[str, JSON]:
    """What the run is found by again, in this folder; empty where that was not kept."""
    value = _read(folder / _HANDLE)
    return {**value, "folder": str(folder)} if isinstance(value, dict) else {}


def settings_of(folder: Path) -> Settings:
    """What :func:`note_settings` kept; the defaults where it kept nothing."""
    value = _read(folder / _SETTINGS)
    return Settings(**value) if isinstance(value, dict) else Settings()


def folders_of(session: Path) -> list[Path]:
    """The folders of the runs that are recorded to a file, or to files in a study's folder."""
    whole = session.resolve()
    named = ((folder, paths.session_of(folder)) for folder in paths.run_folders())
    return [folder for folder, path in named if path is not None and whole in (path, path.parent)]


def folder_of(session: Path, run_id: str) -> Path | None:
    """The folder of the run ``run_id`` that is recorded to this very file; ``None``: this user has
    none here."""
    return next((folder for folder in folders_of(session) if folder.name == run_id), None)


def check_is_here(folder: Path, session: Path) -> None:
    """Leave a run that may be recorded elsewhere to those who can see it.

    Raises:
        UsageError: it cannot be known here whether its recorder lives.
    """
    recorder = recorder_of(folder)
    if recorder is not None and recorder.alive() is None:
        raise RecordedElsewhere(session, recorder)


class NotYours(UsageError):
    """A session says that its run goes on, and no folder of this user's is of that run."""

    def __init__(self, session: Path) -> None:
        super().__init__(
            f"no run of yours here is recorded to {session}, which says that it goes on",
            "if it is another user's, do it as that user",
        )


class RecordedElsewhere(UsageError):
    """A run is on another host, or in a container: nothing is done to what cannot be seen."""

    def __init__(self, what: Path, recorder: ProcessId) -> None:
        super().__init__(
            f"{what} is recorded on {recorder.place}, and this is {socket.gethostname()}: whether "
            "its run goes on cannot be known here",
            "do it there",
        )


def _read(path: Path) -> JSON:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
