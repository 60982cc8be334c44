"""The whole story in a terminal: start, watch, leave, come back, stop, compare, export.

``tests/story/test_story.py`` plays it with a small program, ``make_recording`` with a network and
writes ``docs/images/story.svg`` and ``docs/story.cast`` of it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .recording import RecordedTerminal

_READING = 1.5
"""Seconds that a person looks at a picture."""


@contextmanager
def terminal(
    folder: Path, environment: Mapping[str, str], columns: int, rows: int
) -> Iterator[RecordedTerminal]:
    """A shell in tmux, as one has it over SSH."""
    settings = folder / "tmux.conf"
    settings.write_text(
        "set -g status off\nset -g escape-time 0\n"
        'set -g default-terminal "tmux-256color"\nset -ga terminal-features ",xterm*:RGB"\n'
    )
    socket = str(folder / "tmux")
    kept = {k: v for k, v in environment.items() if k not in ("TMUX", "COLUMNS", "LINES")}
    start = folder / "start.sh"
    start.write_text("PS1='$ '\n")
    variables = {**kept, "TERM": "xterm-256color", "COLORTERM": "truecolor", "ENV": str(start)}
    shell = ["tmux", "-S", socket, "-f", str(settings), "new-session", "sh"]
    shown = RecordedTerminal(shell, variables, columns, rows)
    try:
        shown.wait("$")
        yield shown
    finally:
        subprocess.run(["tmux", "-S", socket, "kill-server"], check=False)
        shown.close()


def play(shown: RecordedTerminal, program: Sequence[str], short: Sequence[str]) -> Path:
    """Play it; returns the exported report.

    ``program``: what ``gpuwatch run`` is given, something that goes on for minutes; ``short``: the
    same, but over after some seconds.
    """
    _command(shown, "gpuwatch", "run", *program)
    shown.wait("▶ running", "step ", "? help")
    shown.look(4 * _READING)

    shown.type("p")
    shown.wait("1 process", "PID")
    shown.look(_READING)
    shown.type("\x1b")
    shown.wait_without("PID")
    shown.type("l")
    shown.wait("/ search")
    shown.look(_READING)
    shown.type("\x1b")
    shown.wait_without("/ search")

    shown.type("q")
    shown.wait("come back: gpuwatch attach")
    shown.look(_READING)
    _command(shown, "gpuwatch", "attach")
    shown.wait("▶ running", "? help")
    shown.look(2 * _READING)
    shown.type("s")
    shown.wait("y yes")
    shown.type("y")
    shown.wait("■ stopped")
    shown.look(_READING)
    shown.type("q")
    shown.wait_without("? help")

    twice = ["--env", "bare", "--env", "bare"]
    _command(shown, "clear")
    _command(shown, "gpuwatch", "run", *twice, *short)
    shown.wait("2 of 2", seconds=120)
    shown.wait("2 runs: 2 finished", seconds=120)
    shown.look(_READING)
    shown.type("c")
    shown.wait("step time", "e export")
    shown.look(2 * _READING)
    shown.type("h")
    shown.wait("x ")
    shown.look(2 * _READING)
    shown.type("\x1b")
    shown.wait("e export")
    shown.look(0.5)
    shown.type("e")
    text = shown.wait(".html")
    shown.look(_READING)
    shown.type("q")
    return _named(text)


def _command(shown: RecordedTerminal, *arguments: str) -> None:
    shown.type(shlex.join(arguments), pause=0.03)
    shown.look(0.4)
    shown.type("\r")


def _named(text: str) -> Path:
    """The report that the screen names; its path may go over two rows."""
    found = re.search(r"(/\S+(?:\n\s*\S+)?\.html)", text)
    assert found is not None, text
    return Path(re.sub(r"\n\s*", "", found[1]))


def variables(home: Path, programs: Path) -> dict[str, str]:
    """A user's environment: a home of its own, gpuwatch on the PATH."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "LANG", "LC_ALL", "PYTHONPATH", "TMPDIR")
    }
    path = os.pathsep.join([str(programs), kept.get("PATH", os.defpath)])
    return {"LANG": "C.UTF-8", **kept, "HOME": str(home), "PATH": path, "TZ": "UTC"}
