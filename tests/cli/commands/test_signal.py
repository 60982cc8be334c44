"""``gpuwatch signal``: the process that was named, after a question, and no other."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.cli.commands.signal import _runs_gpuwatch
from gpuwatch.cli.dispatch import dispatch
from gpuwatch.core.errors import UsageError
from gpuwatch.core.processes import boot_id, start_time
from tests.conftest import Cli
from tests.terminal import Pty

from ..test_errors import one_line

_NEXT_PID = Path("/proc/sys/kernel/ns_last_pid")


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(["sleep", "300"])
    yield process
    process.kill()
    process.wait()


def name(process: subprocess.Popen[bytes]) -> str:
    return f"{process.pid}@{start_time(process.pid)}"


class Question(Pty):
    """``gpuwatch signal`` at a terminal, waiting for an answer."""

    def __init__(self, cli: Cli, *words: str) -> None:
        super().__init__(cli.argv("signal", *words), environment=cli.env)
        self.wait("[y/N] ")

    def answer(self, text: str) -> int:
        self.type(f"{text}\n")
        code = self.end()
        self.close()
        return code


def test_the_question_names_user_and_command_and_yes_sends_the_signal(
    cli: Cli, sleeper: subprocess.Popen[bytes]
) -> None:
    question = Question(cli, name(sleeper))
    assert f"process {sleeper.pid} of " in question.text() and "sleep 300" in question.text()
    assert sleeper.poll() is None
    assert question.answer("y") == 0 and "sent SIGTERM" in question.text()
    assert sleeper.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize("answer", ["", "n", "yo", "Y es"])
def test_any_other_answer_sends_none(
    cli: Cli, sleeper: subprocess.Popen[bytes], answer: str
) -> None:
    question = Question(cli, name(sleeper))
    assert question.answer(answer) == 0 and "no signal was sent" in question.text()
    assert sleeper.poll() is None


def test_the_signal_is_the_one_that_was_asked_for(
    cli: Cli, sleeper: subprocess.Popen[bytes]
) -> None:
    cli("signal", name(sleeper), "--signal", "INT", "--boot", boot_id(), "--yes")
    assert sleeper.wait(60) == -signal.SIGINT


def test_several_are_named_and_signalled_together_or_none_at_all(
    cli: Cli, sleeper: subprocess.Popen[bytes]
) -> None:
    other = subprocess.Popen(["sleep", "301"])
    try:
        gone = f"{other.pid}@1"
        assert "began at another time" in cli("signal", name(sleeper), gone, "--yes", code=2).stderr
        assert sleeper.poll() is None
        question = Question(cli, name(sleeper), name(other))
        assert "sleep 300" in question.text() and "sleep 301" in question.text()
        assert question.answer("y") == 0
        assert sleeper.wait(60) == other.wait(60) == -signal.SIGTERM
    finally:
        other.kill()
        other.wait()


def test_of_several_one_that_ends_meanwhile_keeps_no_other_from_its_signal(
    cli: Cli, sleeper: subprocess.Popen[bytes]
) -> None:
    ended = subprocess.Popen(["sleep", "301"])
    question = Question(cli, name(ended), name(sleeper))
    ended.kill()
    ended.wait()
    assert question.answer("y") == 2
    said = question.text()
    assert f"process {ended.pid} ended meanwhile" in said and "nothing" not in said
    assert sleeper.wait(60) == -signal.SIGTERM


@pytest.mark.parametrize(
    ("words", "is_gpuwatch"),
    [
        (("/usr/bin/gpuwatch", "run"), True),
        (("python3", "-m", "gpuwatch", "--record"), True),
        (("python3", "/x/gpuwatch/__main__.py", "--record"), True),
        (("python3", "/x/runners/shim.py"), True),
        (("python3", "train.py", "--project", "gpuwatch"), False),
        (("python3", "train.py", "gpuwatch"), False),
        (("python3", "/x/other/__main__.py"), False),
    ],
)
def test_gpuwatch_is_told_by_its_program(words: tuple[str, ...], is_gpuwatch: bool) -> None:
    assert _runs_gpuwatch(words) is is_gpuwatch


def reused(pid: int) -> subprocess.Popen[bytes]:
    """A process that the kernel gives the PID of one that has ended."""
    for _ in range(200):
        _NEXT_PID.write_text(str(pid - 1))
        process = subprocess.Popen(["sleep", "300"])
        if process.pid == pid:
            return process
        process.kill()
        process.wait()
    pytest.skip("the PID was taken by others")


@pytest.mark.skipif(not os.access(_NEXT_PID, os.W_OK), reason="only root chooses the next PID")
@pytest.mark.parametrize("when", ["before the question", "between question and answer"])
def test_a_pid_that_was_reused_is_left_alone(
    cli: Cli, sleeper: subprocess.Popen[bytes], when: str
) -> None:
    named = name(sleeper)
    time.sleep(0.02)  # another clock tick
    if when == "before the question":
        sleeper.kill()
        sleeper.wait()
        other = reused(sleeper.pid)
        said = one_line(cli("signal", named, "--yes", code=2).stderr)
        assert "began at another time" in said
    else:
        question = Question(cli, named)
        sleeper.kill()
        sleeper.wait()
        other = reused(sleeper.pid)
        assert question.answer("y") == 2 and "ended meanwhile" in question.text()
    try:
        other.send_signal(signal.SIGINT)
        assert other.wait(60) == -signal.SIGINT, "no other signal came before"
    finally:
        other.kill()
        other.wait()


def test_a_thread_is_called_a_thread(cli: Cli) -> None:
    """Its ids are like those of processes, and tools list both."""
    ended = threading.Event()
    thread = threading.Thread(target=ended.wait)
    thread.start()
    try:
        id_ = thread.native_id
        assert id_ is not None
        said = cli("signal", f"{id_}@{start_time(id_)}", "--yes", code=2).stderr
        assert f"{id_} is a thread of process {os.getpid()}" in one_line(said)
    finally:
        ended.set()
        thread.join()


def test_what_is_not_to_be_signalled_from_here_is_refused(
    cli: Cli, sleeper: subprocess.Popen[bytes]
) -> None:
    def refused(*words: object) -> str:
        return one_line(cli("signal", *words, "--yes", code=2).stderr)

    assert "the system's" in refused(f"1@{start_time(1)}")
    assert "was started from" in refused(f"{os.getpid()}@{start_time(os.getpid())}")
    assert "last restart" in refused(name(sleeper), "--boot", "another")
    assert "required" in refused("-5@1")
    assert "invalid process" in refused("all")
    assert "not the PID" in refused("0@1")
    assert "may be another process" in refused(sleeper.pid)
    told = cli("signal", sleeper.pid, code=2)
    assert told.stdout.startswith(f"{name(sleeper)}: process {sleeper.pid} of ")
    assert "sleep 300" in told.stdout and f"gpuwatch signal {name(sleeper)}" in told.stderr
    assert "1 began at another time: another process has, or had," in refused("1@1")
    assert "has ended" in refused(f"{2**22 + 1}@1")
    assert sleeper.poll() is None


def test_a_recorder_and_the_shim_of_a_run_are_refused(cli: Cli) -> None:
    path = cli("--record", "--detach", "--", "sleep", "300").stdout.strip()
    runs = cli.home / ".local/state/gpuwatch/runs"
    (folder,) = runs.iterdir()
    text = (folder / "recorder.lock").read_text() + (folder / "handle.json").read_text()
    pids = {int(each) for each in re.findall(r'"pid": (\d+)', text)}
    assert len(pids) >= 2
    for pid in pids:
        if "sleep" in Path(f"/proc/{pid}/cmdline").read_text().split("\0")[0]:
            continue
        said = cli("signal", f"{pid}@{start_time(pid)}", "--yes", code=2).stderr
        assert "gpuwatch itself" in one_line(said)
    cli("stop", path)


def test_another_users_process_is_refused(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1000)
    with pytest.raises(UsageError, match=r"is .*'s"):
        dispatch(["signal", name(sleeper), "--yes"])
    assert sleeper.poll() is None
