"""spython, made safe: it exits the process on errors, prints, and knows one name of the program.

Of spython only what cannot hang is used: its client puts the commands together, and its streaming
reads both streams as one, for whatever is not read in time stops the engine.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.models import JSON
from gpuwatch.core.processes import parents

INSTALL = (
    "install it: sudo dnf install apptainer, sudo add-apt-repository ppa:apptainer/ppa && sudo apt "
    "install apptainer, or as apptainer.org/docs says under Installing"
)

_PRODUCTS = (
    ("apptainer version ", "Apptainer"),
    ("singularity-ce version ", "SingularityCE"),
    ("singularity-pro version ", "SingularityPRO"),
    ("singularity version ", "Singularity"),
    ("", "Singularity"),  # before 3.0 the version stood alone
)
_ENDING_SECONDS = 2.0
"""How long an engine that is broken off has, before it is asked and before it is killed."""
_CHILDREN = Path("/proc/thread-self/children")
_FAILURES = ("FATAL:", "ERROR:")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def program() -> str | None:
    """Path of ``apptainer``, else of ``singularity``; ``None``: neither is on the ``PATH``."""
    return shutil.which("apptainer") or shutil.which("singularity")


def product_and_version() -> tuple[str, str] | None:
    """Such as ``("Apptainer", "1.4.5")``; ``None``: there is none that answers."""
    path = program()
    if path is None:
        return None
    from spython.utils import run_command

    try:
        with _guarded():
            told = run_command([path, "--version"], quiet=True)
    except NotAvailable:
        return None
    text = "".join(told["message"][:1]) if told["return_code"] == 0 else ""
    return parsed(text)


def parsed(text: str) -> tuple[str, str] | None:
    """Product and version of what ``--version`` says; ``None``: it names no version."""
    text = text.strip()
    prefix, product = next(pair for pair in _PRODUCTS if text.startswith(pair[0]))
    version = re.match(r"\d+(\.\d+)*", text[len(prefix) :])
    return (product, version[0]) if version else None


def inspect(image: str | Path) -> dict[str, JSON]:
    """The attributes of an image: ``labels``, ``deffile``, ``environment``, ...

    Raises:
        NotAvailable: it cannot be read, or there is no engine.
    """
    client = _client()
    with _guarded():
        told = client.inspect(str(image), quiet=True)
        attributes = told.get("attributes") if isinstance(told, dict) else None
    if not isinstance(attributes, dict):
        lines = told.get("message", "") if isinstance(told, dict) else ""
        reason = _reason(lines.splitlines() if isinstance(lines, str) else lines)
        raise NotAvailable(f"cannot inspect {image}: {reason}")
    return attributes


def pull(uri: str, target: Path, say: Callable[[str], None]) -> None:
    """Fetch ``uri`` into the SIF file ``target``, which appears when it is whole.

    ``say`` hears each line of the engine, but for the reason of a failure, which is the error's.

    Raises:
        NotAvailable: it could not be had; the reason in one line.
    """
    part = target.with_name(f"{target.name}.part")

    def progress(line: str) -> None:
        if not line.startswith(_FAILURES):
            say(line)

    try:
        _stream("pull", ["--force", str(part), uri], progress, f"cannot fetch {uri}")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def build(
    definition: str | Path, target: Path, say: Callable[[str], None], options: Sequence[str] = ()
) -> None:
    """Build the SIF file ``target``, which appears when it is whole, from a definition file or a
    source such as ``docker-daemon:NAME:TAG``; ``options`` are those of ``build``.

    Raises:
        NotAvailable: it could not be built; the reason in one line.
    """
    part = target.with_name(f"{target.name}.part")
    arguments = ["--force", *options, str(part), str(definition)]
    try:
        _stream("build", arguments, say, f"cannot build from {definition}")
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def _stream(
    action: str, arguments: Sequence[str], say: Callable[[str], None], failing: str
) -> None:
    from spython.utils import stream_command

    command = [*_client()._init_command(action), *arguments]
    lines: list[str] = []
    others = _children()
    try:
        with _errors():
            for line in stream_command(command, output_type="both"):
                text = _COLOURS.sub("", line).strip()
                if text:
                    lines = [*lines[-20:], text]
                    say(text)
    except NotAvailable as error:
        raise NotAvailable(f"{failing}: {_reason(lines) or error.message}") from error
    except BaseException:
        _end(_children() - others)
        raise


def _children() -> set[int]:
    """What this thread started; where the kernel does not list that, what the process did."""
    try:
        return {int(pid) for pid in _CHILDREN.read_text().split()}
    except OSError:
        return {pid for pid, parent in parents().items() if parent == os.getpid()}


def _end(pids: set[int]) -> None:
    """End an engine that was broken off: it would go on by itself.

    It is asked by SIGINT, on which it removes what it has half made; Ctrl-C may have done so.
    """
    for number in (0, signal.SIGINT, signal.SIGKILL):
        deadline = time.monotonic() + _ENDING_SECONDS
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        while pids and time.monotonic() < deadline:
            pids = {pid for pid in pids if not _reaped(pid)}
            time.sleep(0.02)


def _reaped(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True


def _reason(lines: Sequence[str]) -> str:
    """What failed, of what an engine said: its last word of that kind, else its last."""
    cleaned = [_COLOURS.sub("", line).strip() for text in lines for line in text.splitlines()]
    told = [line for line in cleaned if line]
    fatal = [line for line in told if line.startswith(_FAILURES)]
    return re.sub(r"^(FATAL|ERROR):\s*", "", (fatal or told or [""])[-1])


def _client() -> JSON:
    """spython's client, calling the program that is here.

    Raises:
        NotAvailable: there is none.
    """
    path = program()
    if path is None:
        raise NotAvailable("neither apptainer nor singularity is on the PATH", INSTALL)
    from spython.main import get_client

    with _guarded():
        client = get_client(quiet=True)
    # An attribute of the instance: before the method of the class, which says "singularity".
    client._init_command = lambda action, flags=None: [
        path,
        *(flags or ()),
        *([action] if isinstance(action, str) else action),
    ]
    return client


@contextlib.contextmanager
def _guarded() -> Iterator[None]:
    """Like :func:`_errors`, and nothing is printed; not for what calls ``say``, which prints."""
    said = io.StringIO()
    with _errors(said), contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        yield


@contextlib.contextmanager
def _errors(said: io.StringIO | None = None) -> Iterator[None]:
    """What spython does on errors becomes an error; ``said`` holds what it printed.

    Raises:
        NotAvailable: it exited, or the program could not be run or failed.
    """
    try:
        yield
    except subprocess.CalledProcessError as error:
        raise NotAvailable(f"it ended with code {error.returncode}") from error
    except SystemExit as error:
        printed = _reason([said.getvalue()]) if said else ""
        raise NotAvailable(printed or f"spython: exit {error.code}") from error
    except (OSError, ValueError, LookupError) as error:
        raise NotAvailable(str(error)) from error
