"""Ports for servers of the tests' own."""

from __future__ import annotations

import random
import socket
from pathlib import Path


def free_port() -> int:
    """A port of loopback below those that the kernel gives to connections: it is still free when
    the server asks for it, and when a server comes back."""
    lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    while True:
        port = random.SystemRandom().randrange(lowest // 2, lowest)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
