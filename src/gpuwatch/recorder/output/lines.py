"""Assembles lines of text from arbitrary pieces of bytes."""

from __future__ import annotations

LONGEST_LINE = 64 * 1024
"""Longer lines are cut into pieces of this many bytes."""

STANDING_NS = 1_000_000_000
"""Time after which an unfinished line is given as it is; also the shortest time between two lines
that a carriage return overwrites."""

_LONGEST_STEP_LINE = 1024 * 1024


class LineAssembler:
    """Collects the lines of one stream.

    A carriage return overwrites, as on a terminal: a progress bar gives a line a second. Invalid
    UTF-8 is replaced. ``given``: the text before ``pending`` on its line was already given.
    """

    def __init__(self, prefix: bytes, pending: bytes = b"", *, given: bool = False) -> None:
        self._prefix = prefix
        self._buffer = bytearray(pending)
        self.given = given
        """Whether part of the unfinished line was already given."""
        self._told_ns: int | None = None
        self._moved_ns: int | None = None

    @property
    def pending(self) -> bytes:
        """The unfinished line so far, without the part already given."""
        return bytes(self._buffer)

    def feed(self, data: bytes, t: int) -> list[str]:
        """The lines finished by ``data``, written at ``t`` nanoseconds, without their ends."""
        lines = self.standing(t)
        self._moved_ns = t
        if self._told_ns is None:
            self._told_ns = t
        self._buffer += data
        if b"\n" in data:
            *whole, rest = bytes(self._buffer).split(b"\n")
            self._buffer = bytearray(rest)
            if self.given and not _overwrite(whole[0]).strip():
                del whole[0]
            self.given, self._told_ns = False, t
            lines += [piece for line in whole for piece in self._pieces(_overwrite(line))]
        if b"\r" in data:
            lines += self._overwritten(t)
        limit = _LONGEST_STEP_LINE if self._buffer.startswith(self._prefix) else LONGEST_LINE
        while len(self._buffer) > limit:
            lines.append(_text(bytes(self._buffer[:LONGEST_LINE])))
            del self._buffer[:LONGEST_LINE]
        return lines

    def standing(self, t: int) -> list[str]:
        """The unfinished line, once, if it has not grown for :data:`STANDING_NS` at ``t`` (ns).

        A step line is given complete or not at all.
        """
        if not self._buffer:
            return []
        if self._moved_ns is None:
            self._moved_ns = t
        if t - self._moved_ns < STANDING_NS:
            return []
        start = bytes(self._buffer[: len(self._prefix)])
        shown = _overwrite(bytes(self._buffer))
        if self._prefix.startswith((start, shown[: len(self._prefix)])) or not shown.strip():
            return []
        self._buffer.clear()
        self.given, self._told_ns = True, t
        return self._pieces(shown)

    def finish(self) -> list[str]:
        """The last line, if it has no end."""
        rest, self._buffer = bytes(self._buffer), bytearray()
        shown = _overwrite(rest)
        if not rest or (self.given and not shown.strip()):
            return []
        return self._pieces(shown)

    def _overwritten(self, t: int) -> list[str]:
        """Drop overwritten text, to bound the memory; returns the newest of it, if due."""
        at = self._buffer.rstrip(b"\r").rfind(b"\r")
        if at < 0:
            return []
        newest = _overwrite(bytes(self._buffer[:at]))
        del self._buffer[: at + 1]
        if t - (self._told_ns or 0) < STANDING_NS or not newest.strip():
            return []
        self._told_ns = t
        return self._pieces(newest)

    def _pieces(self, line: bytes) -> list[str]:
        if len(line) <= LONGEST_LINE or line.startswith(self._prefix):
            return [_text(line)]
        return [_text(line[at : at + LONGEST_LINE]) for at in range(0, len(line), LONGEST_LINE)]


def _overwrite(line: bytes) -> bytes:
    return line.rstrip(b"\r").rpartition(b"\r")[2]


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").replace("\x00", "\ufffd")
