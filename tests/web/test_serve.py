"""The screens in a real Chromium; and who is refused."""

from __future__ import annotations

import http.server
import os
import signal
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Cli
from tests.waiting import until

from .conftest import Serve

STEPS = Path(__file__).parent.parent / "cli" / "steps.py"


class Shown:
    """A page, and the text that its socket brought."""

    def __init__(self, browser: Any, address: str) -> None:
        self.page = browser.new_page()
        self.text = ""
        self.requests: list[str] = []
        self.errors: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.errors.append(message.text))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("websocket", lambda found: found.on("framereceived", self._received))
        self.page.goto(address)

    def _received(self, payload: Any) -> None:
        if isinstance(payload, bytes):
            self.text += payload.decode("utf-8", "replace")

    def wait(self, text: str, seconds: float = 120) -> None:
        deadline = time.monotonic() + seconds
        while text not in self.text:
            assert time.monotonic() < deadline, (text, self.text[-3000:], self.errors)
            self.page.wait_for_timeout(50)

    def press(self, key: str) -> None:
        self.page.keyboard.press(key)


def test_the_home_screen_is_drawn_answers_keys_and_acts_on_nothing(
    serve: Serve, browser: Any, cli: Cli
) -> None:
    served = serve()
    shown = Shown(browser, served.address)
    shown.wait("No run was recorded yet")
    assert served.token not in shown.page.url, "the token is not left in the address"
    own = f"http://127.0.0.1:{served.port}/"
    assert all(url.startswith(own) for url in shown.requests), shown.requests
    told = [each for each in shown.errors if not each.startswith(("CLOSED", "ping="))]
    assert not told, "its content policy stops nothing of its own"
    assert len(shown.page.screenshot()) > 10_000, "a picture of text takes that many bytes"

    shown.press("n")
    shown.wait("read-only")
    shown.press("q")
    shown.page.wait_for_selector("#over", state="visible")
    until(lambda: not served.screens())


def test_a_run_is_watched_in_a_browser_and_goes_on_when_its_page_is_closed(
    serve: Serve, browser: Any, cli: Cli
) -> None:
    started = cli("--record", "--detach", "--", "python3", STEPS, "100000", "0.05")
    session = Path(started.stdout.strip())
    try:
        served = serve(session)
        shown = Shown(browser, served.address)
        shown.wait("running")
        assert len(served.screens()) == 1
        shown.page.close()
        until(lambda: not served.screens())
        assert "running" in cli.read("sessions").stdout
    finally:
        cli("stop", session)


def test_two_pages_are_two_screens_and_both_end_with_the_server(serve: Serve, browser: Any) -> None:
    served = serve()
    for _ in range(2):
        Shown(browser, served.address).wait("gpuwatch")
    screens = served.screens()
    assert len(screens) == 2
    served.process.send_signal(signal.SIGINT)
    _, err = served.process.communicate(timeout=60)
    assert served.process.returncode == 0 and "Traceback" not in err, err
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in screens))


def test_screens_end_when_the_server_is_killed(serve: Serve, browser: Any) -> None:
    served = serve()
    Shown(browser, served.address).wait("gpuwatch")
    (screen,) = served.screens()
    os.kill(served.process.pid, signal.SIGKILL)
    until(lambda: not Path(f"/proc/{screen}").exists())


@contextmanager
def another_site(html: str) -> Iterator[str]:
    """A page of another origin on this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(html.encode())

        def log_message(self, *arguments: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://localhost:{server.server_address[1]}/"
    finally:
        server.shutdown()
        server.server_close()


def test_a_page_of_another_origin_gets_nothing(serve: Serve, browser: Any) -> None:
    served = serve()
    good = browser.new_page()
    good.goto(served.address)
    good.wait_for_selector("body.-first-byte")
    (mine,) = served.screens()
    script = f"""
    <script>
    const told = [];
    const socket = new WebSocket("ws://127.0.0.1:{served.port}/ws?width=80&height=24");
    socket.onopen = () => told.push("socket opened");
    socket.onerror = () => told.push("socket refused");
    const url = "http://127.0.0.1:{served.port}/";
    fetch(url, {{credentials: "include"}})
      .then(() => told.push("page read")).catch(() => told.push("page refused"))
      .then(() => fetch(url, {{credentials: "include", mode: "no-cors"}}))
      .then(answer => answer.text())
      .then(text => told.push(text.includes("terminal") ? "page read" : "page empty"))
      .catch(() => told.push("page unreadable"));
    </script>
    <iframe src="http://127.0.0.1:{served.port}/"></iframe>
    """
    with another_site(script) as address:
        bad = browser.new_page()
        bad.goto(address)
        bad.wait_for_function("told.length >= 3")
        told = bad.evaluate("told")
        frame = bad.frames[1]
        assert "terminal" not in frame.content()
    assert sorted(told) in (
        ["page empty", "page refused", "socket refused"],
        ["page refused", "page unreadable", "socket refused"],
    )
    assert served.screens() == [mine], "no screen was started for it"


def test_under_another_name_or_from_elsewhere_nothing_is_answered(serve: Serve) -> None:
    served = serve()
    assert len(served.token) >= 32
    status, headers, text = served.get("/")
    assert status == 200 and served.token not in f"{headers}{text}", "the page itself is public"
    assert "Set-Cookie" not in headers and headers["X-Frame-Options"] == "DENY"
    assert "script-src 'self';" in headers["Content-Security-Policy"]
    assert served.get("/", Cookie=f"jupyter={'a' * 20_000}")[0] == 200, "of other programs"
    assert served.get("/page.js")[1]["Content-Type"].startswith("text/javascript")
    assert served.get("/static/js/textual.js")[0] == 200
    for path in ("/", "/ws", "/page.js", "/static/js/textual.js"):
        assert served.get(path, Host=f"evil.example:{served.port}")[0] == 403
        assert served.get(path, Origin="http://localhost:1")[0] == 403
    assert served.get("/ws")[0] == 403, "a socket has to name its origin"
    assert served.get("/static/")[0] in (403, 404)
    assert served.get("/static/../server.py")[0] == 404
    assert served.get("/nothing")[0] == 404
    status, _, text = served.get("/", Host="127.0.0.1:9999")
    assert status == 200 and "ws://127.0.0.1:9999/ws" in text, "a port may be forwarded"


def test_a_port_that_is_taken_is_said_with_what_mends_it(cli: Cli) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = cli("serve", "--port", taken.getsockname()[1], code=2)
    assert "cannot be used" in done.stderr and "--port 0" in done.stderr
    assert "invalid port" in cli("serve", "--port", "x", code=2).stderr


@pytest.mark.parametrize("session", ["nothing", "/no/such.gpuwatch"])
def test_a_session_that_is_not_there_is_said_before_anything_is_served(
    cli: Cli, session: str
) -> None:
    assert cli("serve", session, code=2).stdout == ""
