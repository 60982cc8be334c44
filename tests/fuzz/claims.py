"""Sessions that name what they have no business with: folders, processes, addresses, commands.

Each is sound but for what it says of itself; :data:`KINDS` are the kinds of lies.
"""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from gpuwatch.core.processes import ProcessId
from tests.fuzz import values


@dataclass(frozen=True)
class Targets:
    """What a file may try to reach."""

    folder: Path
    """With what a run leaves: a spool, notes of a shim."""
    process: ProcessId
    address: str
    """``HOST:PORT`` where somebody listens."""
    run_id: str
    """Of a run folder of this user's whose session is another file."""


Meta = dict[str, Any]
Lie = Callable[[random.Random, Meta, Path, Targets], str]


def mutate(rng: random.Random, path: Path, targets: Targets, kind: str) -> str:
    """Change the file in place; says how."""
    Path(f"{path}-journal").unlink(missing_ok=True)
    with sqlite3.connect(path) as file:
        rows = file.execute("SELECT key, CAST(value AS TEXT) FROM meta").fetchall()
        meta = {key: json.loads(value) for key, value in rows}
        if rng.random() < 0.6:  # a run that is not over
            for key in ("result", "closed"):
                meta.pop(key, None)
        told = [KINDS[kind](rng, meta, path, targets)]
        if rng.random() < 0.5:
            more = rng.choice(sorted(KINDS))
            told.append(f"{more}: {KINDS[more](rng, meta, path, targets)}")
        file.execute("DELETE FROM meta")
        file.executemany(
            "INSERT INTO meta VALUES (?, ?)",
            [(key, json.dumps(value)) for key, value in meta.items()],
        )
    file.close()
    return f"{kind}: {', '.join(told)}"


def _process(rng: random.Random, targets: Targets) -> dict[str, Any]:
    found = asdict(targets.process)
    key = rng.choice([*found, "", "", ""])
    if key:  # one of its values may be anything
        found[key] = rng.choice((None, -1, 0, 1, "x", rng.getrandbits(40), *values.TEXTS[:3]))
    if rng.random() < 0.2:
        del found["pid_namespace"]
    return found


def _handle(rng: random.Random, meta: Meta, targets: Targets) -> Meta:
    handle = meta.get("handle")
    if not isinstance(handle, dict):
        dead = {**asdict(targets.process), "start_time": 1}
        handle = {"kind": "bare", "folder": str(targets.folder), "holder": dead}
    handle["kind"] = rng.choice(("bare", "bare", "docker", "apptainer", "charliecloud", "nowhere"))
    meta["handle"] = handle
    return handle


def _folder(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    folder = targets.folder
    named = rng.choice((folder, folder / ".." / folder.name, folder.parent, path.parent, "..", "/"))
    _handle(rng, meta, targets)["folder"] = str(named)
    return str(named)


def _holder(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    handle = _handle(rng, meta, targets)
    handle |= {"folder": str(targets.folder), "holder": _process(rng, targets)}
    return str(handle["holder"])[:60]


def _recorder(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    meta["recorder"] = _process(rng, targets)
    return str(meta["recorder"])[:60]


def _address(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    handle = _handle(rng, meta, targets)
    host = rng.choice(("tcp://", "http://", "ssh://root@")) + targets.address
    handle |= {"kind": "docker", "host": host, "container": "0" * 64, "name": "gpuwatch-x"}
    return host


def _identity(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    _handle(rng, meta, targets)["folder"] = str(targets.folder)
    names = (targets.run_id, "../../outside/run", "; touch PWN #", "", "last", str(targets.folder))
    name = rng.choice((*names, *values.TEXTS))
    session = meta.get("session")
    meta["session"] = {**(session if isinstance(session, dict) else {}), "id": name, "study": name}
    return name[:40]


def _place(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    """Where it was recorded, and how far it was read."""
    _handle(rng, meta, targets)["folder"] = str(targets.folder)
    meta["clock"] = {**meta.get("clock", {}), "boot_id": rng.choice(("x", "", None, 7))}
    at = rng.choice(("1:0:0", "-1:0", "../../x:0", "99999999999:5:7", "x", None, 3))
    meta["cursor"] = {"at": at}
    meta["run_state"] = {"state": rng.choice(("paused", "lost", "queued", "x", None, 3))}
    return f"cursor {at}"


def _plan(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    """A plan beside it that runs something."""
    command = ["touch", str(targets.folder / "ran")]
    environment = {"kind": rng.choice(("bare", "docker")), "label": "e", "pull": True}
    environment |= {"image": None if environment["kind"] == "bare" else f"{targets.address}/x:1"}
    part = {
        "name": "p",
        "blocks": None,
        "warmup_blocks": 0,
        "margin": 0.01,
        "cool_down_seconds": 0.0,
        "sweep": {},
        "environments": [environment],
        "workloads": [{"name": "touch", "kind": "command", "arguments": command}],
    }
    plan = {
        "schema": 2,
        "study": "../x",
        "seed": 1,
        "signature": rng.choice((None, "0" * 64, "")),
        "host": rng.choice((targets.process.host, targets.process.host, "another")),
        "interval_seconds": 0.5,
        "working_directory": str(targets.folder),
        "dcgm": targets.address,
        "parts": [part],
        "runs": [
            {"index": n, "file": file, "part": 0, "block": None, "workload": 0, "environment": 0}
            for n, file in enumerate((path.name, "02-e.gpuwatch"), 1)
        ],
    }
    written = {"plan.json": plan, "labels.json": {"": {"name": "; touch PWN #"}}}
    for name, content in written.items():
        there = path.parent / name
        there.unlink(missing_ok=True)  # a link that another change made
        there.write_text(json.dumps(content))
    return str(environment["kind"])


def _link(rng: random.Random, meta: Meta, path: Path, targets: Targets) -> str:
    """Names of a study's other files that lead out of it."""
    name = rng.choice(
        ("summary.md", "summary.json", "recorder.log", "labels.json", "02-x.gpuwatch")
    )
    there = path.parent / name
    there.unlink(missing_ok=True)
    there.symlink_to(rng.choice((targets.folder / "file", targets.folder, path)))
    return name


KINDS: dict[str, Lie] = {
    "folder": _folder,
    "holder": _holder,
    "recorder": _recorder,
    "address": _address,
    "identity": _identity,
    "place": _place,
    "plan": _plan,
    "link": _link,
}
