"""A run's private folder: the only authority on what may be stopped, called or removed.

A session file may come from anybody, or be replaced by anyone who can write to its folder. Its
content is shown, but never acted on.
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
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import JSON, mapping
from gpuwatch.core.processes import ProcessId, identify
from gpuwatch.session.reading.reader import known_meta
from gpuwatch.session.reading.status import process_id
from gpuwatch.session.writing.write_hints import write_hint

_LOCK, _HANDLE, _SETTINGS, _STOP = "recorder.lock", "handle.json", "settings.json", "stop"
_LAUNCHED = "started.json"
"""The shim's note, which exists before the recorder knows of the start."""
IN_THE_MAKING = 60.0
"""Seconds for which a new folder may still lack its recorder."""


@dataclass(frozen=True)
class Settings:
    """What another recorder of the run needs, and never takes from a session file."""

    interval: float = 0.5
    """Seconds between two samples."""
    dcgm: str | None = None
    """Address of DCGM's host engine; ``None``: DCGM is not used."""
    gpus_off: bool = False
    """Whether NVML is not used."""


STOP_COMMAND = "stop"
"""Stop reason of a run ended by ``gpuwatch stop``."""


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Hold the run's lock, which names this process, until the end of the block or process.

    Raises:
        StorageError: the run has another recorder, or the folder cannot be written.
    """
    try:
        fd = os.open(folder / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StorageError(
            f"cannot write to {folder}: {error.strerror}", write_hint(folder, error)
        ) from error
    try:
        if not paths.locked(fd, fcntl.LOCK_EX):
            raise StorageError("this run already has a recorder", "watch it: gpuwatch attach")
        recorder = identify(os.getpid())
        with contextlib.suppress(OSError):  # a full disk: the session names it as well
            os.ftruncate(fd, 0)
            os.pwrite(fd, json.dumps(asdict(recorder) if recorder else None).encode(), 0)
        yield
    finally:
        os.close(fd)


def sweep() -> None:
    """Remove the folders that dead recorders left, if nothing more can be read from them.

    That holds for runs whose end is in their session, and for runs that never began.
    """
    paths.remove_the_rest()
    for folder in paths.run_folders():
        with contextlib.suppress(OSError):
            if _is_over(folder):
                paths.remove_run_folder(folder)


def _is_over(folder: Path) -> bool:
    recorder = recorder_of(folder)
    if recorder is None:
        if time.time() - folder.stat().st_mtime < IN_THE_MAKING:
            return False
    elif recorder.alive() is not False:
        return False
    session = paths.session_of(folder)
    if session is None or not session.exists():
        # The run may go on although its session was deleted or its disk is unmounted.
        begun = handle_of(folder).get("holder") or (folder / _LAUNCHED).exists()
        return not begun and (session is None or session.parent.is_dir())
    if (meta := known_meta(session)) is None:
        return False
    result = mapping(meta.get("result"))
    ended = result.get("code") is not None or result.get("signal") is not None
    own = mapping(meta.get("session")).get("id") == folder.name
    return own and (ended or bool(result.get("launcher_failed")))


def note_session(folder: Path, session: Path) -> None:
    """Store the path of the run's session.

    Raises:
        OSError: it cannot be written.
    """
    output.write_text(folder / paths.RUN_SESSION, str(session.resolve()))


def note_handle(folder: Path, handle: Mapping[str, JSON]) -> None:
    """Store the handle by which the run is found again.

    Raises:
        OSError: it cannot be written.
    """
    output.write_text(folder / _HANDLE, json.dumps(handle))


def note_settings(folder: Path, settings: Settings) -> None:
    """Store what another recorder of the run needs.

    Raises:
        OSError: it cannot be written.
    """
    output.write_text(folder / _SETTINGS, json.dumps(asdict(settings)))


def note_stop(folder: Path) -> None:
    """Note that the recorder's next signal comes from ``gpuwatch stop``. Best effort."""
    with contextlib.suppress(OSError):
        (folder / _STOP).touch()


def why_stopped(folder: Path, why: str | None) -> str | None:
    """``why``, or :data:`STOP_COMMAND` if the signal came from ``gpuwatch stop``."""
    return STOP_COMMAND if why == "SIGTERM" and (folder / _STOP).exists() else why


def recorder_of(folder: Path) -> ProcessId | None:
    """The process that records or recorded the run."""
    return process_id(_read(folder / _LOCK))


def handle_of(folder: Path) -> dict[str, JSON]:
    """The handle by which the run is found again; empty if none was stored."""
    value = _read(folder / _HANDLE)
    return {**value, "folder": str(folder)} if isinstance(value, dict) else {}


def settings_of(folder: Path) -> Settings:
    """The settings stored by :func:`note_settings`, or the defaults."""
    value = _read(folder / _SETTINGS)
    return Settings(**value) if isinstance(value, dict) else Settings()


def folders_of(session: Path) -> list[Path]:
    """Folders of the runs recorded to a session, or to sessions in a study's folder."""
    whole = session.resolve()
    named = ((folder, paths.session_of(folder)) for folder in paths.run_folders())
    return [folder for folder, path in named if path is not None and whole in (path, path.parent)]


def folder_of(session: Path, run_id: str) -> Path | None:
    """The folder of run ``run_id``, if it is recorded to this file; ``None``: this user has none
    here."""
    return next((folder for folder in folders_of(session) if folder.name == run_id), None)


def check_is_here(folder: Path, session: Path) -> None:
    """Refuse a run that may be recorded elsewhere.

    Raises:
        UsageError: whether its recorder lives cannot be checked here.
    """
    recorder = recorder_of(folder)
    if recorder is not None and recorder.alive() is None:
        raise RecordedElsewhere(session, recorder)


class NotYours(UsageError):
    """A session claims to be running, but this user has no folder for its run."""

    def __init__(self, session: Path) -> None:
        super().__init__(
            f"no run of yours here is recorded to {session}, which claims to be running",
            "if it is another user's, run this as that user",
        )


class RecordedElsewhere(UsageError):
    """A run on another host or in a container, where it can be neither checked nor changed."""

    def __init__(self, what: Path, recorder: ProcessId) -> None:
        super().__init__(
            f"{what} is recorded on {recorder.place}: whether its run is still going cannot be "
            f"checked on {socket.gethostname()}",
            "run the command there",
        )


def _read(path: Path) -> JSON:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None
