"""What ``/proc`` tells of a process, and of no other that has its PID."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from gpuwatch.core import live_process
from gpuwatch.core.live_process import command_line, command_text, environment, facts
from gpuwatch.core.processes import start_time
from tests.waiting import until

WORDS = (sys.executable, "-c", "import time; time.sleep(600)", "--config", "a b.yaml", "\x1b[2J")


@pytest.fixture
def sleeper() -> Iterator[tuple[int, int]]:
    """PID and start of a process with such words."""
    process = subprocess.Popen(WORDS, cwd="/usr", env={"TOKEN": "a=b", "EMPTY": ""})
    start = start_time(process.pid)
    assert start is not None
    # The kernel gives a new program its PID before it has its words.
    until(lambda: command_line(process.pid, start) != ())
    yield process.pid, start
    process.kill()
    process.wait()


def test_the_command_line_is_whole_and_safe_to_show(sleeper: tuple[int, int]) -> None:
    words = command_line(*sleeper)
    assert words == WORDS
    text = command_text(words)
    assert text.startswith(
        f"{sys.executable} -c 'import time; time.sleep(600)' --config 'a b.yaml'"
    )
    assert text.isprintable() and "\\x1b[2J" in text


def test_nothing_is_told_of_another_process_that_has_the_pid_by_now(
    sleeper: tuple[int, int],
) -> None:
    pid, start = sleeper
    assert command_line(pid, start + 1) == ()
    assert command_line(2**22 + 1, start) == ()


def test_parent_threads_start_directory_and_variables_are_told(sleeper: tuple[int, int]) -> None:
    found = facts(*sleeper)
    assert found is not None
    assert (found.parent, found.threads, found.directory) == (os.getpid(), 1, "/usr")
    up = time.clock_gettime(time.CLOCK_BOOTTIME) - sleeper[1] / os.sysconf("SC_CLK_TCK")
    assert found.started_unix == pytest.approx(time.time() - up, abs=2)
    until(lambda: "EMPTY=" in (environment(*sleeper) or ()))
    told = environment(*sleeper)
    assert told is not None and {"TOKEN=a=b", "EMPTY="} <= {*told}
    assert facts(sleeper[0], sleeper[1] + 1) is None
    assert environment(sleeper[0], sleeper[1] + 1) is None


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"train.py\0--name\0\0\0", ("train.py", "--name", "", "")),
        (b"train.py\0\0--name\0", ("train.py", "", "--name")),
        (b"nginx: worker\0\0\0\0", ("nginx: worker",)),
        (b"no end", ("no end",)),
        (b"", ()),
    ],
)
def test_empty_words_count_but_behind_a_title(
    monkeypatch: pytest.MonkeyPatch, raw: bytes, words: tuple[str, ...]
) -> None:
    monkeypatch.setattr(live_process, "_read", lambda *_: raw)
    assert command_line(1, 1) == words


def test_a_title_that_a_process_gave_itself_is_not_quoted() -> None:
    assert command_text(["ray::train(step 3)"]) == "ray::train(step 3)"
    assert command_text(["sh", "-c", "a\nb"]) == "sh -c $'a\\x0ab'"
