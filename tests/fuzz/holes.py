"""What gpuwatch once did with what a session said, to see that the watch would see it again."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from gpuwatch.cli.commands import stop
from gpuwatch.core.models import mapping
from gpuwatch.recorder import api, recover, run_folder
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import process_id


def _stop_by_its_handle() -> None:
    def by_its_handle(path: Path, meta: Mapping[str, Any]) -> str | None:
        handle = mapping(meta.get("handle"))
        # Not of Docker: that would end the control group of the process that is named.
        if handle.get("kind") != "bare" or not Path(str(handle.get("folder"))).is_dir():
            return None
        return f"stopped {path}" if stop._end(dict(handle), path) else None

    stop._stop_machine = by_its_handle


def _stop_by_its_recorder() -> None:
    def by_its_recorder(path: Path, meta: Mapping[str, Any]) -> str | None:
        recorder = process_id(meta.get("recorder"))
        if recorder is None or not recorder.alive():
            return None
        with contextlib.suppress(OSError):
            os.kill(recorder.pid, signal.SIGTERM)
        return f"stopped {path}"

    stop._stop_machine = by_its_recorder


def _take_up_its_folder() -> None:
    def its_folder(path: Path, run_id: str) -> Path | None:
        with SessionReader(path) as reader:
            folder = mapping(reader.meta().get("handle")).get("folder")
        return Path(folder) if isinstance(folder, str) and Path(folder).is_dir() else None

    def its_handle(folder: Path) -> dict[str, Any]:
        return {"kind": "nowhere", "folder": str(folder), "holder": None}  # no run to wait for

    recover.run_folder.folder_of = its_folder
    run_folder.handle_of = its_handle


def _resume_what_anybody_planned() -> None:
    api.is_own = lambda plan: True


HOLES: dict[str, Callable[[], None]] = {
    "stop by its handle": _stop_by_its_handle,
    "stop by its recorder": _stop_by_its_recorder,
    "take up its folder": _take_up_its_folder,
    "resume what anybody planned": _resume_what_anybody_planned,
}
