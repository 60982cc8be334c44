"""Who is shown a screen: whoever knows the secret, which no server but this one is ever told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .conftest import Serve

DRAWN = "body.-first-byte"


@contextmanager
def other_server() -> Iterator[tuple[int, list[bytes]]]:
    """A server of somebody else's on another port of this host: all that it is sent."""
    got: list[bytes] = []

    def answer(listening: socket.socket) -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                threading.Thread(target=answer_one, args=(connection,), daemon=True).start()

    def answer_one(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            got.append(connection.recv(1 << 16))
            connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>hello")

    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        threading.Thread(target=answer, args=(listening,), daemon=True).start()
        yield listening.getsockname()[1], got
        listening.shutdown(socket.SHUT_RDWR)


def test_a_browser_tells_the_secret_to_no_server_and_keeps_it_nowhere(
    serve: Serve, browser: Any
) -> None:
    served = serve()
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(f"{request.url} {request.all_headers()}"))
    page.goto(served.address)
    page.wait_for_selector(DRAWN)
    assert asked and not [each for each in asked if served.token in each]
    assert browser.cookies() == [] and served.token not in page.url
    kept = (
        "JSON.stringify([document.cookie, {...localStorage}, {...sessionStorage}, history.state])"
    )
    assert served.token not in page.evaluate(kept)
    with other_server() as (port, got):
        for name in ("127.0.0.1", "localhost"):
            page.goto(f"http://{name}:{port}/")
            page.wait_for_selector("p")
        page.go_back()
        page.goto(f"http://{name}:{port}/again")
    assert len(got) >= 3
    assert not [each for each in got if served.token.encode() in each or b"gpuwatch" in each]


def test_a_page_that_is_loaded_again_asks_for_the_address(serve: Serve, browser: Any) -> None:
    served = serve()
    page = browser.new_page()
    page.goto(served.address)
    page.wait_for_selector(DRAWN)
    page.reload()
    page.wait_for_selector("#over", state="visible")
    assert "the address that `gpuwatch serve` printed" in page.inner_text("#over")
    page.goto(served.address)
    page.wait_for_selector(DRAWN)
    page.close()


def test_a_screen_that_was_left_is_opened_again_from_its_page(serve: Serve, browser: Any) -> None:
    served = serve()
    page = browser.new_page()
    page.goto(served.address)
    for _ in range(2):
        page.wait_for_selector(DRAWN)
        assert len(served.screens()) == 1
        page.wait_for_selector(".xterm-helper-textarea:focus", state="attached")
        page.keyboard.press("q")
        page.wait_for_selector("#over", state="visible")
        assert "runs go on" in page.inner_text("#over")
        page.click("#again")
    page.close()
