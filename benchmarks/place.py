"""How long until a run on another host is seen here, and what following it costs this machine.

    python -m benchmarks.place [--rounds 7] [--seconds 120]

The host is an OpenSSH server of the tests' own on loopback (tests/places/sshd, as root), where
nothing of gpuwatch is installed. Each round opens a connection anew for ``ssh HOST true`` and for
``gpuwatch run --plain --on ssh=HOST`` of a program that prints a step line each 0.05 s, up to the
first line with a figure of it; once more over the connection that is open then. The program's
start is part of that. Then such a program is followed: ``gpuwatch follow`` with the ``ssh`` that it
reads from.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.compiled import compile_gpuwatch
from benchmarks.tui.tree import cpu_seconds
from tests.places.sshd import Sshd

_HOST = "gpu1"
_PROGRAM = """
import json, sys, time
for step in range(1, int(sys.argv[1]) + 1):
    print(":::GPUWATCH", json.dumps({"event": "step", "step": step, "seconds": 0.05}), flush=True)
    time.sleep(0.05)
"""
_STEPS_A_SECOND = 20
_SETTLE = 10.0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=120.0)
    arguments = parser.parse_args()
    compile_gpuwatch()
    load = os.getloadavg()[0]
    print(f"{platform.system()}, {os.cpu_count()} cores, load {load:.1f}\n")
    server = Sshd()
    with tempfile.TemporaryDirectory(prefix="gpuwatch-bench-") as home:
        try:
            server.start()
            server.add_user(_HOST)
            environment = {**os.environ, **server.variables, "HOME": home}
            _first_figures(server, environment, arguments.rounds)
            print(f"\nfollowing: {100 * _followed(environment, arguments.seconds):.1f} % of a core")
        finally:
            server.close()
    return 0


def _first_figures(server: Sshd, environment: Mapping[str, str], rounds: int) -> None:
    print(f"the first time, packed and sent: {_first_figure(environment):.1f} s", flush=True)
    found: dict[str, list[float]] = {}
    for _ in range(rounds):
        server.hang_up()
        began = time.monotonic()
        subprocess.run(["ssh", _HOST, "true"], env=environment, check=True)
        found.setdefault("ssh HOST true", []).append(time.monotonic() - began)
        found.setdefault("gpuwatch run", []).append(_first_figure(environment))
        found.setdefault("gpuwatch run, connected", []).append(_first_figure(environment))
    for name, times in found.items():
        print(f"{name}: {median(times):.2f} s ({min(times):.2f} to {max(times):.2f})", flush=True)


def _command(*words: str, seconds: float) -> list[str]:
    program = ("python3", "-c", _PROGRAM, str(round(seconds * _STEPS_A_SECOND)))
    return [sys.executable, "-m", "gpuwatch", *words, "--on", f"ssh={_HOST}", "--", *program]


def _first_figure(environment: Mapping[str, str]) -> float:
    """Seconds until a figure of a run there is here; returns at the run's end."""
    began, found = time.monotonic(), None
    with subprocess.Popen(
        _command("run", "--plain", seconds=3.0),
        env=environment,
        cwd=environment["HOME"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if found is None and "median step" in line:
                found = time.monotonic() - began
    if found is None:
        raise RuntimeError("it ended without a figure")
    return found


def _followed(environment: Mapping[str, str], seconds: float) -> float:
    """The share of one core of what follows a run."""
    command = _command("--record", "--detach", seconds=seconds + 300)
    home = Path(environment["HOME"])
    done = subprocess.run(
        command, env=environment, cwd=home, check=True, stdout=subprocess.PIPE, text=True
    )
    try:
        time.sleep(_SETTLE)
        records = home.glob(".local/state/gpuwatch/placements/*/record.json")
        own = {json.loads(record.read_text())["study"]: record for record in records}
        lease = own[done.stdout.strip()].with_name("lease.json")
        follower = json.loads(lease.read_text())["holder"]["pid"]
        began, before = time.monotonic(), cpu_seconds([follower])
        time.sleep(seconds)
        return (cpu_seconds([follower]) - before) / (time.monotonic() - began)
    finally:
        stop = [sys.executable, "-m", "gpuwatch", "stop", done.stdout.strip()]
        subprocess.run(stop, env=environment, check=True)


if __name__ == "__main__":
    sys.exit(main())
