"""Which connections are kept, and for how long: any user of this machine can make any number."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from aiohttp import web

MOST = 128
"""Strangers at once: connections that have not shown the secret. The oldest makes room."""
MOST_SECONDS = 60.0
"""Of a stranger: all that is public can be fetched in that, also over a slow line."""


class Door:
    """Accepts connections, and closes those that stay too long or are too many."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """``say`` is told, once, that there are too many."""
        self._say = say
        self._told = False
        self._strangers: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    async def accept(self, listening: socket.socket, server: web.Server) -> None:
        """Hand the connections of a socket that listens to ``server``, for ever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:  # no more files may be open; or who connected gave up
                self._close_oldest()
                await asyncio.sleep(0.05)
                continue
            with contextlib.suppress(OSError):
                transport, _ = await loop.connect_accepted_socket(server, connection)
                self._take_in(transport)

    def knows_the_secret(self, transport: asyncio.Transport | None) -> None:
        """This connection is the user's own: it stays as long as it is wanted."""
        if transport in self._strangers:
            self._strangers.pop(transport).cancel()

    def _take_in(self, transport: asyncio.Transport) -> None:
        for each in [each for each in self._strangers if each.is_closing()]:
            self._strangers.pop(each).cancel()
        if len(self._strangers) >= MOST:
            self._close_oldest()
        loop = asyncio.get_running_loop()
        self._strangers[transport] = loop.call_later(MOST_SECONDS, transport.abort)

    def _close_oldest(self) -> None:
        if not self._told:
            self._told = True
            self._say("too many connections: the oldest that show no screen are closed")
        if self._strangers:
            transport = next(iter(self._strangers))
            self._strangers.pop(transport).cancel()
            transport.abort()
