"""Machines elsewhere that are watched: over a real SSH server, and in a real Slurm."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, cast

import pytest

from gpuwatch.core.errors import NotAvailable
from gpuwatch.places.base import Place
from gpuwatch.places.machines import Machines, temporary_folder
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver
from tests.places.sshd import Sshd, User
from tests.terminal import Pty
from tests.waiting import until

from .slurm.test_joined_job import Submit, running, submit

__all__ = ["submit"]
PATIENCE = 180.0


def processes_of(user: User) -> list[str]:
    """What runs for a user there, but for the server's own processes."""
    asked = ["ps", "-o", "args=", "-u", str(user.number)]
    lines = subprocess.run(asked, capture_output=True, text=True, check=False).stdout.splitlines()
    return [line for line in lines if not line.startswith("sshd")]


def folders_of(user: User) -> set[Path]:
    """Where machines are recorded for a user there."""
    found = Path(tempfile.gettempdir()).glob("gpuwatch-now-*")
    return {path for path in found if path.stat().st_uid == user.number}


@pytest.fixture(scope="module")
def hosts(ssh_server: Sshd) -> tuple[User, User]:
    return ssh_server.add_user("gpu1"), ssh_server.add_user("gpu2")


@pytest.fixture
def python_with_gpus() -> Iterator[Path]:
    """A Python there, in whose world a driver shows two GPUs."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    driver = FakeDriver(folder, 2)
    own = {name: value for name, value in driver.env.items() if os.environ.get(name) != value}
    settings = "\n".join(f"export {name}='{value}'" for name, value in own.items())
    python = folder / "python3"
    python.write_text(f'#!/bin/sh\n{settings}\nexec /usr/bin/env python3 "$@"\n')
    python.chmod(0o755)
    yield python
    shutil.rmtree(folder)


@pytest.fixture
def here(cli: Cli, sshd: Sshd) -> Cli:
    cli.variables |= sshd.variables
    return cli


@pytest.fixture
def screen(here: Cli) -> Iterator[Callable[..., Pty]]:
    """Show places on a screen of 120 columns."""
    shown: list[Pty] = []

    def show(*places: str) -> Pty:
        words = [word for place in places for word in ("--on", place)]
        shown.append(Pty(here.argv(*words), (120, 30), here.env, folder=here.home))
        return shown[-1]

    yield show
    for each in shown:
        each.close()


def shows(screen: Pty, text: str) -> None:
    """Wait until that is drawn, after what was drawn so far."""
    screen.wait(text, PATIENCE, start=len(screen.sent))


@pytest.mark.ssh
@pytest.mark.usefixtures("sshd")
class TestOverSsh:
    def test_all_are_on_one_screen_and_one_that_is_away_says_so(
        self,
        sshd: Sshd,
        hosts: tuple[User, User],
        python_with_gpus: Path,
        screen: Callable[..., Pty],
    ) -> None:
        before = [folders_of(user) for user in hosts]
        shown = screen(f"ssh=gpu1,python={python_with_gpus}", "ssh=gpu2", "ssh=nowhere")
        for word in ("away: ", "no GPU", "700 W"):
            shown.wait(word, PATIENCE)
        assert all(processes_of(user) for user in hosts)
        shown.type("\r")
        shows(shown, "SM clock")
        shown.type("\x1b")
        shows(shown, "3 machines")
        sshd.stop()
        shows(shown, "cannot connect to gpu2")
        sshd.start()
        shows(shown, "700 W")
        assert "sessions" in shown.text()
        shown.type("q")
        assert shown.end() == 0
        for user, those in zip(hosts, before, strict=True):
            until(lambda user=user: not processes_of(user))
            assert not list(user.home.rglob("*.gpuwatch")) and folders_of(user) <= those
        assert not list(sshd.runtime.glob("gpuwatch-[!s]*"))

    def test_nothing_is_left_of_one_that_is_killed(
        self, sshd: Sshd, hosts: tuple[User, User], here: Cli, screen: Callable[..., Pty]
    ) -> None:
        before = [folders_of(user) for user in hosts]
        shown = screen("ssh=gpu1", "ssh=gpu2")
        shown.wait("no GPU", PATIENCE)
        shown.process.send_signal(signal.SIGKILL)
        for user, those in zip(hosts, before, strict=True):
            until(lambda user=user: not processes_of(user))
            assert folders_of(user) <= those
        until(lambda: not list(sshd.runtime.glob("gpuwatch-[!s]*")))
        assert not list(here.home.rglob("*.gpuwatch"))

    def test_both_are_recorded_without_a_screen(self, hosts: tuple[User, User], here: Cli) -> None:
        here("--record", "--on", "ssh=gpu1", "--on", "ssh=gpu2", "--duration", "2s")
        assert len(list((here.home / ".local/share/gpuwatch").rglob("01-bare.gpuwatch"))) == 2


@pytest.mark.slurm
def test_a_job_is_one_of_them(cli: Cli, submit: Submit, tmp_path: Path) -> None:
    cli.variables["XDG_RUNTIME_DIR"] = str(tmp_path)  # there, too: the job gets the environment
    job = submit()
    running(job)
    shown = Pty(cli.argv("--on", f"slurm,job={job}"), (120, 30), cli.env, folder=cli.home)
    try:
        shown.wait("load ", PATIENCE)
        steps = ["squeue", "--noheader", "--steps", f"--jobs={job}", "--format=%j"]
        named = subprocess.run(steps, capture_output=True, text=True, check=True).stdout.split()
        assert "gpuwatch" in named
        shown.type("\r")
        shows(shown, f"slurm-job-{job}")
        assert list(tmp_path.glob("gpuwatch-now-*"))
        shown.type("q")
        assert shown.end() == 0
        until(lambda: not list(tmp_path.glob("gpuwatch-*")))
        until(
            lambda: (
                "gpuwatch"
                not in subprocess.run(steps, capture_output=True, text=True, check=True).stdout
            )
        )
    finally:
        shown.close()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--on", "ssh=a", "--plain"), "--plain shows this machine alone"),
        (("--on", "ssh=a"), "gpuwatch --record --on ssh=a"),
        (("--on", "nothing=a"), "gpuwatch --record"),
    ],
)
def test_without_a_screen_it_says_what_records_them(
    cli: Cli, words: Sequence[str], said: str
) -> None:
    assert said in cli(*words, code=2).stderr


class Talking:
    """A place whose program says what it is told to, whatever it is asked for."""

    def __init__(self, program: str) -> None:
        self._program = program

    def connect(self, *, person: bool) -> None:
        pass

    def preflight(self) -> list[object]:
        return []

    def watch(self, arguments: Sequence[str], errors: IO[bytes]) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", self._program, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )


class Away(Talking):
    def connect(self, *, person: bool) -> None:
        raise NotAvailable("no \x1b[31mroute\x07 to it")


GREETED = "import sys; print('gpuwatch-relay', sys.argv[3], flush=True); "


def test_what_one_tells_never_harms_another() -> None:
    good = GREETED + 'print(\'{"n":1,"beat":true}\', flush=True); sys.stdin.read()'
    hostile = (
        GREETED + 'print(\'{"n":1,"file":"../../x"}\', flush=True)',
        GREETED + "sys.stdout.buffer.write(bytes(range(256)) * 999); sys.stdout.flush()",
        "import sys; sys.exit('gpuwatch: error: \\x1b[2Jno room')",
    )
    names = ["good", "row", "noise", "dies", "away"]
    places = [*map(Talking, (good, *hostile)), Away("")]
    with temporary_folder() as folder:
        pairs = [(name, cast(Place, place)) for name, place in zip(names, places, strict=True)]
        with Machines(pairs, folder) as machines:
            until(lambda: all(each.trouble for each in machines.now()[1:]))
            until(lambda: machines.now()[0].heard)
            first, *others = machines.now()
            assert first.trouble is None and first.session is None
            assert "cannot be read" in str(others[0].trouble)
            assert "no room" in str(others[2].trouble)
            assert others[3].trouble == "no route to it"
            assert all("\x1b" not in str(each.trouble) for each in others)
    assert not folder.exists()


def test_the_folder_of_one_that_is_killed_is_removed() -> None:
    script = (
        "import os, signal; from gpuwatch.places.machines import temporary_folder\n"
        "with temporary_folder() as folder:\n"
        "    (folder / 'file').touch(); print(folder, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    until(lambda: not os.path.exists(done.stdout.strip()))


def test_a_cluster_without_a_job_is_refused_at_once(cli: Cli) -> None:
    shown = Pty(cli.argv("--on", "slurm,partition=main"), (120, 30), cli.env, folder=cli.home)
    try:
        shown.wait("slurm,partition=main names no machine", PATIENCE)
        shown.wait("slurm,job=ID", PATIENCE)
        assert shown.end() == 2
    finally:
        shown.close()
