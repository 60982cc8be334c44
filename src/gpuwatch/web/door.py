"""Limits on connections and their duration: any user of this machine can open any number."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable

from aiohttp import web

MOST = 128
"""Maximum connections that have not shown the secret; the oldest is closed for a new one."""
MOST_SECONDS = 60.0
"""How long one may stay: enough to fetch everything public even over a slow line."""


class Door:
    """Accepts connections, and closes those that stay too long or are too many."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """``say`` is called once if there are too many."""
        self._say = say
        self._told = False
        self._strangers: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    async def accept(self, listening: socket.socket, server: web.Server) -> None:
        """Pass the connections of a listening socket to ``server``, forever."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError:  # too many open files, or the client gave up
                self._close_oldest()
                await asyncio.sleep(0.05)
                continue
            with contextlib.suppress(OSError):
                transport, _ = await loop.connect_accepted_socket(server, connection)
                self._take_in(transport)

    def knows_the_secret(self, transport: asyncio.Transport | None) -> None:
        """Mark a connection as the user's own: it may stay as long as it likes."""
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
