"""One connection to a host by the user's own OpenSSH, so that configuration, agent, jump hosts and
known hosts hold.

Everything that runs there is a script on the standard input of ``sh``, whatever the login shell is.
What the login shell prints before it is skipped.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.paths import is_private, locked
from gpuwatch.core.text import clean, shell
from gpuwatch.places.base import NeedsPerson

PATIENCE_SECONDS = 20
"""How long a host may take to answer."""
UNUSED_SECONDS = 300
"""How long our own connection outlives its last use: others of this user's may share it."""
_ALWAYS = (
    *("-o", "ServerAliveInterval=10", "-o", "ServerAliveCountMax=3"),
    *("-o", "ForwardAgent=no", "-o", "ForwardX11=no", "-o", "ClearAllForwardings=yes"),
    *("-o", "RemoteCommand=none"),
)
_LONGEST_GREETING = 1 << 20
"""Bytes that a login shell may print before a script begins."""
_LONGEST_ANSWER = 256 << 20
"""Bytes that a script may print."""
_CHECK_SECONDS = 10.0
_PERSON_HELPS = re.compile(r": Permission denied \(|Host key verification failed")
"""Of ssh's own messages: a person could answer what it asked."""
_KEY_CHANGED = "HOST IDENTIFICATION HAS CHANGED"


@dataclass(frozen=True)
class Answer:
    """What a script printed, and how it ended."""

    code: int
    output: bytes
    errors: str


class Connection:
    """A shared connection to one host: the user's own if there is one, else one of ours."""

    def __init__(self, host: str, patience: int = PATIENCE_SECONDS) -> None:
        """``patience``: how long the host may take to answer, in seconds."""
        self.host = host
        self._patience = patience
        self._socket = _socket_folder() / hashlib.sha256(host.encode()).hexdigest()[:16]
        self._shared: list[str] | None = None

    def connect(self, *, person: bool) -> None:
        """Have a connection. With a ``person`` at the terminal ssh may ask for a password there.

        Raises:
            NotAvailable, NeedsPerson: there is none to be had.
        """
        if shutil.which("ssh") is None:
            raise NotAvailable("there is no ssh here", "install OpenSSH's client")
        if self._alive([]):
            self._shared = []
            return
        ours = ["-o", f"ControlPath={self._socket}"]
        with self._one_at_a_time():
            if not self._alive(ours):
                self._start(ours, person=person)
        self._shared = ours

    @contextlib.contextmanager
    def _one_at_a_time(self) -> Iterator[None]:
        """Of several programs that connect to the host at once, one does and the others use it.

        Raises:
            NotAvailable: another program still waits for its user.
        """
        fd = os.open(f"{self._socket}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        until = time.monotonic() + self._patience
        try:
            while not locked(fd, fcntl.LOCK_EX):
                if time.monotonic() > until:
                    raise NotAvailable(
                        f"another gpuwatch is just connecting to {self.host}",
                        "answer what it asks, or end it",
                    )
                time.sleep(0.1)
            yield
        finally:
            os.close(fd)

    def _start(self, ours: list[str], *, person: bool) -> None:
        master = [
            *("ssh", *ours, "-o", "ControlMaster=yes", "-fN"),
            *("-o", f"ControlPersist={UNUSED_SECONDS}"),
            *("-o", f"ConnectTimeout={self._patience}"),
            *_ALWAYS,
            *("-o", "Compression=yes"),
            *(() if person else ("-o", "BatchMode=yes")),
            *("--", self.host),
        ]
        self._socket.unlink(missing_ok=True)  # of a dead connection
        with tempfile.TemporaryFile() as errors:
            # The connection stays in the background and holds standard error: a pipe would not end.
            try:
                code = subprocess.run(
                    master,
                    stdin=None if person else subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=None if person else errors,
                    timeout=None if person else 2 * self._patience,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                raise self._silent(2 * self._patience) from None
            text = _text(errors)
        if code != 0:
            raise self._refused(text, person=person)

    def _refused(self, text: str, *, person: bool) -> NotAvailable:
        if _KEY_CHANGED in text:
            return NotAvailable(
                f"the host key of {self.host} has changed: it may be another host",
                f"ask why; ssh {shell(self.host)} tells how to accept the new key",
            )
        lines = [line for line in text.splitlines() if line.strip()]
        last = clean(lines[-1]).rstrip(".") if lines else "ssh could not connect"
        what = f"cannot connect to {self.host}" + ("" if person else f": {last}")
        hint = f"try it by hand: ssh {shell(self.host)}"
        if not person and _PERSON_HELPS.search(text):
            return NeedsPerson(what, hint)
        return NotAvailable(what, hint)

    def _silent(self, seconds: float) -> NotAvailable:
        return NotAvailable(
            f"{self.host} did not answer within {seconds:g} s",
            f"try it by hand: ssh {shell(self.host)}",
        )

    def _alive(self, options: list[str]) -> bool:
        check = ["ssh", *options, "-O", "check", "--", self.host]
        try:
            done = subprocess.run(
                check,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=_CHECK_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False
        return done.returncode == 0

    def open(self, script: str, errors: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
        """Run ``script`` there; it reads what is written to the pipe afterwards, and what it prints
        can be read from its very first byte on. Its standard error goes to the file ``errors``.

        Raises:
            NotAvailable: it does not begin.
        """
        assert self._shared is not None, "not connected"
        marker = secrets.token_hex(16)
        process = subprocess.Popen(
            [
                *("ssh", *self._shared, "-T", "-o", "BatchMode=yes", "-o", "ControlMaster=no"),
                # Where the shared connection is lost, ssh makes one for this script alone.
                *("-o", f"ConnectTimeout={self._patience}", *_ALWAYS),
                *("--", self.host, "exec sh"),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if errors is None else errors,
            start_new_session=True,  # Ctrl-C is for gpuwatch, which then ends what runs there
        )
        assert process.stdin is not None and process.stdout is not None
        with contextlib.suppress(OSError):  # the reason is on standard error
            process.stdin.write(framed(script, marker).encode())
            process.stdin.flush()
        greeting = b""
        with _limited(process, 2 * self._patience) as late:
            while (line := process.stdout.readline(4096)).rstrip(b"\r\n") != marker.encode():
                greeting += line
                if not line or len(greeting) > _LONGEST_GREETING:
                    process.kill()
                    process.communicate()
                    if late.is_set():
                        raise self._silent(2 * self._patience)
                    said = _text(errors) or greeting.decode(errors="replace")
                    raise self._refused(said, person=False)
        return process

    def run(self, script: str, data: bytes = b"", *, seconds: float = 60.0) -> Answer:
        """Run ``script`` to its end, with ``data`` on its standard input.

        Raises:
            NotAvailable: it does not begin, takes longer than ``seconds``, or prints too much.
        """
        with tempfile.TemporaryFile() as errors:
            process = self.open(script, errors)
            assert process.stdin is not None and process.stdout is not None
            # Not by communicate(), which misses what was read ahead with the marker.
            feeding = threading.Thread(target=_feed, args=(process.stdin, data), name="ssh-input")
            with _limited(process, seconds) as late:
                feeding.start()
                output = process.stdout.read(_LONGEST_ANSWER + 1)
                if len(output) > _LONGEST_ANSWER:
                    process.kill()
                code = process.wait()
                feeding.join()
            process.stdout.close()
            if late.is_set():
                raise self._silent(seconds)
            if len(output) > _LONGEST_ANSWER:
                raise NotAvailable(
                    f"{self.host} prints more than {_LONGEST_ANSWER >> 20} MiB",
                    f"look what it is: ssh {shell(self.host)}",
                )
            return Answer(code, output, _text(errors))


def framed(script: str, marker: str) -> str:
    """What is written to ``sh``. It is a function, so that a script that is cut off by a lost
    connection runs not at all. The marker stands on a line of its own, also where the last line of
    the login shell's greeting has no end."""
    return f"gpuwatch_script() {{\nprintf '\\n%s\\n' {marker}\n{script}\n}}\ngpuwatch_script\n"


@contextlib.contextmanager
def _limited(process: subprocess.Popen[bytes], seconds: float) -> Iterator[threading.Event]:
    """Kill the process if the block takes longer; the event tells whether that was so."""
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    timer = threading.Timer(seconds, end)
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()
        timer.join()


def _feed(pipe: IO[bytes], data: bytes) -> None:
    with contextlib.suppress(OSError):  # nobody reads it any more
        pipe.write(data)
    with contextlib.suppress(OSError):
        pipe.close()


def _text(file: IO[bytes] | None) -> str:
    """What was written to ``file``."""
    if file is None:
        return ""
    file.seek(0)
    return file.read(_LONGEST_GREETING).decode(errors="replace")


def _socket_folder() -> Path:
    """A private folder with a short name: a socket's path has at most 107 bytes."""
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nowhere")
    home = runtime if runtime.is_dir() and len(str(runtime)) < 40 else Path("/tmp")  # noqa: S108
    folder = home / f"gpuwatch-ssh-{os.geteuid()}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise NotAvailable(f"cannot create {folder}: {error.strerror}", "check it") from error
    if not is_private(folder):
        raise NotAvailable(
            f"{folder} is a link, or open to other users",
            f"check what it is, then: rm -r {shell(folder)}",
        )
    return folder
