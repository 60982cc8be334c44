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

from tests.tmux import Tmux

from .recording import RecordedTerminal

_READING = 1.5
"""Seconds that a person looks at a picture."""
_SETTINGS = """\
set -g status off
set -g escape-time 0
set -g default-terminal "tmux-256color"
set -ga terminal-features ",xterm*:RGB"
"""


@contextmanager
def terminal(
    folder: Path, environment: Mapping[str, str], columns: int, rows: int
) -> Iterator[RecordedTerminal]:
    """A shell in tmux, as one has it over SSH."""
    tmux = Tmux(folder, _SETTINGS)
    start = folder / "start.sh"
    start.write_text("PS1='$ '\n")
    own = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "ENV": str(start)}
    shell, variables = tmux.command("new-session", "sh"), tmux.variables({**environment, **own})
    shown = RecordedTerminal(shell, (columns, rows), variables)
    try:
        shown.sees("$")
        yield shown
    finally:
        # Where the story broke off its run goes on, as it should for a person.
        subprocess.run(
            ["gpuwatch", "stop", "--all"], env=variables, capture_output=True, check=False
        )
        tmux.close()
        shown.close()


def play(shown: RecordedTerminal, program: Sequence[str], short: Sequence[str]) -> Path:
    """Play it; returns the exported report's path below the home.

    ``program``: what ``gpuwatch run`` is given, something that goes on for minutes; ``short``: the
    same, but over after some seconds.
    """
    _command(shown, "gpuwatch", "run", *program)
    shown.sees("▶ running", "step ", "? help")
    shown.look(4 * _READING)

    shown.type("p")
    shown.sees("PID", "user")
    shown.look(_READING)
    shown.type("\x1b")
    shown.misses("PID")
    shown.type("l")
    shown.sees("/ search")
    shown.look(_READING)
    shown.type("\x1b")
    shown.misses("/ search")

    shown.type("q")
    shown.sees("come back: gpuwatch attach")
    shown.look(_READING)
    _command(shown, "gpuwatch", "attach")
    shown.sees("▶ running", "? help")
    shown.look(2 * _READING)
    shown.type("s")
    shown.sees("Stop it")
    shown.look(_READING)
    shown.type("\x1b[C\r")
    shown.sees("■ stopped")
    shown.look(_READING)
    shown.type("q")
    shown.misses("? help")

    twice = ["--env", "bare", "--env", "bare"]
    _command(shown, "clear")
    _command(shown, "gpuwatch", "run", *twice, *short)
    shown.sees("2 of 2", seconds=120)
    shown.sees("2 runs: 2 finished", seconds=120)
    shown.look(_READING)
    shown.type("c")
    shown.sees("step time", "e export")
    shown.look(2 * _READING)
    shown.type("h")
    shown.sees("x time or steps")
    shown.look(2 * _READING)
    shown.type("\x1b")
    shown.sees("e export")
    shown.look(0.5)
    shown.type("e")
    text = shown.sees(".html")
    shown.look(_READING)
    shown.type("q")
    return _named(text)


def _command(shown: RecordedTerminal, *arguments: str) -> None:
    shown.type_slowly(shlex.join(arguments), pause=0.03)
    shown.look(0.4)
    shown.type("\r")


def _named(text: str) -> Path:
    """The report that the screen names, below the home; its path may go over two rows."""
    found = re.search(r"~/(\S+(?:\n\s*\S+)?\.html)", text)
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
