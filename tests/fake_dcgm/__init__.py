"""A stand-in for DCGM's client ``dcgmi``, which prints what the real one prints.

Formats are those of NVIDIA's own sources (dcgmi/Query.cpp, DeviceMonitor.cpp, Command.cpp of
DCGM 3 and 4). It answers from a file, so that a test can change the answers while it runs.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).with_name("dcgmi.py")

ACTIVITY: dict[str, float | int | None] = {
    "1002": 0.731,
    "1003": 0.402,
    "1004": 0.251,
    "1005": 0.5,
    "1006": 0.0,
    "1007": 0.125,
    "1008": 0.062,
    "1009": 123456789,
    "1010": 987654321,
    "1011": 0,
    "1012": None,
}
"""What every GPU shows unless a test says otherwise."""


class FakeDcgm:
    """A host engine that knows the GPUs with these UUIDs, in this order, and its ``dcgmi``."""

    def __init__(self, folder: Path, uuids: list[str]) -> None:
        self.folder = folder / "fake-dcgm"
        self.folder.mkdir()
        program = self.folder / "dcgmi"
        program.write_text(f"#!{sys.executable} -IS\n{_PROGRAM.read_text(encoding='utf-8')}")
        program.chmod(0o755)
        self._state: dict[str, Any] = {
            "uuids": uuids,
            "values": {uuid: dict(ACTIVITY) for uuid in uuids},
        }
        self._write()

    @property
    def variables(self) -> dict[str, str]:
        """Environment variables for a program that shall find this ``dcgmi``."""
        return {"PATH": f"{self.folder}:{os.environ['PATH']}"}

    @property
    def calls(self) -> list[list[str]]:
        """The arguments of every call so far."""
        log = self.folder / "calls"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [json.loads(line)["arguments"] for line in lines]

    @property
    def pids(self) -> list[int]:
        """The processes of every call so far."""
        log = self.folder / "calls"
        lines = log.read_text(encoding="utf-8").splitlines() if log.exists() else []
        return [json.loads(line)["pid"] for line in lines]

    def set(self, uuid: str, **values: float | None) -> None:
        """Values by field: ``set(uuid, f1005=0.25)``."""
        self._state["values"][uuid].update({key[1:]: value for key, value in values.items()})
        self._write()

    def say(self, **state: Any) -> None:
        """``gone=True``: no host engine; ``watches="text"``: refuses fields; ``silent=True``."""
        self._state.update(state)
        self._write()

    def _write(self) -> None:
        partial = self.folder / "state.partial"
        partial.write_text(json.dumps(self._state), encoding="utf-8")
        partial.replace(self.folder / "state")
