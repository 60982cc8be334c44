"""Connections that nobody uses: they take nothing from a browser."""

from __future__ import annotations

import resource
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from tests.waiting import until

from .conftest import Serve, Served

LIMITED = ("sh", "-c", 'ulimit -n 1024 && exec "$@"', "sh")
"""As many files as most machines let a process open."""


@contextmanager
def many_files(count: int) -> Iterator[None]:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    if before[1] != resource.RLIM_INFINITY and before[1] < count:
        pytest.skip(f"a process may open {before[1]} files here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(before[0], count), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def _connected(served: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", served.port), timeout=60)


def _is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        while connection.recv(1 << 16):
            pass
        return False
    except BlockingIOError:
        return True
    except OSError:
        return False


def _told(served: Served) -> str:
    served.process.terminate()
    return served.process.communicate(timeout=60)[1]


@pytest.mark.parametrize("beginning", [b"", b"GET / HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_a_browser_gets_its_screen_beside_1100_idle_connections(
    serve: Serve, browser: Any, beginning: bytes
) -> None:
    served = serve(through=LIMITED)
    with ExitStack() as held, many_files(1400):
        for _ in range(1100):
            held.enter_context(_connected(served)).sendall(beginning)
        page = browser.new_page()
        page.goto(served.address)
        page.wait_for_selector("body.-first-byte")
        assert len(served.screens()) == 1
        page.close()
    told = _told(served)
    assert "Traceback" not in told
    assert len([line for line in told.splitlines() if "connections" in line]) == 1
    assert len(told) < 400, told


def test_a_page_that_is_open_is_not_closed_for_those_that_come(serve: Serve, browser: Any) -> None:
    served = serve()
    page = browser.new_page()
    page.goto(served.address)
    page.wait_for_selector("body.-first-byte")
    page.wait_for_selector(".xterm-helper-textarea:focus", state="attached")
    with ExitStack() as held, many_files(800):
        for _ in range(500):
            held.enter_context(_connected(served))
        page.keyboard.press("q")  # only a screen whose page is there gets the key
        page.wait_for_selector("#over", state="visible")
        assert "runs go on" in page.inner_text("#over")
    page.close()


def test_a_connection_that_asks_for_nothing_is_closed(serve: Serve) -> None:
    served = serve()
    with _connected(served) as idle, _connected(served) as slow, _connected(served) as kept:
        slow.sendall(b"GET / HTTP/1.1\r\n")
        kept.sendall(b"GET /page.js HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        for name, each in (("idle", idle), ("slow", slow), ("kept", kept)):
            until(lambda: not _is_open(each), f"{name} is closed")  # noqa: B023
