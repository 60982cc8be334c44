"""The server: one page, its files, and a socket to a screen's process.

Only pages of this server that know its secret get a screen. A page of another site in the same
browser can send requests to a local port, and with a host name that it points here (DNS rebinding)
even read the answers. So the host name, the origin and the secret are all checked, and each one
alone can refuse a request. Other users of this machine can fake the first two, but do not know the
secret; the page itself contains only public data.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import logging
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from socket import AF_INET6, create_server
from socket import socket as Socket
from string import Template
from urllib.parse import urlsplit

import textual_serve
from aiohttp import WSCloseCode, WSMsgType, web

from gpuwatch.core.errors import UsageError
from gpuwatch.web.screen_process import ScreenProcess, clamp, size

MOST = 128
"""Maximum connections that have not shown the secret; the oldest is closed for a new one."""
MOST_SECONDS = 60.0
"""How long one may stay: enough to fetch everything public even over a slow line."""


class Door:
    """Accepts connections, and closes those that stay too long or are too many: any user of this
    machine can open any number."""

    def __init__(self, say: Callable[[str], None]) -> None:
        """``say`` is called once if there are too many."""
        self._say = say
        self._told = False
        self._strangers: dict[asyncio.Transport, asyncio.TimerHandle] = {}

    async def accept(self, listening: Socket, server: web.Server) -> None:
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
                for each in [each for each in self._strangers if each.is_closing()]:
                    self._strangers.pop(each).cancel()
                if len(self._strangers) >= MOST:
                    self._close_oldest()
                self._strangers[transport] = loop.call_later(MOST_SECONDS, transport.abort)

    def knows_the_secret(self, transport: asyncio.Transport | None) -> None:
        """Mark a connection as the user's own: it may stay as long as it likes."""
        if transport in self._strangers:
            self._strangers.pop(transport).cancel()

    def _close_oldest(self) -> None:
        if not self._told:
            self._told = True
            self._say("too many connections: the oldest that show no screen are closed")
        if self._strangers:
            transport = next(iter(self._strangers))
            self._strangers.pop(transport).cancel()
            transport.abort()


HEADERS: Mapping[str, str] = {
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""Headers of every answer."""

_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


def own_name(host: str | None) -> bool:
    """Whether a request's ``Host`` is this machine, with any port, because ports can be
    forwarded."""
    try:
        return urlsplit(f"//{host or ''}").hostname in _NAMES
    except ValueError:
        return False


def same_origin(origin: str | None, host: str | None) -> bool:
    """Whether the requesting page is ours, by the browser's ``Origin`` header."""
    return origin == f"http://{host}"


def knows(given: str, token: str) -> bool:
    """Compare ``given`` with the secret in constant time."""
    return hmac.compare_digest(given.encode("utf-8", "surrogatepass"), token.encode())


_MOST_SCREENS = 8
"""Maximum at a time; each is a process of some 40 MiB."""
_LARGEST_MESSAGE = 1 << 20
"""Maximum bytes of a page's message; a long paste arrives as one."""
_LARGEST_HEADER = 64 << 10
"""Maximum bytes of the headers; cookies of other programs on this machine arrive too."""
_FIRST_SECONDS = 5.0
"""Time for a socket to show the secret, and to close."""
_IDLE_SECONDS = 10.0
"""Time for a connection to send a request; aiohttp's default is an hour."""
_ADDRESS = b"open the address that `gpuwatch serve` printed: it ends in a secret"
_TOO_MANY = b"too many pages are open: close one"
_OWN_PAGE = "gpuwatch answers to its own page alone\n"
_FONT_SIZE, _FONT_SIZES = "15", (6, 40)
_OWN = {"/page.css": "text/css", "/page.js": "text/javascript"}
_STATIC = Path(textual_serve.__file__).parent / "static"
_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Site:
    """The answers to requests."""

    def __init__(self, arguments: Sequence[str], token: str, door: Door) -> None:
        """``arguments``: the command line whose screen is shown."""
        self._arguments = tuple(arguments)
        self._token = token
        self._door = door
        self._open: set[web.WebSocketResponse] = set()

    def application(self) -> web.Application:
        """The routes behind the guard."""
        application = web.Application(middlewares=[self._guarded])
        application.add_routes(
            [
                web.get("/", self._page),
                web.get("/ws", self._socket),
                *(web.get(path, self._file) for path in _OWN),
                web.static("/static", _STATIC),
            ]
        )
        application.on_shutdown.append(self._close_all)
        return application

    @web.middleware
    async def _guarded(self, request: web.Request, handler: _Handler) -> web.StreamResponse:
        try:
            answer = _refusal(request) or await handler(request)
        except web.HTTPException as error:
            answer = web.Response(status=error.status, text=f"{error.reason}\n")
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    async def _page(self, request: web.Request) -> web.Response:
        text = Template(files("gpuwatch.web").joinpath("page.html").read_text("utf-8"))
        font = clamp(request.query.get("fontsize", _FONT_SIZE), *_FONT_SIZES)
        page = text.substitute(socket=f"ws://{request.host}/ws", size=font)
        # This server's files, and no inline scripts.
        policy = (
            "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
            f"img-src 'self' data:; font-src 'self'; connect-src 'self' ws://{request.host}; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        headers = {"Content-Security-Policy": policy}
        return web.Response(text=page, content_type="text/html", headers=headers)

    async def _file(self, request: web.Request) -> web.Response:
        text = files("gpuwatch.web").joinpath(request.path.lstrip("/")).read_text("utf-8")
        return web.Response(text=text, content_type=_OWN[request.path])

    async def _socket(self, request: web.Request) -> web.StreamResponse:
        if not same_origin(request.headers.get("Origin"), request.host):
            return web.Response(status=403, text=_OWN_PAGE)
        socket = web.WebSocketResponse(
            heartbeat=15, max_msg_size=_LARGEST_MESSAGE, timeout=_FIRST_SECONDS
        )
        await socket.prepare(request)
        if not await self._shows_the_secret(socket):
            await socket.close(code=WSCloseCode.POLICY_VIOLATION, message=_ADDRESS)
        elif len(self._open) >= _MOST_SCREENS:
            await socket.close(code=WSCloseCode.TRY_AGAIN_LATER, message=_TOO_MANY)
        else:
            self._door.knows_the_secret(request.transport)
            self._open.add(socket)
            try:
                await self._screen(request, socket)
            finally:
                self._open.discard(socket)
        return socket

    async def _shows_the_secret(self, socket: web.WebSocketResponse) -> bool:
        """Whether the first message is the secret; it is not passed on."""
        try:
            first = await asyncio.wait_for(socket.receive(), _FIRST_SECONDS)
        except asyncio.TimeoutError:
            return False
        return first.type is WSMsgType.TEXT and knows(first.data, self._token)

    async def _close_all(self, application: web.Application) -> None:
        """Close all screens and wait for them to exit."""
        for socket in list(self._open):
            await socket.close(code=WSCloseCode.GOING_AWAY)
        while self._open:
            await asyncio.sleep(0.05)

    async def _screen(self, request: web.Request, socket: web.WebSocketResponse) -> None:
        process = ScreenProcess(self._arguments, socket)
        try:
            await process.start(*size(request.query.get("width"), request.query.get("height")))
            async for message in socket:
                if message.type == WSMsgType.TEXT:
                    with contextlib.suppress(ValueError, RecursionError):
                        await process.take(message.json())
        finally:
            await process.end()
            await socket.close()


def _refusal(request: web.Request) -> web.Response | None:
    if not own_name(request.headers.get("Host")):
        text = "gpuwatch answers to this machine's own name alone: open http://127.0.0.1:PORT\n"
        return web.Response(status=403, text=text)
    origin = request.headers.get("Origin")
    if origin is not None and not same_origin(origin, request.host):
        return web.Response(status=403, text=_OWN_PAGE)
    return None


def _listening(port: int) -> list[Socket]:
    """Listen on both loopback addresses, or another program could answer to ``localhost`` on the
    other one."""
    sockets = [create_server(("127.0.0.1", port))]
    try:
        address = ("::1", sockets[0].getsockname()[1])
        sockets.append(create_server(address, family=AF_INET6))
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            sockets[0].close()
            raise
    for each in sockets:
        each.setblocking(False)
    return sockets


async def _until_told(
    runner: web.AppRunner, door: Door, port: int, ready: Callable[[int], None]
) -> None:
    over = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)
    await runner.setup()
    assert runner.server is not None
    try:
        try:
            listening = _listening(port)
        except OSError as error:
            raise UsageError(
                f"port {port} of this machine cannot be used: {error.strerror}",
                "choose another with --port, or --port 0 for any free one",
            ) from error
        taking = [loop.create_task(door.accept(each, runner.server)) for each in listening]
        ready(listening[0].getsockname()[1])
        # textual-serve prints a screen's last output.
        with contextlib.redirect_stdout(sys.stderr):
            await over.wait()
        for task in taking:
            task.cancel()
        await asyncio.gather(*taking, return_exceptions=True)
        for each in listening:
            each.close()
    finally:
        await runner.cleanup()


def serve(
    arguments: Sequence[str],
    token: str,
    port: int,
    *,
    ready: Callable[[int], None],
    say: Callable[[str], None],
) -> None:
    """Serve the screen of a command on the loopback interface until SIGINT, SIGTERM or SIGHUP.

    ``arguments`` is executed for every page that shows the secret ``token``. ``ready`` is called
    with the port, ``say`` with messages to the user.

    Raises:
        UsageError: the port cannot be used.
    """
    door = Door(say)
    # aiohttp's log quotes unreadable requests, including cookies of other programs.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    runner = web.AppRunner(
        Site(arguments, token, door).application(),
        access_log=None,
        shutdown_timeout=1.0,
        keepalive_timeout=_IDLE_SECONDS,
        max_field_size=_LARGEST_HEADER,
        max_line_size=_LARGEST_HEADER,
    )
    asyncio.run(_until_told(runner, door, port, ready))
