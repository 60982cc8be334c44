"""From arbitrary pieces of bytes to lines of text."""

from __future__ import annotations

LONGEST_LINE = 64 * 1024
"""Longer lines are cut into pieces of this many bytes."""

_LONGEST_STEP_LINE = 1024 * 1024


class LineAssembler:
    """Collects one stream.

    A carriage return overwrites, as on a terminal; bytes that are no UTF-8 are replaced.
    """

    def __init__(self, prefix: bytes, pending: bytes = b"") -> None:
        self._prefix = prefix
        self._buffer = bytearray(pending)

    @property
    def pending(self) -> bytes:
        """The unfinished line so far."""
        return bytes(self._buffer)

    def feed(self, data: bytes) -> list[str]:
        """The lines that ``data`` finishes, without their ends."""
        self._buffer += data
        if b"\n" in data:
            *whole, rest = bytes(self._buffer).split(b"\n")
            self._buffer = bytearray(rest)
            lines = [piece for line in whole for piece in self._pieces(_overwrite(line))]
        else:
            lines = []
        if b"\r" in data:
            # A progress bar without newlines must not grow for ever.
            at = self._buffer.rstrip(b"\r").rfind(b"\r")
            del self._buffer[: at + 1]
        limit = _LONGEST_STEP_LINE if self._buffer.startswith(self._prefix) else LONGEST_LINE
        while len(self._buffer) > limit:
            lines.append(_text(bytes(self._buffer[:LONGEST_LINE])))
            del self._buffer[:LONGEST_LINE]
        return lines

    def finish(self) -> list[str]:
        """The last line, if it had no end."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        return self._pieces(_overwrite(rest)) if rest else []

    def _pieces(self, line: bytes) -> list[str]:
        if len(line) <= LONGEST_LINE or line.startswith(self._prefix):
            return [_text(line)]
        return [_text(line[at : at + LONGEST_LINE]) for at in range(0, len(line), LONGEST_LINE)]


def _overwrite(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").replace("\x00", "\ufffd")
