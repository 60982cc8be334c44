"""What comes over the socket from something that is no browser."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing

import aiohttp
import pytest

from tests.conftest import Cli
from tests.waiting import until

from .conftest import Serve, Served


@asynccontextmanager
async def a_socket(
    served: Served, size: str = "width=80&height=24"
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    own = f"http://127.0.0.1:{served.port}"
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(f"{own}/ws?{size}", headers={"Origin": own}) as ws,
    ):
        yield ws


async def _read(ws: aiohttp.ClientWebSocketResponse) -> None:
    """As a browser does all the time: who answers no ping is taken for gone."""
    async for _ in ws:
        pass


async def _closed(ws: aiohttp.ClientWebSocketResponse) -> tuple[int, str]:
    """The code and reason of its end, before which nothing may come."""
    message = await ws.receive(timeout=120)
    assert message.type is aiohttp.WSMsgType.CLOSE, message
    return message.data, message.extra


@pytest.mark.parametrize(
    "first", ["", "wrong", "TOKEN ", "toke", '["stdin", "q"]', "\ud7ff", b"TOKEN"]
)
def test_a_socket_whose_first_message_is_not_the_secret_is_closed(
    serve: Serve, first: str | bytes
) -> None:
    served = serve()

    async def talk() -> None:
        async with a_socket(served) as ws:
            if isinstance(first, bytes):
                await ws.send_bytes(served.token.encode())
            else:
                await ws.send_str(
                    first.replace("TOKEN", served.token).replace("toke", served.token[:-1])
                )
            code, reason = await _closed(ws)
            assert code == aiohttp.WSCloseCode.POLICY_VIOLATION and "gpuwatch serve" in reason

    asyncio.run(talk())
    assert served.screens() == []


def test_a_socket_that_says_nothing_but_pings_is_closed_too(serve: Serve) -> None:
    served = serve()

    async def talk() -> None:
        async with a_socket(served) as ws:

            async def ping() -> None:
                while True:
                    await ws.ping()
                    await asyncio.sleep(0.2)

            pinging = asyncio.create_task(ping())
            await _closed(ws)
            pinging.cancel()

    asyncio.run(talk())
    assert served.screens() == []


def test_too_many_pages_are_told_so_and_sockets_without_the_secret_take_no_place(
    serve: Serve,
) -> None:
    served = serve()

    async def talk() -> None:
        reading = []
        async with AsyncExitStack() as open_:
            for _ in range(12):
                await open_.enter_async_context(a_socket(served))
            for _ in range(8):
                ws = await open_.enter_async_context(a_socket(served))
                await ws.send_str(served.token)
                assert (await ws.receive(timeout=60)).type is aiohttp.WSMsgType.BINARY
                reading.append(asyncio.create_task(_read(ws)))
            ninth = await open_.enter_async_context(a_socket(served))
            await ninth.send_str(served.token)
            _, reason = await _closed(ninth)
            assert reason == "too many pages are open: close one"
            for each in reading:
                each.cancel()

    asyncio.run(talk())


def test_nobody_else_can_answer_on_its_port_under_another_address_of_localhost(
    serve: Serve, cli: Cli
) -> None:
    try:
        taken = socket.create_server(("::1", 0), family=socket.AF_INET6)
    except OSError:
        pytest.skip("no IPv6 here")
    with closing(taken):
        port = taken.getsockname()[1]
        assert "cannot be used" in cli("serve", "--port", port, code=2).stderr
    served = serve()
    with socket.socket(socket.AF_INET6) as other, pytest.raises(OSError):
        other.bind(("::1", served.port))


def test_what_no_page_sends_ends_no_server(serve: Serve) -> None:
    served = serve()

    async def talk() -> None:
        async with a_socket(served, "width=9e99&height=-3") as ws:
            for text in (
                *(served.token, "no json", "{}", "[]", '["stdin"]', '["stdin", 5]'),
                *('["resize", []]', '["resize", {"width": "x", "height": 1e400}]'),
                *('["other", 1]', "[" * 5000),
            ):
                await ws.send_str(text)
            await ws.send_str('["ping", 7]')
            while (message := await ws.receive(timeout=120)).type is aiohttp.WSMsgType.BINARY:
                pass
            assert message.json() == ["pong", 7]
        async with a_socket(served) as ws:
            await ws.send_str(served.token)
            await ws.send_str('["stdin", "' + "x" * 2_000_000 + '"]')
            while (await ws.receive(timeout=120)).type is not aiohttp.WSMsgType.CLOSE:
                pass

    asyncio.run(talk())
    until(lambda: not served.screens(), "its screens end")
    assert served.get("/")[0] == 200


def test_keys_work_after_a_paste_that_is_too_long(serve: Serve) -> None:
    served = serve()

    async def talk() -> None:
        async with a_socket(served, "width=100&height=40") as ws:
            await ws.send_str(served.token)
            await _until(ws, "No run was recorded yet")
            for keys in ("\x1b[200~" + "x" * 20_000 + "\x1b[201~", "?"):
                await ws.send_str(json.dumps(["stdin", keys]))
            await _until(ws, "all keys of this screen")

    asyncio.run(talk())


async def _until(ws: aiohttp.ClientWebSocketResponse, text: str) -> None:
    """Receive until ``text`` was drawn."""
    drawn = ""
    while text not in drawn:
        message = await ws.receive(timeout=120)
        assert message.type is not aiohttp.WSMsgType.CLOSED, drawn[-2000:]
        if message.type is aiohttp.WSMsgType.BINARY:
            drawn += message.data.decode("utf-8", "replace")
