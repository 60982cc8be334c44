"""Scripts on a host, against a real OpenSSH server: login shells, lost connections, and what ssh
asks a person for."""

from __future__ import annotations

import hashlib
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.core.errors import NotAvailable
from gpuwatch.places.base import NeedsPerson
from gpuwatch.places.ssh.connection import Connection, framed
from tests.places.sshd import SSH, Sshd, User
from tests.waiting import until

pytestmark = [pytest.mark.ssh, pytest.mark.usefixtures("sshd")]

SHELLS = {"sh": "/bin/sh", "bash": "/bin/bash", "fish": "/usr/bin/fish", "csh": "/bin/csh"}


@pytest.fixture(scope="module")
def gpu1(ssh_server: Sshd) -> User:
    return ssh_server.add_user("gpu1")


@pytest.fixture
def connection(gpu1: User, sshd: Sshd) -> Iterator[Connection]:
    made = Connection("gpu1")
    made.connect(person=False)
    yield made


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_runs_under_every_login_shell(sshd: Sshd, shell: str) -> None:
    user = sshd.add_user(f"under-{shell}", shell=SHELLS[shell])
    connection = Connection(user.host)
    connection.connect(person=False)
    answer = connection.run('echo "$HOME"; cat; echo oops >&2; exit 7', b"typed\n")
    assert answer.output.decode() == f"{user.home}\ntyped\n"
    assert (answer.code, answer.errors) == (7, "oops\n")


@pytest.mark.parametrize("greeting", ["echo Welcome\\!; echo stay >&2", "printf 'no line end'"])
@pytest.mark.parametrize(
    ("shell", "file"),
    [("bash", ".bashrc"), ("csh", ".cshrc"), ("fish", ".config/fish/config.fish")],
)
def test_what_a_login_shell_prints_is_skipped(
    sshd: Sshd, shell: str, file: str, greeting: str
) -> None:
    user = sshd.add_user(f"greeting-{shell}-{len(greeting)}", shell=SHELLS[shell])
    path = user.home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{greeting}\n")
    path.parent.chmod(0o755)
    connection = Connection(user.host)
    connection.connect(person=False)
    plain = subprocess.run(["ssh", user.host, "true"], capture_output=True, check=True)
    assert plain.stdout  # it does print
    for _ in range(20):
        assert connection.run("printf 'first\\n'; cat", b"second").output == b"first\nsecond"


def test_an_account_without_a_shell_says_so(sshd: Sshd) -> None:
    sshd.add_user("no-shell", shell="/usr/sbin/nologin")
    connection = Connection("no-shell")
    connection.connect(person=False)
    with pytest.raises(NotAvailable, match="This account is currently not available"):
        connection.run("echo here")


def test_50_megabytes_arrive_whole_in_both_directions(connection: Connection) -> None:
    data = os.urandom(50_000_000)
    answer = connection.run("sha256sum", data)
    assert answer.output.split()[0].decode() == hashlib.sha256(data).hexdigest()
    assert connection.run("cat", data).output == data


def test_a_script_that_reads_nothing_does_not_wait_for_its_input(connection: Connection) -> None:
    assert connection.run("echo done", bytes(10_000_000)).output == b"done\n"


def test_a_script_that_takes_too_long_is_given_up(connection: Connection) -> None:
    with pytest.raises(NotAvailable, match="did not answer within 1 s"):
        connection.run("sleep 600", seconds=1)


def test_a_script_that_is_cut_off_runs_not_at_all(gpu1: User, connection: Connection) -> None:
    text = framed("\n".join(f"touch {gpu1.home}/step{n}" for n in range(3)), "marker")
    call = text.index("gpuwatch_script\n", 1)
    for end in range(0, call + len("gpuwatch_script") - 1, 40):
        subprocess.run(
            ["ssh", gpu1.host, "exec sh"],
            input=text[:end].encode(),
            capture_output=True,
            check=False,
        )
    assert not list(gpu1.home.glob("step*"))
    connection.run(f"touch {gpu1.home}/step9")
    assert list(gpu1.home.glob("step*")) == [gpu1.home / "step9"]


def test_a_password_is_asked_for_at_the_terminal_and_only_there(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd.add_user("by-password", password="horse")
    with pytest.raises(
        NeedsPerson, match=r"by-password: .*Permission denied \(password\)"
    ) as error:
        Connection("by-password").connect(person=False)
    assert error.value.hint == "try it by hand: ssh by-password"
    for name, value in sshd.answers("horse").items():
        monkeypatch.setenv(name, value)
    with_person = Connection("by-password")
    with_person.connect(person=True)
    assert with_person.run("echo in").output == b"in\n"
    follower = Connection("by-password")  # it shares what the person opened
    follower.connect(person=False)
    assert follower.run("echo in").output == b"in\n"


def test_a_second_factor_is_asked_for_at_the_terminal_and_only_there(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd.add_user("by-both", password="horse", second_factor=True)
    with pytest.raises(NeedsPerson, match=r"Permission denied \(keyboard-interactive\)"):
        Connection("by-both").connect(person=False)
    for name, value in sshd.answers("horse").items():
        monkeypatch.setenv(name, value)
    with_person = Connection("by-both")
    with_person.connect(person=True)
    assert with_person.run("echo in").output == b"in\n"


def test_a_lost_connection_that_needs_a_password_needs_a_person(
    sshd: Sshd, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = sshd.add_user("lost", password="horse")
    with monkeypatch.context() as patch:
        for name, value in sshd.answers("horse").items():
            patch.setenv(name, value)
        connection = Connection("lost")
        connection.connect(person=True)
    assert sshd.cut(user) == 1

    def needs_person() -> bool:
        try:
            connection.run("echo in")
        except NotAvailable as error:  # at first perhaps: the pipe to ssh just broke
            return isinstance(error, NeedsPerson)
        return False

    until(needs_person)
    with pytest.raises(NeedsPerson):
        connection.connect(person=False)


def test_an_unknown_host_key_is_for_a_person_to_accept(sshd: Sshd, gpu1: User) -> None:
    sshd.known_hosts.write_text("")
    try:
        with pytest.raises(NeedsPerson, match="Host key verification failed;"):
            Connection("gpu1").connect(person=False)
    finally:
        sshd.trust()


def test_a_changed_host_key_is_refused(
    sshd: Sshd, gpu1: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    sshd.stop()
    sshd.new_host_key()
    sshd.start()
    try:
        with pytest.raises(NotAvailable, match="the host key of gpu1 has changed") as error:
            Connection("gpu1").connect(person=False)
        assert not isinstance(error.value, NeedsPerson)
        with pytest.raises(NotAvailable):  # and nobody is asked whether to accept it
            Connection("gpu1").connect(person=True)
    finally:
        sshd.trust()


def test_a_host_that_does_not_exist_or_listens_no_more_is_told(sshd: Sshd, gpu1: User) -> None:
    with pytest.raises(NotAvailable, match="Could not resolve hostname"):
        Connection("nowhere.invalid").connect(person=False)
    sshd.stop()
    try:
        with pytest.raises(NotAvailable, match="Connection refused") as error:
            Connection("gpu1").connect(person=False)
        assert not isinstance(error.value, NeedsPerson)
    finally:
        sshd.start()


def test_a_host_that_accepts_and_stays_silent_is_given_up(sshd: Sshd) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        with sshd.config.open("a") as config:
            config.write(f"Host silent\nHostName 127.0.0.1\nPort {silent.getsockname()[1]}\n")
        with pytest.raises(NotAvailable, match="timed out"):
            Connection("silent", patience=2).connect(person=False)


def test_a_connection_that_was_cut_comes_back(sshd: Sshd, gpu1: User) -> None:
    connection = Connection("gpu1")
    connection.connect(person=False)
    running = connection.open("echo begun; sleep 600")
    assert running.stdout is not None and running.stdout.readline() == b"begun\n"
    sshd.stop()
    assert running.stdout.read() == b""
    assert running.wait() != 0
    running.communicate()
    with pytest.raises(NotAvailable, match="Connection refused"):
        connection.run("echo in")
    sshd.start()
    assert connection.run("echo in").output == b"in\n"  # by a connection for this script alone
    connection.connect(person=False)
    assert connection.run("echo in").output == b"in\n"
    assert sshd.connections(gpu1) == 1


def test_the_users_own_connection_is_used_and_stays(sshd: Sshd) -> None:
    own = sshd.runtime / "own"
    user = sshd.add_user("shared", options=f"ControlPath {own}")
    start = [SSH, "-F", str(sshd.config), "-fN", "-o", "ControlMaster=yes", "shared"]
    subprocess.run(start, check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    connection = Connection("shared")
    connection.connect(person=False)
    assert connection.run("echo in").output == b"in\n"
    assert sshd.connections(user) == 1
    assert subprocess.run(["ssh", "-O", "check", "shared"], capture_output=True).returncode == 0


def test_one_of_two_programs_that_ends_leaves_the_other_its_connection(sshd: Sshd) -> None:
    user = sshd.add_user("two")
    first, second = Connection("two"), Connection("two")
    first.connect(person=False)
    second.connect(person=False)
    assert sshd.connections(user) == 1
    running = second.open("cat")
    assert running.communicate(b"still here", timeout=60)[0] == b"still here"


def test_programs_that_connect_at_once_share_one_connection(sshd: Sshd) -> None:
    user = sshd.add_user("many")
    program = (
        "from gpuwatch.places.ssh.connection import Connection\n"
        "it = Connection('many'); it.connect(person=False); print(it.run('echo in').output)"
    )
    several = [
        subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) for _ in range(5)
    ]
    assert [each.communicate(timeout=60)[0] for each in several] == [b"b'in\\n'\n"] * 5
    assert sshd.connections(user) == 1


def test_an_unused_connection_ends_by_itself(sshd: Sshd, monkeypatch: pytest.MonkeyPatch) -> None:
    user = sshd.add_user("unused")
    monkeypatch.setattr("gpuwatch.places.ssh.connection.UNUSED_SECONDS", 1)
    connection = Connection("unused")
    connection.connect(person=False)
    assert connection.run("sleep 2; echo in").output == b"in\n"
    until(lambda: not sshd.connections(user))


def test_a_name_that_looks_like_an_option_runs_nothing(sshd: Sshd, tmp_path: Path) -> None:
    for name in ("-oProxyCommand=touch$IFS$9harm", f"-oProxyCommand=touch {tmp_path}/harm"):
        with pytest.raises(NotAvailable):
            Connection(name).connect(person=False)
        assert not (tmp_path / "harm").exists()
    calls = sshd.arguments.read_text().splitlines()
    assert calls and all(" -- -oProxyCommand" in call for call in calls[-4:])


def test_nothing_of_the_environment_reaches_the_host(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_planted")
    monkeypatch.setenv("LC_PLANTED", "hf_planted")
    assert b"hf_planted" not in connection.run("env").output
    fresh = Connection("gpu1")
    fresh.connect(person=False)
    assert b"hf_planted" not in fresh.run("env; cat /proc/$PPID/environ").output


def test_the_folder_of_the_sockets_must_be_private(sshd: Sshd) -> None:
    folder = sshd.runtime / f"gpuwatch-ssh-{os.geteuid()}"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    try:
        with pytest.raises(NotAvailable, match="open to other users"):
            Connection("gpu1")
    finally:
        folder.chmod(0o700)
