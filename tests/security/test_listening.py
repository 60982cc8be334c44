"""Nothing of gpuwatch listens on the network but ``serve``, and that on loopback alone."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.commands.test_record import STEPS
from tests.conftest import Cli
from tests.terminal import Pty
from tests.waiting import until
from tests.web.conftest import Serve, serve  # noqa: F401 (a fixture of these tests too)
from tests.web.test_socket import a_socket

LISTEN, UNCONNECTED = "0A", "07"
TABLES = {"tcp": LISTEN, "tcp6": LISTEN, "udp": UNCONNECTED, "udp6": UNCONNECTED,
          "udplite": UNCONNECTED, "udplite6": UNCONNECTED, "raw": UNCONNECTED,
          "raw6": UNCONNECTED}  # fmt: skip
"""The kernel's tables of sockets, and the state of one to which anybody may send."""


def tree(pid: int) -> list[int]:
    """A process and its descendants that live now."""
    found, waiting = [], [pid]
    while waiting:
        found.append(waiting.pop())
        try:
            for task in os.listdir(f"/proc/{found[-1]}/task"):
                children = Path(f"/proc/{found[-1]}/task/{task}/children").read_text()
                waiting += map(int, children.split())
        except OSError:
            continue
    return found


def listening(pid: int) -> list[str]:
    """``tcp 0100007F:1F90`` and so on: where a process can be reached from a network."""
    inodes = set(_sockets(pid))
    found = []
    for table, state in TABLES.items():
        try:
            rows = Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        found += [
            f"{table} {fields[1]}"
            for fields in map(str.split, rows)
            if fields[3] == state and fields[9] in inodes
        ]
    return found


def _sockets(pid: int) -> Iterator[str]:
    try:
        for name in os.listdir(f"/proc/{pid}/fd"):
            try:
                target = os.readlink(f"/proc/{pid}/fd/{name}")
            except OSError:
                continue
            if target.startswith("socket:["):
                yield target[len("socket:[") : -1]
    except OSError:
        return


def test_a_socket_that_listens_is_seen() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as datagrams,
    ):
        datagrams.bind(("::1", 0))
        seen = listening(os.getpid())
        assert f"tcp 0100007F:{server.getsockname()[1]:04X}" in seen
        assert any(each.startswith("udp6 ") for each in seen)


@pytest.mark.parametrize("kind", ["bare", pytest.param("docker", marks=pytest.mark.docker)])
def test_nothing_listens_while_a_run_is_recorded(
    cli: Cli, kind: str, request: pytest.FixtureRequest
) -> None:
    """The recorder, the shim and the workload, from the start to the end."""
    env = kind if kind == "bare" else f"docker={request.getfixturevalue('small_image')}"
    (cli.home / "steps.py").write_text(STEPS.read_text())
    script = "python3 steps.py 20 0.02; while [ ! -e over ]; do sleep 0.1; done"
    fewest = 3 if kind == "bare" else 1
    with cli.start("--record", "--env", env, "--", "sh", "-c", script) as process:
        looks, programs = 0, set[int]()
        while process.poll() is None:
            for pid in tree(process.pid):
                assert listening(pid) == [], (pid, kind)
                programs.add(pid)
            looks += 1
            if looks > 10 and len(programs) >= fewest:
                (cli.home / "over").touch()
        assert process.communicate() and process.returncode == 0
    assert looks > 10 and len(programs) >= fewest


def test_nothing_listens_under_the_home_screen(cli: Cli) -> None:
    screen = Pty([*cli.argv()], size=(100, 30), environment=cli.env, folder=cli.home)
    try:
        screen.wait("No run was recorded yet", 120)
        seen: set[int] = set()

        def both() -> bool:
            """The screen, and the recorder of the devices."""
            screen.read(0.1)
            for pid in tree(screen.process.pid):
                assert listening(pid) == []
                seen.add(pid)
            return len(seen) >= 2

        until(both)
        screen.type("q")
        screen.end()
    finally:
        screen.close()


def test_serve_listens_on_loopback_alone_and_its_screens_on_nothing(
    serve: Serve,  # noqa: F811
) -> None:
    served = serve()
    wanted = [f"tcp 0100007F:{served.port:04X}"]
    if Path("/proc/net/if_inet6").exists():
        wanted.append(f"tcp6 {'0' * 24}01000000:{served.port:04X}")

    async def look() -> None:
        async with a_socket(served, "width=100&height=40") as page:
            await page.send_str(served.token)

            async def drawn() -> None:
                seen = b""
                while b"No run was recorded yet" not in seen:
                    message = await page.receive()
                    seen += message.data if isinstance(message.data, bytes) else b""

            await asyncio.wait_for(drawn(), 120)
            assert listening(served.process.pid) == wanted
            below = tree(served.process.pid)[1:]
            assert len(below) >= 2
            for pid in below:
                assert listening(pid) == []
                with contextlib.suppress(FileNotFoundError):  # it ended just now
                    program = os.path.basename(os.readlink(f"/proc/{pid}/exe"))
                    assert program == os.path.basename(os.path.realpath(sys.executable))

    asyncio.run(look())
    assert listening(served.process.pid) == wanted
