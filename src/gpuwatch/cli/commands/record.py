"""Record a workload without a screen, in the foreground. Without WORKLOAD: record the machine.

Ctrl-C, SIGTERM and a hang-up stop the workload and end the recording cleanly; a second one, more
than a second later, does so at once. The summary goes to standard output and the study's folder.
"""

from __future__ import annotations

import argparse
import errno
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli import plan as preview
from gpuwatch.cli.options import begun, joining, launch
from gpuwatch.cli.parser import Parser
from gpuwatch.cli.say import give_up_output, put, ring, say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.cli.study_result import exit_code_of_run
from gpuwatch.core.errors import ExitCode, UsageError
from gpuwatch.core.models import JSON, mapping, sequence
from gpuwatch.core.text import shell, to_paste
from gpuwatch.own_command import CAPSULE, OWN_COMMAND
from gpuwatch.places import placements
from gpuwatch.recorder.api import record
from gpuwatch.recorder.observer import Observer, detach
from gpuwatch.recorder.request import Request
from gpuwatch.session.reading.reader import read_meta
from gpuwatch.session.reading.status import SUMMARY_OF, State, status, takes_over
from gpuwatch.session.study.plan import Plan, read
from gpuwatch.session.study.short_name import short_name
from gpuwatch.session.study.study_folder import sessions_in

if TYPE_CHECKING:
    from gpuwatch.places.placements import Placed

_LAST_WORDS, _SEARCHED = 10, 300
_NO_MODULE, _MISSING = "ModuleNotFoundError: ", re.compile(r"No such file or directory: '(.+)'")
"""Lines of standard error that are printed, and among which the error is sought."""
_LONG_SECONDS = 30.0
"""A terminal is told of the end of what took longer."""
_ECHO_SECONDS = 10.0
"""For so long what passes a run's output on may still write after its end."""
_TAKE_INPUT = ("bare", "apptainer", "charliecloud")
"""Environments that pass standard input on."""
_READ_ONLY = os.strerror(errno.EROFS)


def add_arguments(parser: Parser) -> None:
    launch.add_arguments(parser)
    launch.add_start_arguments(parser)
    parser.add_argument(
        "--echo",
        action="store_true",
        help="pass the output of a single run on to standard error, as `run` does without a "
        "terminal",
    )
    parser.add_argument("--while-pid", type=int, metavar="PID", help=argparse.SUPPRESS)
    parser.add_argument("--joined-job", metavar="ID", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    request = replace(launch.request(arguments, command), while_pid=arguments.while_pid)
    if arguments.joined_job is not None:
        request = replace(request, plan=joining.joined(request.plan, arguments.joined_job))
    plan, afar = request.plan, arguments.detach or request.on
    if arguments.echo and (afar or len(plan.runs) > 1 or plan.of_machine):
        raise UsageError(
            "--echo is for one run, here and in the foreground",
            "leave it out; `gpuwatch log --follow SESSION` prints the output of any run",
        )
    return start(request, arguments, echo=arguments.echo)


def start(request: Request, arguments: argparse.Namespace, *, echo: bool = False) -> int:
    """Record ``request`` without a screen; returns the exit code. ``echo``: the output of a single
    run goes to standard error, too.

    ``arguments`` has what :func:`launch.add_start_arguments` and
    :func:`launch.add_preview_arguments` add.
    """
    begun.check(request, arguments)
    if preview.shown(request, arguments):
        return ExitCode.DONE
    plan, since = request.plan, time.monotonic()
    if not arguments.quiet:
        preview.announce(request)
    ends = plan.settings.duration_seconds or (request.on and all(map(joining.job_of, request.on)))
    if arguments.detach and plan.of_machine and not ends:
        raise UsageError(
            "a recording of the machine in the background would never end", "add --duration TIME"
        )
    if arguments.detach or request.on:
        takes_input(plan, foreground=False)
    if request.on:
        from gpuwatch.cli.place.sending import send

        return wait_for(send(request), request, arguments)
    if arguments.detach:
        code, text = start_detached(request)
        if code is ExitCode.DONE:
            begun.begun(Path(text).parent, plan, arguments)
        return report_start(code, text)
    if not arguments.quiet:
        report_orphans()
    alone = len(plan.runs) == 1
    request = replace(request, takes_input=takes_input(plan, foreground=True))
    ends = plan.settings.duration_seconds or request.while_pid is not None or not plan.of_machine
    terminal = _Terminal(
        alone=alone,
        quiet=arguments.quiet,
        echo=echo and alone and not plan.of_machine,
        begun=partial(begun.begun, plan=plan, arguments=arguments),
        hint="" if ends else "; Ctrl-C ends it, or --duration TIME",
    )
    code = record(request, terminal)
    if terminal.echo is not None:
        try:
            terminal.echo.wait(_ECHO_SECONDS)
        except subprocess.TimeoutExpired:  # its reader waits, or the end could not be written
            terminal.echo.terminate()
            path = terminal.sessions[0]
            say(f"not all of its output was passed on: {to_paste('log', short_name(path))}")
    if code is not ExitCode.DONE:
        last_words(
            terminal.sessions, told=terminal.echo is not None, named=alone and not arguments.quiet
        )
    refused = alone and code in (ExitCode.USAGE, ExitCode.NOT_AVAILABLE)
    if not arguments.quiet and not refused and terminal.study is not None:
        print_summary(terminal.study, terminal.summary)
    _say_afterwards(plan, code, arguments)
    if not arguments.quiet and time.monotonic() - since > _LONG_SECONDS:
        ring(f"{', '.join(dict.fromkeys(run.workload.name for run in plan.runs))} is over")
    return code


def _say_afterwards(plan: Plan, code: int, arguments: argparse.Namespace) -> None:
    afterwards = plan.settings.afterwards
    if afterwards and code != ExitCode.INTERRUPTED and not arguments.quiet:
        say(afterwards.strip())


def wait_for(sent: Sequence[Placed], request: Request, arguments: argparse.Namespace) -> int:
    """Wait for the end of studies that were sent to places, unless ``--detach`` is given; returns
    their exit code."""
    from gpuwatch.cli.place.watching import until_over

    folders = [Path(placed.study) for placed in sent]
    for folder in folders:
        begun.begun(folder, request.plan, arguments)
    if arguments.detach:
        for folder in folders:
            put(str(folder))
        return ExitCode.DONE
    code = until_over(sent)
    if arguments.quiet:
        return code
    for folder in folders:
        if code != ExitCode.NOT_AVAILABLE or sessions_in(folder):  # why nothing ran is told
            tell_end(folder, code)
    if len(folders) > 1:
        say(f"side by side: {to_paste('compare --across-devices', *folders)}")
    _say_afterwards(request.plan, code, arguments)
    return code


class _Terminal(Observer):
    """Tells people at a terminal what a recorder in the foreground does."""

    def __init__(
        self, *, alone: bool, quiet: bool, echo: bool, begun: Callable[[Path], None], hint: str
    ) -> None:
        """``alone``: it is the only run; ``quiet``: show problems only; ``echo``: also its output;
        ``begun``: called with the study's folder, once; ``hint``: how it ends."""
        super().__init__(say)
        self._alone, self._quiet, self._begun, self._hint = alone, quiet, begun, hint
        self._echo = echo
        self.echo: subprocess.Popen[bytes] | None = None
        """The process that passes the run's output on."""
        self.study: Path | None = None
        self.sessions: list[Path] = []
        self.summary = ""

    def study_created(self, folder: Path) -> None:
        self.study = folder

    def next_run(self, text: str) -> None:
        if not self._quiet:
            self.message(text)

    reached = next_run

    def session_created(self, path: Path) -> None:
        self.sessions.append(path)
        if len(self.sessions) == 1:
            self._begun(path.parent)
        if not self._quiet and (self._alone or len(self.sessions) == 1):
            self.message(f"recording to {path if self._alone else path.parent}{self._hint}")
        if self._echo:
            # A process of its own: a reader of standard error that waits holds up no recorder.
            words = [*OWN_COMMAND, "log", "--follow", str(path)]
            self.echo = subprocess.Popen(words, stdout=2, start_new_session=True)

    def summary_written(self, text: str) -> None:
        self.summary = text


def last_words(sessions: Iterable[Path], *, told: bool, named: bool) -> None:
    """Print the last lines that runs that failed wrote to stderr, or those before what torchrun
    says of the error, if they are not ``told``, and where the rest is, if it is not ``named``
    later; what several ended with only once."""
    from gpuwatch.analysis.summary.failure import cause_in
    from gpuwatch.cli.commands import log

    seen: list[list[str]] = []
    # A failed start has been reported already.
    for path in (each for each in sessions if exit_code_of_run(each) == ExitCode.RUN_FAILED):
        lines = [*deque(log.read(path, "stderr"), maxlen=_SEARCHED)]
        cause = re.sub(r"^rank \d+: ", "", cause_in(lines))
        ends = [at for at, line in enumerate(lines, 1) if cause and cause in line]
        if ends and ends[-1] <= len(lines) - _LAST_WORDS:
            del lines[ends[-1] :]
        del lines[:-_LAST_WORDS]
        if lines in seen:
            continue
        seen.append(lines)
        for line in lines if not told else ():
            print(f"  {line}", file=sys.stderr)
        if any(_READ_ONLY in line for line in lines):
            say("containers see your folder read-only; mount=.:rw in --env makes it writable")
        placed, missing = placements.of_study(path.parent), _MISSING.search(cause)
        if placed is None and _NO_MODULE in cause and (python := _python_of(read_meta(path))):
            say(python)
        if placed and placed.work and (plan := read(path.parent)) and missing:
            working = plan.settings.working_directory
            if Path(working, missing[1]).exists():
                say(f"it is here: only {working} was sent, without what git ignores")
        if not named:
            say(f"full output: {to_paste('log', short_name(path))}")


def _python_of(meta: Mapping[str, JSON]) -> str:
    """Which Python a bare command ran with, where it names none; empty: it does, or is another."""
    environment, launch = mapping(meta.get("environment")), mapping(meta.get("launch"))
    word = str((*sequence(launch.get("command")), "")[0])
    if environment.get("kind") != "bare" or not re.fullmatch(r"python[\d.]*|torchrun", word):
        return ""
    path = shutil.which(word, path=mapping(environment.get("variables")).get("PATH"))
    other = "; another: --env bare,python=PATH" if word.startswith("python") else ""
    return f"{word} was {path}{other}"


def report_orphans() -> None:
    """List runs whose recorder died, with the commands to record or end them."""
    for label, name in session_lookup.orphans():
        say(f"{label} has lost its recorder: {takes_over(name)}")


def takes_input(plan: Plan, *, foreground: bool) -> bool:
    """Whether the program of ``plan`` gets what is piped into this command, which says so where
    it does not. A terminal is passed on to none: its prompts would not be seen."""
    runs = plan.runs
    try:
        mode = os.fstat(0).st_mode
    except OSError:  # it is closed
        return False
    piped = stat.S_ISFIFO(mode) or stat.S_ISREG(mode) or stat.S_ISSOCK(mode)
    if not piped or all(run.workload.kind != "command" for run in runs):
        return False
    if foreground and len(runs) == 1 and runs[0].environment.kind in _TAKE_INPUT:
        return True
    say(
        "standard input is not passed on: --record in the foreground gives it to the program of "
        f"one run ({', '.join(_TAKE_INPUT)})"
    )
    return False


def start_detached(request: Request) -> tuple[ExitCode, str]:
    """Start a recorder in the background; returns the first session's path, or the error."""
    return detach(partial(record, request), say)


def report_start(code: ExitCode, text: str) -> int:
    """Print the outcome of starting a recorder in the background; returns ``code``."""
    if text and code is ExitCode.DONE:
        put(text)
    elif text:
        print(text, file=sys.stderr)
    return code


def tell_end(folder: Path, code: int) -> None:
    """Print the summary of a study that was not recorded by this process, and its last words where
    its exit code ``code`` says that it failed."""
    sessions = sessions_in(folder)
    if code != ExitCode.DONE:
        last_words(sessions, told=False, named=len(sessions) == 1)
    print_summary(folder)


def print_summary(folder: Path, summary: str = "") -> None:
    """Print a study's short summary on stdout, and on stderr the command that shows the rest.

    ``summary`` is the text if it is known already. A capsule has neither.
    """
    if CAPSULE is not None:
        return
    try:
        sys.stdout.write(summary)
        sys.stdout.flush()
    except BrokenPipeError:
        give_up_output()  # the exit code is still that of the run
    if not summary:
        report = [*OWN_COMMAND, "report", "--format", "table", "--short"]
        env = {**os.environ, SUMMARY_OF: str(os.getpid())}
        subprocess.run([*report, str(folder)], env=env, check=False)
    plan = read(folder)
    sessions = sessions_in(folder)
    if len(sessions) == 1:
        name = short_name(sessions[0])
        ended = status(read_meta(sessions[0]), sessions[0]).state
        if ended not in (State.FINISHED, State.STOPPED):
            say(f"full output: {to_paste('log', name)}")
        say(f"all figures: {to_paste('show --all', name)}")
    elif plan is not None and any(part.blocks for part in plan.parts):
        why = to_paste("compare", short_name(folder))
        say(f"why: {why}; to send: {shell(folder / 'summary.html')}")
    elif sessions:
        say(f"all figures: {to_paste('compare', short_name(folder))}")
