"""A container's log, read in pieces from a cursor on, without repeating or losing anything."""

from __future__ import annotations

import contextlib
import json
import struct
import threading
import time
from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass

import docker
from docker.errors import create_api_error_from_http_exception
from docker.types import CancellableStream

from gpuwatch.core.models import JSON, Output, mapping
from gpuwatch.runners.docker.client import ANSWER_SECONDS
from gpuwatch.runners.docker.outcome import monotonic_ns, unix_ns

_STREAMS = {1: "stdout", 2: "stderr"}
_HEADER = struct.Struct(">BxxxL")
"""Frame header in the daemon's answer: stream and length."""

_SLACK_NS = 60_000_000_000
"""The streams are written concurrently, so a message can follow one that is younger."""

_MOST_WAITING = 8 << 20
_AT_ONCE = 4 << 20
_LAST_WORDS = 500


@dataclass(frozen=True)
class Message:
    """One log message: a line, or a piece of at most 16 KiB of a longer one."""

    stream: str
    at: int
    """The daemon's timestamp in nanoseconds since 1970."""
    data: bytes


class Cursor:
    """Position in a log, per stream: time of the last message, and number of messages with that
    time."""

    def __init__(self, text: str | None = None) -> None:
        try:
            value: JSON = json.loads(text or "{}")
        except ValueError:
            value = {}
        self._streams: dict[str, tuple[int, int]] = {}
        for name in _STREAMS.values():
            at, count = mapping(value).get(name) or (0, 0)
            self._streams[name] = int(at), int(count)

    def __str__(self) -> str:
        return json.dumps(self._streams)

    def advance(self, message: Message) -> None:
        at, count = self._streams[message.stream]
        self._streams[message.stream] = message.at, count + 1 if message.at == at else 1

    @property
    def newest(self) -> int:
        """Time of the last message, in nanoseconds since 1970; 0 without messages."""
        return max(at for at, _ in self._streams.values())

    @property
    def since(self) -> int:
        """Start time of the next read, in nanoseconds since 1970."""
        return max(0, self.newest - _SLACK_NS)

    def unread(self, messages: Iterator[Message]) -> Iterator[Message]:
        """The part of ``messages``, which start at :attr:`since`, that follows this cursor."""
        known = dict(self._streams)
        for message in messages:
            if message.stream in known:
                at, count = known[message.stream]
                if message.at < at:
                    continue
                if message.at == at and count > 0:
                    known[message.stream] = at, count - 1
                    continue
                # After it everything is new, even if the wall clock is set back.
                del known[message.stream]
            yield message


class LogReader:
    """Reads a log on one thread and hands it to another, through a bounded queue."""

    def __init__(self, cursor: str | None = None) -> None:
        self._taken, self._given = Cursor(cursor), Cursor(cursor)
        self._waiting: deque[Message] = deque()
        self._size = 0
        self._changed = threading.Condition()
        self._stream: CancellableStream | None = None
        self._moved = time.monotonic()
        self.last_words = b""
        """The end of the last output on standard error."""

    def take(self, api: docker.APIClient, container: str, *, follow: bool) -> None:
        """Read new messages, with ``follow`` until the container or the daemon ends.

        Raises:
            DockerException, OSError: the daemon's answer is incomplete.
        """
        messages = self._messages(api, container, self._taken.since, follow)
        with contextlib.closing(messages):
            for message in self._taken.unread(messages):
                with self._changed:
                    self._changed.wait_for(lambda: self._size < _MOST_WAITING)
                    self._waiting.append(message)
                    self._size += len(message.data)
                self._taken.advance(message)
                self._moved = time.monotonic()
                if message.stream == "stderr":
                    self.last_words = message.data[-_LAST_WORDS:]

    def read(self) -> list[Message]:
        """Messages since the last call, at most about 4 MiB; never waits."""
        messages: list[Message] = []
        size = 0
        with self._changed:
            while self._waiting and size < _AT_ONCE:
                message = self._waiting.popleft()
                size += len(message.data)
                messages.append(message)
            self._size -= size
            self._changed.notify_all()
        for message in messages:
            self._given.advance(message)
        return messages

    def cursor(self) -> str:
        """Position of :meth:`read`."""
        return str(self._given)

    @property
    def newest(self) -> int:
        """Time of the last message read, in nanoseconds since 1970; 0 without messages."""
        return self._taken.newest

    @property
    def empty(self) -> bool:
        return not self._waiting

    def silent_seconds(self) -> float:
        """Seconds since the last message was read."""
        return time.monotonic() - self._moved

    def interrupt(self) -> None:
        """Make a :meth:`take` that waits for the daemon fail; callable from any thread."""
        stream = self._stream
        if stream is not None:
            with contextlib.suppress(OSError, AttributeError, ValueError):
                stream.close()

    def _messages(
        self, api: docker.APIClient, container: str, since: int, follow: bool
    ) -> Generator[Message, None, None]:
        """The log from a given time on. One request for both streams preserves their order.

        The SDK's own ``logs`` does not report a message's stream, and mistakes the death of the
        daemon for the end of the log.
        """
        response = api.get(
            f"{api.base_url}/v{api.api_version}/containers/{container}/logs",
            params={
                "stdout": 1,
                "stderr": 1,
                "timestamps": 1,
                "follow": int(follow),
                "since": f"{since // 1_000_000_000}.{since % 1_000_000_000:09d}",
            },
            stream=True,
            timeout=None if follow else ANSWER_SECONDS,
        )
        with contextlib.closing(response):
            try:
                response.raise_for_status()
            except OSError as error:
                create_api_error_from_http_exception(error)
            pieces = response.iter_content(chunk_size=None)
            self._stream = CancellableStream(pieces, response)
            try:
                for stream, payload in _frames(pieces):
                    time_text, _, data = payload.partition(b" ")
                    at = unix_ns(time_text.decode("ascii", "replace"))
                    yield Message(_STREAMS.get(stream, "stdout"), at or 0, data)
            finally:
                self._stream = None


def outputs(messages: list[Message], not_before: int) -> list[Output]:
    """Messages for a recorder; ``not_before`` is ``CLOCK_MONOTONIC`` of the launch."""
    return [
        Output(max(not_before, monotonic_ns(message.at)), message.stream, message.data)
        for message in messages
    ]


def _frames(pieces: Iterator[bytes]) -> Iterator[tuple[int, bytes]]:
    """Stream and payload of each frame; frames and pieces are not aligned."""
    buffer = bytearray()
    for piece in pieces:
        buffer += piece
        at = 0
        while len(buffer) - at >= _HEADER.size:
            stream, length = _HEADER.unpack_from(buffer, at)
            end = at + _HEADER.size + length
            if end > len(buffer):
                break
            yield stream, bytes(buffer[at + _HEADER.size : end])
            at = end
        del buffer[:at]
