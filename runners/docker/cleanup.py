"""Containers left by a dead gpuwatch: their run's folder is gone, so no session refers to them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import docker

from gpuwatch.core.processes import ProcessId
from gpuwatch.runners.docker.client import AWAY, Daemon
from gpuwatch.runners.docker.container import LABEL


def remove(daemon: Daemon, *, running: bool) -> list[str]:
    """Remove them, with ``running`` also those that still run; returns a line for each."""
    lines = []
    with contextlib.suppress(*AWAY), daemon.client(timeout=60) as api:
        for name, state in _leftovers(api):
            if state in ("created", "exited", "dead") or running:
                with contextlib.suppress(*AWAY):
                    api.remove_container(name, v=True, force=True)
                    lines.append(f"removed container {name} ({state}): its run is gone")
    return lines


def _leftovers(api: docker.APIClient) -> Iterator[tuple[str, str]]:
    """Name and state of each; only the caller's own, from this host."""
    filters = [f"{LABEL}host={socket.gethostname()}", f"{LABEL}owner={os.geteuid()}"]
    for container in api.containers(all=True, filters={"label": filters}):
        labels = container.get("Labels") or {}
        if Path(labels.get(f"{LABEL}folder", "/")).is_dir():
            continue
        recorder = _recorder(labels.get(f"{LABEL}recorder", ""))
        if recorder is not None and recorder.alive() is not False:
            continue  # the folder of a recorded run was removed
        yield container["Names"][0].lstrip("/"), str(container.get("State"))


def _recorder(label: str) -> ProcessId | None:
    try:
        return ProcessId(**json.loads(label))
    except (ValueError, TypeError):
        return None
