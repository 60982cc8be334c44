"""What comes over the socket from something that is no browser."""

from __future__ import annotations

import asyncio
import json
import time

import aiohttp

from .conftest import Serve


def test_what_no_page_sends_ends_no_server(serve: Serve) -> None:
    served = serve()

    async def talk() -> None:
        headers = {"Cookie": served.cookie, "Origin": f"http://127.0.0.1:{served.port}"}
        url = f"http://127.0.0.1:{served.port}/ws?width=9e99&height=-3"
        async with aiohttp.ClientSession() as session:
            async with session.ws_connect(url, headers=headers) as ws:
                for text in (
                    *("no json", "{}", "[]", '["stdin"]', '["stdin", 5]', '["resize", []]'),
                    *('["resize", {"width": "x", "height": 1e400}]', '["other", 1]', "[" * 5000),
                ):
                    await ws.send_str(text)
                await ws.send_str('["ping", 7]')
                while True:
                    message = await ws.receive(timeout=30)
                    assert message.type is not aiohttp.WSMsgType.CLOSED, message
                    if message.type is aiohttp.WSMsgType.TEXT:
                        assert message.json() == ["pong", 7]
                        break
            async with session.ws_connect(url, headers=headers) as ws:
                await ws.send_str('["stdin", "' + "x" * 2_000_000 + '"]')
                while (await ws.receive(timeout=30)).type is not aiohttp.WSMsgType.CLOSE:
                    pass

    asyncio.run(talk())
    deadline = time.monotonic() + 30
    while served.screens():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert served.get("/", Cookie=served.cookie)[0] == 200


def test_keys_work_after_a_paste_that_is_too_long(serve: Serve) -> None:
    served = serve()

    async def talk() -> None:
        headers = {"Cookie": served.cookie, "Origin": f"http://127.0.0.1:{served.port}"}
        url = f"http://127.0.0.1:{served.port}/ws?width=100&height=40"
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, headers=headers) as ws,
        ):
            await _until(ws, "No run was recorded yet")
            for keys in ("\x1b[200~" + "x" * 20_000 + "\x1b[201~", "?"):
                await ws.send_str(json.dumps(["stdin", keys]))
            await _until(ws, "Ctrl+P")

    asyncio.run(talk())


async def _until(ws: aiohttp.ClientWebSocketResponse, text: str) -> None:
    """Receive until ``text`` was drawn."""
    drawn = ""
    while text not in drawn:
        message = await ws.receive(timeout=30)
        assert message.type is not aiohttp.WSMsgType.CLOSED, drawn[-2000:]
        if message.type is aiohttp.WSMsgType.BINARY:
            drawn += message.data.decode("utf-8", "replace")
