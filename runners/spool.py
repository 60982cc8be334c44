"""Reading the spool that a shim writes."""

from __future__ import annotations

import os
import struct
from pathlib import Path

from gpuwatch.models import Output
from gpuwatch.runners.shim import FRAME, LOST, STDERR

_AT_ONCE = 4 << 20
_STREAMS = {1: "stdout", STDERR: "stderr"}


class SpoolReader:
    """Follows the frames from a cursor ``SEGMENT:OFFSET`` on."""

    def __init__(self, folder: Path, cursor: str | None = None) -> None:
        self._folder = folder
        segment, _, offset = (cursor or "1:0").partition(":")
        self._segment, self._offset = int(segment), int(offset or 0)
        self._released = 0

    def cursor(self) -> str:
        return f"{self._segment}:{self._offset}"

    def read(self) -> list[Output]:
        """Whole frames since the last call, at most about 4 MiB of them."""
        found: list[Output] = []
        size = 0
        while size < _AT_ONCE:
            # Looked up before reading: a segment that has a follower is complete.
            following = self._following()
            frames, used = _frames(self._read_segment())
            found.extend(frames)
            self._offset += used
            size += used
            if used:
                continue
            if following is None:
                break
            self._segment, self._offset = following, 0
        return found

    def release(self, cursor: str) -> None:
        """Delete the segments before the cursor's."""
        keep = int(cursor.partition(":")[0])
        for number in self._numbers():
            if self._released < number < keep:
                self._path(number).unlink(missing_ok=True)
        self._released = keep - 1

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08d}"

    def _numbers(self) -> list[int]:
        try:
            return sorted(int(name) for name in os.listdir(self._folder) if name.isdigit())
        except FileNotFoundError:
            return []

    def _following(self) -> int | None:
        return next((number for number in self._numbers() if number > self._segment), None)

    def _read_segment(self) -> bytes:
        try:
            with self._path(self._segment).open("rb") as file:
                file.seek(self._offset)
                return file.read(_AT_ONCE)
        except FileNotFoundError:
            return b""


def _frames(data: bytes) -> tuple[list[Output], int]:
    """The whole frames at the start of ``data``, and how many bytes they take."""
    found: list[Output] = []
    at = 0
    while at + FRAME.size <= len(data):
        stream, t, length = FRAME.unpack_from(data, at)
        end = at + FRAME.size + length
        if end > len(data):
            break
        payload = data[at + FRAME.size : end]
        if stream == LOST:
            found.append(Output(t, "stdout", b"", lost=struct.unpack("<Q", payload)[0]))
        else:
            found.append(Output(t, _STREAMS.get(stream, "stdout"), payload))
        at = end
    return found, at
