"""Send a signal to processes, after a question that names each one's user and whole command line.

PID@START is the process and its start in clock ticks since boot, field 22 of /proc/PID/stat: a PID
that the kernel gave to another process meanwhile is never signalled. PID alone prints its
PID@START, user and command line, and sends nothing (exit code 2). Refused for process 1, for what
this command was started from, and for recorders of gpuwatch, which `gpuwatch stop` ends.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import signal
from collections.abc import Iterator, Sequence
from pathlib import Path

from gpuwatch.cli.say import confirmed, say
from gpuwatch.core import paths
from gpuwatch.core.errors import ExitCode, GpuwatchError, NotAvailable, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.live_process import command_line, command_text
from gpuwatch.core.processes import boot_id, parents, start_time
from gpuwatch.core.text import clean, to_paste
from gpuwatch.recorder import run_folder
from gpuwatch.telemetry.process.identity import identify

SIGNALS = ("TERM", "INT", "HUP", "QUIT", "KILL", "STOP", "CONT", "USR1", "USR2")
_LONGEST = 2000


@dataclass(frozen=True)
class Target:
    """A process, held by a descriptor that no other process can take over."""

    pid: int
    start: int
    """In clock ticks since boot."""
    descriptor: int
    uid: int | None
    user: str
    command: tuple[str, ...]
    """Empty for a kernel thread."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("processes", metavar="PID@START", nargs="+")
    parser.add_argument(
        "--signal", choices=SIGNALS, default="TERM", help="which signal (default: TERM)"
    )
    parser.add_argument(
        "--boot", metavar="ID", help="refuse if the machine was restarted since this boot"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print what would be signalled, and send nothing"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    with contextlib.ExitStack() as stack:
        # All are opened and checked before anything is sent.
        targets = [
            stack.enter_context(_held(text, arguments.boot))
            for text in dict.fromkeys(arguments.processes)
        ]
        texts = [_description(target) for target in targets]
        if arguments.dry_run:
            print("\n".join(texts))
            return ExitCode.DONE
        if not arguments.yes:
            answer = confirmed("\n".join([*texts, f"Send SIG{arguments.signal}?"]))
            if answer is None:
                raise UsageError(texts[0], "add --yes to send the signal")
            if not answer:
                say("no signal was sent")
                return ExitCode.DONE
        failures: list[GpuwatchError] = []
        for target, text in zip(targets, texts, strict=True):
            pid, number = target.pid, signal.Signals[f"SIG{arguments.signal}"]
            try:
                signal.pidfd_send_signal(target.descriptor, number)
            except ProcessLookupError:
                ended = f"process {pid} ended meanwhile"
                failures.append(UsageError(ended, "it needs no signal"))
            except OSError as error:
                failures.append(GpuwatchError(f"cannot signal process {pid}: {error.strerror}"))
            else:
                say(f"sent SIG{arguments.signal} to {text}")
        if failures:
            raise failures[0]
    return ExitCode.DONE


@contextlib.contextmanager
def _held(text: str, boot: str | None) -> Iterator[Target]:
    """The process that ``PID@START`` names, checked; ``boot``: id of the boot that it is from.

    Raises:
        UsageError: no such process, or one that is not signalled from here.
    """
    match = re.fullmatch(r"(\d{1,10})(?:@(\d{1,20}))?", text)
    if not match:
        raise UsageError(f"invalid process {text!r}", "write PID@START")
    pid, start = int(match[1]), int(match[2]) if match[2] else None
    if boot is not None and boot != boot_id():
        raise UsageError(f"process {pid} is from before this machine's last restart", "it is gone")
    target = _opened(pid, start)
    try:
        name = f"{pid}@{target.start}"
        if start is None:
            print(f"{name}: {_description(target)}")
        _check(target)
        if start is None:
            raise UsageError("a PID alone may be another process by now", to_paste("signal", name))
        yield target
    finally:
        os.close(target.descriptor)


def _description(target: Target) -> str:
    command = command_text(target.command) if target.command else "a kernel thread"
    return clean(f"process {target.pid} of {target.user}: {command}", _LONGEST)


def _opened(pid: int, start: int | None) -> Target:
    """The process with this PID that started at ``start``; ``None``: whichever has it now.

    Raises:
        UsageError: no process matches.
        NotAvailable: the system has no descriptors of processes.
    """
    if pid < 1:
        raise UsageError(f"{pid} is not the PID of one process", "write PID@START")
    gone = UsageError(f"process {pid} has ended", "nothing is left to signal")
    try:
        descriptor = os.pidfd_open(pid)
    except (ProcessLookupError, OverflowError):
        raise gone from None
    except (OSError, AttributeError) as error:
        process = _process_of(pid)
        if process != pid:
            raise UsageError(
                f"{pid} is a thread of process {process}", f"name the process: {process}"
            ) from None
        raise NotAvailable(f"no descriptor of process {pid}: {error}", "needs Linux 5.3") from error
    # From here on the descriptor stands for this process, whatever becomes of the PID.
    started = start_time(pid)
    if started is None or start not in (None, started):
        os.close(descriptor)
        other = f"process {pid} began at another time: another process has, or had, this PID"
        raise gone if started is None else UsageError(other, "nothing was signalled")
    identity = identify(pid)
    words = command_line(pid, started)
    return Target(pid, started, descriptor, identity.uid, identity.user or "unknown user", words)


def _process_of(thread: int) -> int:
    """The process that a thread belongs to; itself where that is not known."""
    try:
        status = Path(f"/proc/{thread}/status").read_text(errors="replace")
    except OSError:
        return thread
    found = re.search(r"^Tgid:\s*(\d+)$", status, re.MULTILINE)
    return int(found[1]) if found else thread


def _check(target: Target) -> None:
    """Refuse processes that are not to be signalled from here.

    Raises:
        UsageError: with the reason.
    """
    if target.pid == 1:
        raise UsageError("process 1 is the system's", "name another process")
    ancestors, parent = set(), parents()
    pid = os.getpid()
    while pid and pid not in ancestors:
        ancestors.add(pid)
        pid = parent.get(pid, 0)
    if target.pid in ancestors:
        raise UsageError(
            f"this command was started from process {target.pid}", "end it from another shell"
        )
    if os.geteuid() not in (0, target.uid):
        raise UsageError(
            f"process {target.pid} is {target.user}'s", f"ask {target.user}, or act as that user"
        )
    if _is_gpuwatch(target):
        raise UsageError(
            f"process {target.pid} is gpuwatch itself, or holds a run",
            "end a run: gpuwatch stop SESSION, see gpuwatch sessions",
        )


def _is_gpuwatch(target: Target) -> bool:
    """Whether it is a recorder, a screen, or the shim that holds a run."""
    if _runs_gpuwatch(target.command):
        return True
    home = paths.runs_home()
    for folder in home.iterdir() if home.is_dir() else ():
        recorder = run_folder.recorder_of(folder)
        if recorder is not None and recorder.pid == target.pid and recorder.alive():
            return True
    return False


def _runs_gpuwatch(words: Sequence[str]) -> bool:
    """``gpuwatch``, ``python [-m] gpuwatch``, ``python .../gpuwatch/__main__.py``, or the shim."""
    script = [word for word in words[1:] if not word.startswith("-")][:1]
    return any(
        path.name == "gpuwatch"
        or path.parts[-2:] in (("gpuwatch", "__main__.py"), ("runners", "shim.py"))
        for path in map(Path, [*words[:1], *script])
    )
