"""The session of an imported profile: without samples, steps, or the times of a recorded run."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timezone
from pathlib import Path

from gpuwatch import __version__
from gpuwatch.core.errors import StorageError
from gpuwatch.core.models import JSON, Environment, Workload, those
from gpuwatch.profiles.files import Profile
from gpuwatch.profiles.merge import Imported
from gpuwatch.session import schema
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.blocks import plan_runs
from gpuwatch.session.study.plan import PLAN, Part, Plan
from gpuwatch.session.writing.statements import device_row, meta
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.telemetry.base import Device

NAME = "imported profile"
"""The workload's name in these sessions; their labels distinguish them."""


def save(out: Path, label: str, profiles: Sequence[Profile], imported: Imported) -> Path:
    """Write a study of one session; returns the session's path.

    Raises:
        StorageError: the folder cannot be written.
    """
    workload = Workload(NAME, "import")
    environment = Environment("import", label)
    part = Part("", (workload,), (environment,))
    (run,) = plan_runs([part], 0)
    folder = study_folder.create(out, Plan("", (part,), (run,)))
    path = folder / run.file
    rows = [
        meta(
            "session",
            {
                "id": uuid.uuid4().hex[:12],
                "label": label,
                "study": folder.name,
                "index": run.index,
                "schema": schema.VERSION,
                "gpuwatch": __version__,
            },
        ),
        meta("workload", {"name": NAME, "kind": "import", "arguments": [], "parameters": {}}),
        meta("environment", {"kind": "import", "label": label, "image": None, "engine": None}),
        meta("imported", _imported(profiles, imported)),
        meta("profile", imported.profile),
        meta("closed", {"t": 0}),
    ]
    if imported.counters is not None:
        rows.append(meta("counters", imported.counters))
    device = _device(imported)
    if device is not None:
        rows.append(device_row(device, used=True))
    try:
        SessionStore.create(path, (), rows).close()
    except StorageError:
        (folder / PLAN).unlink(missing_ok=True)
        folder.rmdir()
        raise
    return path


def _imported(profiles: Sequence[Profile], imported: Imported) -> JSON:
    """Origin: time of the import, and each file's name and SHA-256."""
    return {
        "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": imported.command,
        "files": [
            {
                **those(each, "name", "sha256", "bytes"),
                **those(each.report, "tool", "version"),
                "tables": sorted(each.report.tables),
                "counters": bool(each.report.kernels),
            }
            for each in profiles
        ],
    }


def _device(imported: Imported) -> Device | None:
    """The GPU, if the files or the user name it or its compute capability."""
    if imported.device is None and imported.capability is None:
        return None
    name = imported.device or f"GPU of compute capability {imported.capability}"
    known = {"compute.capability": imported.capability} if imported.capability else {}
    return Device("gpu0", "gpu", name, None, known)
