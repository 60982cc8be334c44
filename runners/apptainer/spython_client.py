"""A safe wrapper of spython, which exits the process on errors, prints, and knows one program name.

Uses only the parts of spython that cannot hang: its streaming reads both streams as one, because an
unread stream would block the engine.
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
from gpuwatch.core.processes import identify, parents

INSTALL = (
    "install it: sudo dnf install apptainer, sudo add-apt-repository ppa:apptainer/ppa && sudo apt "
    "install apptainer, or as apptainer.org/docs says under Installing"
)

_PRODUCTS = (
    ("apptainer version ", "Apptainer"),
    ("singularity-ce version ", "SingularityCE"),
    ("singularity-pro version ", "SingularityPRO"),
    ("singularity version ", "Singularity"),
    ("", "Singularity"),  # before 3.0 only the version was printed
)
_ENDING_SECONDS = 2.0
"""How long an aborted engine may take before SIGINT, and again before SIGKILL."""
_CHILDREN = Path("/proc/thread-self/children")
_FAILURES = ("FATAL:", "ERROR:")
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def program() -> str | None:
    """Path of ``apptainer``, else of ``singularity``; ``None`` if neither is on the ``PATH``."""
    return shutil.which("apptainer") or shutil.which("singularity")


def product_and_version() -> tuple[str, str] | None:
    """Such as ``("Apptainer", "1.4.5")``; ``None`` if no engine responds."""
    path = program()
    if path is None:
        return None
    from spython.utils import run_command

    try:
        output = io.StringIO()
        with (
            _errors(output),
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(output),
        ):
            answer = run_command([path, "--version"], quiet=True)
    except NotAvailable:
        return None
    text = "".join(answer["message"][:1]) if answer["return_code"] == 0 else ""
    return parsed(text)


def parsed(text: str) -> tuple[str, str] | None:
    """Product and version from the output of ``--version``; ``None`` if it has no version."""
    text = text.strip()
    prefix, product = next(pair for pair in _PRODUCTS if text.startswith(pair[0]))
    version = re.match(r"\d+(\.\d+)*", text[len(prefix) :])
    return (product, version[0]) if version else None


def pull(uri: str, target: Path, say: Callable[[str], None]) -> None:
    """Fetch ``uri`` into the SIF file ``target``, which appears once it is complete.

    ``say`` gets each line of the engine, except the reason of a failure, which the error carries.

    Raises:
        NotAvailable: it could not be fetched; with the reason on one line.
    """

    def progress(line: str) -> None:
        if not line.startswith(_FAILURES):
            say(line)

    _stream(["pull"], target, uri, progress, f"cannot fetch {uri}")


def build(
    definition: str | Path, target: Path, say: Callable[[str], None], options: Sequence[str] = ()
) -> None:
    """Build the SIF file ``target``, which appears once it is complete, from a definition file or a
    source such as ``docker-daemon:NAME:TAG``; ``options`` are those of ``build``.

    Raises:
        NotAvailable: it could not be built; with the reason on one line.
    """
    _stream(["build", *options], target, definition, say, f"cannot build from {definition}")


def _stream(
    action: Sequence[str],
    target: Path,
    source: str | Path,
    say: Callable[[str], None],
    failing: str,
) -> None:
    path = program()
    if path is None:
        raise NotAvailable("neither apptainer nor singularity is on the PATH", INSTALL)
    from spython.utils import stream_command

    part = target.with_name(f"{target.name}.part")
    command = [path, *action, "--force", str(part), str(source)]
    lines: list[str] = []
    before = _children()
    try:
        with _errors():
            for line in stream_command(command, output_type="both"):
                text = _COLOURS.sub("", line).strip()
                if text:
                    lines = [*lines[-20:], text]
                    say(text)
        part.replace(target)
    except NotAvailable as error:
        raise NotAvailable(f"{failing}: {_reason(lines) or error.message}") from error
    except BaseException:
        engines = _children() - before
        others = [found for pid in below(engines) if (found := identify(pid)) is not None]
        _end(engines)
        for process in others:  # what the image's commands run outlives the engine
            with contextlib.suppress(ProcessLookupError):
                if process.alive():
                    os.kill(process.pid, signal.SIGKILL)
        raise
    finally:
        part.unlink(missing_ok=True)


def _children() -> set[int]:
    """Children of this thread, or of the process if the kernel does not list them per thread."""
    try:
        return {int(pid) for pid in _CHILDREN.read_text().split()}
    except OSError:
        return {pid for pid, parent in parents().items() if parent == os.getpid()}


def below(pids: set[int]) -> set[int]:
    """All descendants of these processes."""
    known, found = parents(), set(pids)
    while more := {pid for pid, parent in known.items() if parent in found} - found:
        found |= more
    return found - pids


def _end(pids: set[int]) -> None:
    """End an aborted engine, which would otherwise carry on.

    SIGINT makes it remove unfinished files; Ctrl-C may already have sent one.
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
    """The reason of a failure: the engine's last error line, else its last line."""
    cleaned = [_COLOURS.sub("", line).strip() for text in lines for line in text.splitlines()]
    lines_left = [line for line in cleaned if line]
    fatal = [line for line in lines_left if line.startswith(_FAILURES)]
    return re.sub(r"^(FATAL|ERROR):\s*", "", (fatal or lines_left or [""])[-1])


@contextlib.contextmanager
def _errors(output: io.StringIO | None = None) -> Iterator[None]:
    """Translate spython's reactions to errors; ``output`` holds them.

    Raises:
        NotAvailable: spython exited, or the program failed or could not be executed.
    """
    try:
        yield
    except subprocess.CalledProcessError as error:
        raise NotAvailable(f"it ended with code {error.returncode}") from error
    except SystemExit as error:
        printed = _reason([output.getvalue()]) if output else ""
        raise NotAvailable(printed or f"spython: exit {error.code}") from error
    except (OSError, ValueError, LookupError) as error:
        raise NotAvailable(str(error)) from error
