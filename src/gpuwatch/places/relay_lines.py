"""The lines of a relay at a place, as they come."""

from __future__ import annotations

import contextlib
import json
import queue
import threading
import time
from subprocess import Popen, TimeoutExpired

from gpuwatch.core.errors import NotAvailable
from gpuwatch.places.frames import GREETING, LONGEST_LINE, BadFrame, Frame, parse
from gpuwatch.places.mirror import Mirror

_SILENT_SECONDS = 30.0
"""A connection that brings nothing for this long is lost: the relay tells every few seconds."""
_LONGEST_GREETING = 1 << 20
_END_SECONDS = 3.0
_WAITING = 8
"""Lines that may wait to be taken."""


class RelayLines:
    """The process that holds a connection to a relay, and the lines that it prints."""

    def __init__(self, process: Popen[bytes], marker: str) -> None:
        """``marker``: what the relay was told to begin with; what comes before is no word of it."""
        self.ended_at: float | None = None
        """When the relay had told all, by the monotonic clock; it then ends by itself."""
        self._n = 0
        self._lines: queue.Queue[bytes] = queue.Queue(_WAITING)
        self._heard = time.monotonic()
        self._process = process
        self._thread = threading.Thread(
            target=self._read, args=(marker,), name="relay", daemon=True
        )

    def begin(self, mirror: Mirror) -> None:
        """Tell the relay what is here."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(mirror.cursors()).encode() + b"\n")
            self._process.stdin.flush()
        except OSError:
            pass  # it is gone, and its lines end
        self._thread.start()

    def _read(self, marker: str) -> None:
        assert self._process.stdout is not None
        greeting = [GREETING.encode(), marker.encode()]
        begun, skipped = False, 0
        while skipped <= _LONGEST_GREETING:
            line = self._process.stdout.readline(LONGEST_LINE + 1)
            if not line:
                break
            if begun:
                self._lines.put(line)
            else:
                skipped += len(line)
                begun = line.split() == greeting
        self._lines.put(b"")

    def frame(self, seconds: float) -> Frame | None:
        """The next frame; ``None``: none came within ``seconds``.

        Raises:
            NotAvailable: the connection is lost.
            BadFrame: no relay writes that, or it does not follow the frame before.
        """
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            if time.monotonic() - self._heard > _SILENT_SECONDS:
                raise NotAvailable(f"nothing came for {_SILENT_SECONDS:.0f} s") from None
            return None
        if not line:
            raise NotAvailable("the connection was lost")
        self._heard = time.monotonic()
        frame = parse(line)
        self._n += 1
        if frame.n != self._n:
            raise BadFrame(f"frame {frame.n} in the place of {self._n}")
        return frame

    def end(self) -> None:
        """Tell the other end that nobody listens, give it time to end, then end the process: a
        killed ``srun`` kills its step at once."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        with contextlib.suppress(TimeoutExpired):
            self._process.wait(_END_SECONDS)
        self.close()

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        while self._thread.is_alive():
            while not self._lines.empty():
                self._lines.get()
            self._thread.join(0.05)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what it did not take is lost with it
                assert pipe is not None
                pipe.close()
