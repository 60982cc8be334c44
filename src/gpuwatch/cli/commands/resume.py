"""Continue an interrupted study with its missing runs, in the order of its plan.

STUDY is the folder of a study, one of its sessions, or its name. Completed runs are kept, failed
ones too. A run that was stopped (Ctrl-C, `gpuwatch stop`) is repeated, and its session kept under
another name; so is one whose recorder died, unless enough was left to complete its session. All
settings are those of the first command; the environment variables are the current ones. The plan
of a study says which commands are run: a study that you did not start needs --trust. Without it the
commands are only printed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from gpuwatch.cli import plan as preview
from gpuwatch.cli.commands import record
from gpuwatch.cli.options import begun, launch
from gpuwatch.cli.place.lookup import sent
from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import ExitCode, UsageError
from gpuwatch.core.text import shell, to_paste
from gpuwatch.places import spec
from gpuwatch.places.placements import Placed
from gpuwatch.recorder.api import NotOwn, check_recorded, resumable
from gpuwatch.recorder.request import Request
from gpuwatch.session import placement
from gpuwatch.session.placement import JobState
from gpuwatch.session.study.outcomes import missing
from gpuwatch.session.study.plan import PLAN, Plan, read, unique


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument(
        "--on", metavar="PLACE", help="of a study sent to Slurm: slurm with other options"
    )
    launch.add_start_arguments(parser)
    parser.add_argument(
        "--trust", action="store_true", help="run the plan's commands, whoever wrote them"
    )
    launch.add_preview_arguments(parser.add_argument)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    folder = folder_of(arguments.study)
    placed = sent(folder)
    if placed is not None:
        return _at_its_place(placed, arguments)
    if arguments.on is not None:
        raise UsageError(f"{folder} runs here", "leave --on out")
    launch.need_linux()
    plan = or_say_commands(resumable, folder, trusted=arguments.trust)
    if not (arguments.plan or arguments.dry_run or plan.settings.programs):
        say("the study has no record of the program's files: changes since then go unnoticed")
    os.chdir(plan.settings.working_directory)
    request = Request(plan, folder.parent, resume=folder, trusted=arguments.trust)
    return record.start(request, arguments)


def _at_its_place(placed: Placed, arguments: argparse.Namespace) -> int:
    """Submit a further attempt at the place that the study was sent to.

    Raises:
        UsageError: it goes on there, or nothing is missing.
    """
    from gpuwatch.cli.place import sending

    folder = Path(placed.study)
    plan = read(folder)
    if not placed.done:
        known = placement.read(folder)
        if known is not None and known.state is JobState.ORPHANED:
            raise UsageError(known.text, known.hint)
        raise UsageError(
            f"{folder} is not over on {placed.place}", f"watch it: {to_paste('attach', folder)}"
        )
    if plan is not None and plan.of_machine:
        raise UsageError(f"{folder} is not a study of a workload", "start it again")
    if plan is None or not missing(folder, plan):
        raise UsageError(f"{folder} is complete", f"its summary: {to_paste('report', folder)}")
    check_recorded(folder)
    if arguments.on is not None:
        placed = replace(placed, place=_other_options(placed.place, arguments.on))
    request = Request(plan, folder.parent, on=(placed.place,), resume=folder)
    begun.check(request, arguments)
    if preview.shown(request, arguments):
        return ExitCode.DONE
    return record.wait_for([sending.again(placed)], request, arguments)


def _other_options(place: str, on: str) -> str:
    """``on``, if it is Slurm with other options than ``place``.

    Raises:
        UsageError: the study would get to another place, where its files are not.
    """
    for each in map(spec.parse, (place, on)):
        if each.kind != "slurm" or "job" in each.options:
            raise UsageError(
                f"a study of {place} is not resumed on {on}",
                "leave --on out; only one that was sent to Slurm takes other options",
            )
    return on


def or_say_commands(readable: Callable[..., Plan], folder: Path, *, trusted: bool) -> Plan:
    """The plan that ``readable`` reads; the commands of one that somebody else wrote are printed.

    Raises:
        UsageError: what ``readable`` raises.
    """
    try:
        return readable(folder, trusted=trusted)
    except NotOwn as error:
        for line in _commands(error.plan):
            say(line)
        raise


def _commands(plan: Plan) -> Iterator[str]:
    """The commands that ``plan`` would run, once for each environment."""
    folder = plan.settings.working_directory
    yield f"in the folder {folder} it would run:" if folder else "it would run:"
    for workload, environment in unique((run.workload, run.environment) for run in plan.runs):
        own = () if workload.kind == "command" else (workload.word,)
        where = [environment.kind, environment.image, environment.python]
        where += [f"mount {mount}" for mount in environment.mounts]
        where += [f"set {name}={value}" for name, value in environment.variables.items()]
        where += ["pull" if environment.pull else None, environment.network]
        place = ", ".join(str(part) for part in where if part)
        yield f"  {' '.join(map(shell, [*own, *workload.arguments]))}   ({place})"
    if plan.settings.dcgm:
        yield f"  dcgmi, which would connect to {plan.settings.dcgm}"


def folder_of(text: str, command: str = "resume") -> Path:
    """The folder of the study that ``text`` names, for ``command``."""
    path = session_lookup.path_of(text)
    if os.path.isdir(path) and (
        os.path.exists(path / PLAN) or not session_lookup.sessions_under(path)
    ):
        return path.resolve()
    folders = list(
        dict.fromkeys(session.resolve().parent for session in session_lookup.sessions(text))
    )
    if len(folders) > 1:
        raise UsageError(
            f"{text} holds {len(folders)} studies",
            f"name one: {to_paste(command, folders[-1])}; "
            f"side by side: {to_paste('compare', text)}",
        )
    return folders[0]
