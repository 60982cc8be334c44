"""A terminal that is recorded: what a program drew and when, and what stands on the screen.

The recording has the format of asciinema, version 2: a line with the size, then ``[seconds, "o",
text]`` for each piece of output.
"""

from __future__ import annotations

import codecs
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import pyte
from rich.segment import Segment
from rich.style import Style

from tests.terminal import Pty

_LONGEST_PAUSE = 1.2
"""Seconds; nobody wants to watch longer waiting."""


@dataclass(frozen=True)
class Piece:
    """Output, and the seconds since the start at which it came."""

    seconds: float
    text: str


class RecordedTerminal(Pty):
    """A program on a terminal, what it drew there and when."""

    def __init__(
        self, command: Sequence[str], size: tuple[int, int], environment: Mapping[str, str]
    ) -> None:
        self.size = size
        self.pieces: list[Piece] = []
        self._screen = pyte.Screen(*size)
        self._stream = pyte.Stream(self._screen)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._start = time.monotonic()
        self._last = 0.0
        super().__init__(command, size, environment)

    def shown(self) -> str:
        """What stands on the screen."""
        return "\n".join(line.rstrip() for line in self._screen.display)

    def type_slowly(self, keys: str, pause: float) -> None:
        """Press keys, with ``pause`` seconds after each."""
        for key in keys:
            self.type(key)
            self.look(pause)

    def look(self, seconds: float) -> None:
        """Read on for so long."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            self.read(left)

    def sees(self, *texts: str, seconds: float = 60) -> str:
        """Read until all ``texts`` stand on the screen; returns all that does."""
        deadline = time.monotonic() + seconds
        while not all(text in self.shown() for text in texts):
            assert time.monotonic() < deadline, f"no {texts} in:\n{self.shown()}"
            self.read(0.2)
        return self.shown()

    def misses(self, text: str, seconds: float = 60) -> str:
        """Read until ``text`` is gone from the screen."""
        deadline = time.monotonic() + seconds
        while text in self.shown():
            assert time.monotonic() < deadline, f"still {text!r} in:\n{self.shown()}"
            self.read(0.2)
        return self.shown()

    def read(self, seconds: float) -> bool:
        known = len(self.sent)
        came = super().read(seconds)
        text = self._decoder.decode(self.sent[known:])
        if text:
            now = time.monotonic() - self._start
            told = self.pieces[-1].seconds if self.pieces else 0.0
            self.pieces.append(Piece(told + min(_LONGEST_PAUSE, now - self._last), text))
            self._last = now
            self._stream.feed(text)
        return came

    def save(self, path: Path, title: str) -> None:
        """Write the recording; pauses are cut short."""
        columns, rows = self.size
        head = {"version": 2, "width": columns, "height": rows, "title": title}
        lines = [json.dumps(head)]
        lines += [json.dumps([round(each.seconds, 3), "o", each.text]) for each in self.pieces]
        path.write_text("\n".join(lines) + "\n")


Row = tuple[Segment, ...]
_NAMED = {
    "black": "#2e3440",
    "red": "#d0606a",
    "green": "#6fd08c",
    "brown": "#f0c05a",
    "blue": "#6ea8fe",
    "magenta": "#c792ea",
    "cyan": "#57c7c3",
    "white": "#d4dbe4",
}
"""The emulator's names of the eight colours, for pictures."""
FRONT, BACK = "#d4dbe4", "#10151c"
"""The terminal's own colours in pictures."""


def frames(path: Path, every: float) -> Iterator[tuple[float, tuple[Row, ...]]]:
    """The rows of a recording's screen, every so many seconds where it changed, with the time."""
    head, *lines = path.read_text().splitlines()
    size = json.loads(head)
    screen = pyte.Screen(size["width"], size["height"])
    stream = pyte.Stream(screen)
    last: tuple[Row, ...] | None = None
    due = 0.0
    events = [json.loads(line) for line in lines]
    for at, (seconds, _, text) in enumerate(events):
        stream.feed(text)
        following = events[at + 1][0] if at + 1 < len(events) else float("inf")
        if following < due:
            continue
        found = tuple(_row(screen, y) for y in range(screen.lines))
        if found != last:
            yield seconds, found
            last, due = found, seconds + every


def _row(screen: pyte.Screen, y: int) -> Row:
    cells = [screen.buffer[y][x] for x in range(screen.columns)]
    return tuple(
        Segment("".join(cell.data for cell in group), style)
        for style, group in groupby(cells, key=_style)
    )


def _style(cell: Any) -> Style:
    front, back = _colour(cell.fg, FRONT), _colour(cell.bg, BACK)
    if cell.reverse:
        front, back = back, front
    return Style(color=front, bgcolor=back, bold=cell.bold)


def _colour(name: str, own: str) -> str:
    if name == "default":
        return own
    return _NAMED.get(name.removeprefix("bright")) or f"#{name}"
