"""One screen in its own process, connected to a browser."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import tempfile
from collections.abc import Sequence

from aiohttp import web
from textual_serve.app_service import AppService
from textual_serve.download_manager import DownloadManager

from gpuwatch.core.parent_death import ends_with_this

_PATIENCE_SECONDS = 5.0
_COLUMNS, _ROWS = (20, 400), (5, 150)
_LONGEST_INPUT = 10_000
_PASTE, _PASTE_END = "\x1b[200~", "\x1b[201~"


def clamp(value: object, least: int, most: int) -> int:
    """A number from a request, limited to its bounds; ``least`` if it is not a number."""
    if isinstance(value, (int, float, str)):
        with contextlib.suppress(ValueError, OverflowError):
            return max(least, min(most, int(value)))
    return least


class ScreenProcess(AppService):
    """textual-serve's link to an app, started by a quoted command line and always ended.

    Only the picture is passed on to the browser: no addresses, no downloads.
    """

    def __init__(self, arguments: Sequence[str], socket: web.WebSocketResponse) -> None:
        self._number = tempfile.NamedTemporaryFile("r", prefix="gpuwatch-page-")  # noqa: SIM115
        super().__init__(
            _command(arguments, self._number.name),
            write_bytes=socket.send_bytes,
            write_str=socket.send_str,
            close=self._nothing,
            download_manager=DownloadManager(),
        )
        self._socket = socket

    async def _nothing(self) -> None:
        """Do nothing: the opener of the socket closes it."""

    async def on_meta(self, data: bytes) -> None:
        if json.loads(data).get("type") == "exit":
            await self._socket.close()

    async def on_packed(self, payload: bytes) -> None:
        """Ignore a piece of a download, because none is offered."""

    async def take(self, message: object) -> None:
        """Handle a message from the page; invalid ones are dropped."""
        if not isinstance(message, list) or len(message) != 2:
            return
        kind, data = message
        if kind == "stdin" and isinstance(data, str):
            await self.send_bytes(_cut(data).encode("utf-8", "replace"))
        elif kind == "resize" and isinstance(data, dict):
            await self.set_terminal_size(*size(data.get("width"), data.get("height")))
        elif kind == "ping" and isinstance(data, (int, float, str)):
            await self._socket.send_json(["pong", data])
        elif kind == "blur":
            await self.blur()
        elif kind == "focus":
            await self.focus()

    async def end(self) -> None:
        """Ask the screen to exit, and make sure that it does."""
        try:
            await asyncio.wait_for(self.stop(), _PATIENCE_SECONDS)
        except (asyncio.TimeoutError, OSError):
            with contextlib.suppress(ValueError, ProcessLookupError):
                os.kill(int(self._number.read()), signal.SIGKILL)
        self._number.close()


def _command(arguments: Sequence[str], number: str) -> str:
    """What the shell of textual-serve becomes: the screen; its process ID stands in ``number``."""
    environment = ("COLORTERM=truecolor", "TERM=xterm-256color", "TEXTUAL_FPS=30")
    program = ends_with_this(arguments, signal.SIGTERM)
    screen = shlex.join(("env", "-u", "NO_COLOR", *environment, *program))
    return f"echo $$ > {shlex.quote(number)}; exec {screen}"


def _cut(keys: str) -> str:
    """Limit the input; a paste keeps its end, without which all later keys would belong to it."""
    if len(keys) <= _LONGEST_INPUT:
        return keys
    kept = keys[:_LONGEST_INPUT]
    start = kept.rfind("\x1b")
    if start >= 0 and len(kept) - start < len(_PASTE):
        kept = kept[:start]  # possibly an incomplete sequence
    return kept + _PASTE_END if kept.rfind(_PASTE) > kept.rfind(_PASTE_END) else kept


def size(width: object, height: object) -> tuple[int, int]:
    """Columns and rows requested by a page, limited to valid sizes."""
    return clamp(width, *_COLUMNS), clamp(height, *_ROWS)
