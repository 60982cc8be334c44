"""An OpenSSH server of the tests' own on loopback, users that log in there, and a client whose
configuration, keys and known hosts are apart from those of whoever runs the tests."""

from __future__ import annotations

import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.ports import free_port
from tests.waiting import until

SSHD, SSH = "/usr/sbin/sshd", "/usr/bin/ssh"


@dataclass(frozen=True)
class User:
    """Somebody with an account, and the name under which the client knows the host for it."""

    host: str
    name: str
    home: Path
    number: int


class Sshd:
    """The server. Programs that find its ``ssh`` first on their ``PATH`` reach its users."""

    def __init__(self) -> None:
        # The users must be able to enter it, and paths of Unix sockets have at most 107 bytes.
        self._folder = Path(tempfile.mkdtemp(prefix="gw-sshd-", dir="/tmp"))
        self._folder.chmod(0o711)
        self._server, self._client = self._folder / "server", self._folder / "client"
        self.runtime = self._folder / "run"
        """For the client's ``XDG_RUNTIME_DIR``: sockets of its connections."""
        for folder in (self._server, self._client, self.runtime):
            folder.mkdir(mode=0o700)
        (self._folder / "bin").mkdir(mode=0o755)
        self.arguments = self._client / "arguments"
        """The command lines of all calls of ``ssh``, one a line."""
        self.config = self._client / "config"
        self.known_hosts = self._client / "known_hosts"
        self.port = free_port()
        self.users: list[User] = []
        token = secrets.token_hex(4)
        self._by_password, self._by_both = f"gw-{token}-p", f"gw-{token}-f"
        for group in (self._by_password, self._by_both):
            _run("groupadd", group)
        self._process: subprocess.Popen[bytes] | None = None
        _keygen(self._client / "key")
        self.new_host_key()
        self.trust()
        self._write_server_config()
        self._write_client()

    def _write_server_config(self) -> None:
        (self._server / "config").write_text(f"""\
ListenAddress 127.0.0.1:{self.port}
HostKey {self._server}/host_key
PidFile none
PermitRootLogin no
UsePAM yes
PasswordAuthentication no
KbdInteractiveAuthentication no
AcceptEnv *
MaxStartups 100
MaxSessions 100
PrintMotd no
Match Group {self._by_password}
  AuthenticationMethods password
  PasswordAuthentication yes
Match Group {self._by_both}
  AuthenticationMethods publickey,keyboard-interactive
  KbdInteractiveAuthentication yes
""")

    def _write_client(self) -> None:
        self.config.touch()
        program = self._folder / "bin/ssh"
        program.write_text(f"""\
#!/bin/sh
printf '%s\\n' "$*" >>{self.arguments}
exec {SSH} -F {self.config} "$@"
""")
        program.chmod(0o755)
        self.arguments.touch()

    @property
    def variables(self) -> dict[str, str]:
        """The environment of programs that reach the host."""
        path = f"{self._folder / 'bin'}:{os.environ['PATH']}"
        return {"PATH": path, "XDG_RUNTIME_DIR": str(self.runtime)}

    def start(self) -> None:
        """Start it and wait until it answers."""
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
        with (self._server / "log").open("ab") as log:
            self._process = subprocess.Popen(
                # It ends with the tests, however they end.
                ["setpriv", "--pdeathsig", "KILL", SSHD, "-D", "-e", "-f", self._server / "config"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

        def answers() -> bool:
            assert self._process is not None and self._process.poll() is None, self.log
            return _answers(self.port)

        until(answers, "the server answers")

    @property
    def log(self) -> str:
        """What the server wrote."""
        return (self._server / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Take the host away: no connection stays, and none is accepted."""
        if self._process is not None:
            self._process.send_signal(signal.SIGSTOP)  # it accepts nobody meanwhile
            self.cut()
            self._process.kill()
            self._process.wait()
            self._process = None

    def cut(self, user: User | None = None) -> int:
        """Break the connections of ``user``, or all; returns how many there were. What runs for
        them there runs on, as after a lost connection."""
        pids = self._of(user)
        for pid in pids:
            for each in (pid, *_descendants(pid)):
                if _program(each) == SSHD:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(each, signal.SIGKILL)
        return len(pids)

    def connections(self, user: User) -> int:
        """How many connections ``user`` has."""
        return len(self._of(user))

    def _of(self, user: User | None) -> list[int]:
        assert self._process is not None
        pids = _children(self._process.pid)
        return [each for each in pids if user is None or f" {user.name} " in _title(each)]

    def new_host_key(self) -> None:
        """Give the server another host key, from its next start on; the client is not told."""
        key = self._server / "host_key"
        for path in (key, key.with_suffix(".pub")):
            path.unlink(missing_ok=True)
        _keygen(key)

    def trust(self) -> None:
        """Let the client know the host's key, and no other."""
        key = (self._server / "host_key.pub").read_text()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {key}")

    def add_user(
        self,
        host: str,
        *,
        shell: str = "/bin/sh",
        password: str | None = None,
        second_factor: bool = False,
        options: str = "",
    ) -> User:
        """Create an account that ``ssh HOST`` logs in to: with the client's key, with the
        ``password``, or with both if that is a second factor. ``options`` are further lines of the
        host in the client's configuration."""
        name = f"gw-{secrets.token_hex(4)}"
        home = self._folder / "home" / name
        home.parent.mkdir(mode=0o755, exist_ok=True)
        groups = []
        if password is not None:
            groups = ["--groups", self._by_both if second_factor else self._by_password]
        create = ["useradd", "--create-home", "--home-dir", str(home), "--skel", "/nowhere"]
        # Not locked: a password of which no text is the hash.
        _run(*create, "--shell", shell, "--password", "*", "--no-log-init", *groups, name)
        account = pwd.getpwnam(name)
        user = User(host, name, home, account.pw_uid)
        self.users.append(user)
        if password is not None:
            _run("chpasswd", text=f"{name}:{password}\n")
        keys = home / ".ssh"
        keys.mkdir(mode=0o700)
        shutil.copy(self._client / "key.pub", keys / "authorized_keys")
        for path in (keys, keys / "authorized_keys"):
            os.chown(path, account.pw_uid, account.pw_gid)
        with self.config.open("a") as config:
            config.write(f"""\
Host {host}
  {options}
  HostName 127.0.0.1
  Port {self.port}
  User {name}
  IdentityFile {self._client}/key
  IdentitiesOnly yes
  UserKnownHostsFile {self.known_hosts}
""")
        return user

    def answers(self, password: str) -> dict[str, str]:
        """The environment of a person who enters ``password`` where ssh asks."""
        program = self._client / "askpass"
        program.write_text(f"#!/bin/sh\necho {password}\n")
        program.chmod(0o755)
        return {"SSH_ASKPASS": str(program), "SSH_ASKPASS_REQUIRE": "force"}

    def hang_up(self) -> None:
        """End the shared connections of clients, from their side."""
        for control in self.runtime.glob("gpuwatch-ssh-*/*"):
            if control.is_socket():
                end = [SSH, "-o", f"ControlPath={control}", "-O", "exit", "any"]
                subprocess.run(end, capture_output=True, check=False)

    def close(self) -> None:
        """End everything that runs there, and remove the accounts and files."""
        self.hang_up()
        self.stop()
        for user in self.users:
            _kill_all(user.number)
            _run("userdel", "--force", user.name)
        for group in (self._by_password, self._by_both):
            _run("groupdel", group)
        shutil.rmtree(self._folder)


def _kill_all(uid: int) -> None:
    def gone() -> bool:
        pids = [pid for pid in _pids() if _owner(pid) == uid and _program(pid)]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return not pids

    until(gone, f"processes of {uid} are left")


def _pids() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _owner(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    return int(status.partition("\nUid:")[2].split()[0])


def _title(pid: int) -> str:
    """``sshd: NAME [priv]`` of a connection's process."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().replace("\0", " ")
    except OSError:
        return ""


def _program(pid: int) -> str | None:
    """The path of the program; ``None`` of a process that is over."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return None


def _children(pid: int) -> list[int]:
    try:
        return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def _descendants(pid: int) -> list[int]:
    return [each for child in _children(pid) for each in (child, *_descendants(child))]


def _keygen(path: Path) -> None:
    _run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpuwatch-test", "-f", str(path))


def _run(*command: str, text: str = "") -> None:
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, (command, done.stderr)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False
