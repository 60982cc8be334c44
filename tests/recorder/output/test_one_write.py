"""A step line leaves its process in one write, so that no other process's output gets into it."""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gpuwatch.recorder.output.step_lines import PREFIX, Step, parse

pytestmark = pytest.mark.usefixtures("programs")

ROOT = Path(__file__).parents[3]
BUFFERING = [(), ("-u",)]

SNIPPET = """
loader, train = [range(64)] * 3, lambda batch: None
{}
"""
OURS = """
import sys
sys.path.insert(0, {!r})
from lines import emit
for step in (1, 2, 3):
    emit("step", step=step, samples=64, monotonic_ns=step)
"""


def writes(code: str, *flags: str) -> list[bytes]:
    """What a Python program writes to its standard output, one item for each call of write(2)."""
    ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, its:
        command = [sys.executable, *flags, "-c", code]
        with subprocess.Popen(command, stdout=its.fileno()) as program:
            assert program.wait(60) == 0
        found = []
        while select.select([ours], [], [], 0)[0]:
            found.append(ours.recv(1 << 16))
    return found


def documented(page: str) -> str:
    text = (ROOT / page).read_text(encoding="utf-8")
    match = re.search(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    assert match is not None
    return SNIPPET.format(match[1])


@pytest.mark.parametrize("flags", BUFFERING)
@pytest.mark.parametrize("which", ["README.md", "docs/step-lines.md", "own"])
def test_each_line_is_one_write(which: str, flags: tuple[str, ...]) -> None:
    code = OURS.format(str(ROOT / "workloads")) if which == "own" else documented(which)
    found = writes(code, *flags)
    assert len(found) == 3
    for number, line in enumerate(found, 1):
        assert line.endswith(b"\n") and line.count(b"\n") == 1
        step = parse(line.decode())
        assert isinstance(step, Step)
        assert (step.step, step.samples) == (number, 64)
        assert step.monotonic_ns is not None


def test_print_in_pieces_is_not() -> None:
    code = f"print({PREFIX.strip()!r}, {json.dumps(json.dumps({'event': 'step'}))}, flush=True)"
    assert len(writes(code, "-u")) > 1
