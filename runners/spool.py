"""Reading the spool written by a shim."""

from __future__ import annotations

import contextlib
import os
import struct
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.core.models import Output
from gpuwatch.runners.shim import FRAME, PLACE, STDERR, STDOUT

_AT_ONCE = 4 << 20
_STREAMS = {STDOUT: "stdout", STDERR: "stderr"}
_Frame = tuple[int, int, bytes]
"""Stream, nanoseconds, payload."""


class SpoolReader:
    """Follows the frames from a cursor ``SEGMENT:OFFSET:TOTAL``; ``TOTAL`` is bytes of output."""

    def __init__(self, folder: Path, cursor: str | None = None) -> None:
        self._folder = folder
        self._segment, self._offset, self._total = map(int, (cursor or "1:0:0").split(":"))
        self._released = 0

    def cursor(self) -> str:
        return f"{self._segment}:{self._offset}:{self._total}"

    def read(self) -> list[Output]:
        """Complete frames since the last call, at most about 4 MiB, and notes on gaps."""
        outputs: list[Output] = []
        size = 0
        following: int | None = None
        while size < _AT_ONCE:
            used = 0
            for stream, t, payload in _frames(self._read_segment()):
                used += FRAME.size + len(payload)
                if stream == PLACE:
                    outputs.extend(self._missing(t, *struct.unpack("<Q", payload)))
                elif stream in _STREAMS:
                    self._total += len(payload)
                    outputs.append(Output(t, _STREAMS[stream], payload))
            self._offset += used
            size += used
            if used:
                continue
            if following is None:
                # A segment with a successor is complete; data written to it meanwhile is read
                # before the successor.
                following = self._following()
                if following is None:
                    break
                continue
            self._segment, self._offset, following = following, 0, None
        return outputs

    def _missing(self, t: int, total: int) -> list[Output]:
        """A note on dropped output, if a frame's position is beyond ``total`` bytes."""
        lost, self._total = total - self._total, total
        return [Output(t, "stdout", b"", lost=lost)] if lost > 0 else []

    def release(self, cursor: str) -> None:
        """Delete the segments before the cursor."""
        keep = int(cursor.partition(":")[0])
        for number in self._numbers():
            if self._released < number < keep:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(self._path(number))
        self._released = keep - 1

    def _path(self, number: int) -> str:
        return os.path.join(self._folder, f"{number:08d}")

    def _numbers(self) -> list[int]:
        try:
            return sorted(int(name) for name in os.listdir(self._folder) if name.isdigit())
        except FileNotFoundError:
            return []

    def _following(self) -> int | None:
        return next((number for number in self._numbers() if number > self._segment), None)

    def _read_segment(self) -> bytes:
        try:
            file = os.open(self._path(self._segment), os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return b""
        try:
            return os.pread(file, _AT_ONCE, self._offset)
        finally:
            os.close(file)


def _frames(data: bytes) -> Iterator[_Frame]:
    """The complete frames at the start of ``data``."""
    at = 0
    while at + FRAME.size <= len(data):
        stream, t, length = FRAME.unpack_from(data, at)
        end = at + FRAME.size + length
        if end > len(data):
            break
        yield stream, t, data[at + FRAME.size : end]
        at = end
