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
from collections.abc import Iterator
from pathlib import Path

from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch
from gpuwatch.cli.say import say
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core.errors import UsageError
from gpuwatch.core.text import shell
from gpuwatch.hook import archive as hook_archive
from gpuwatch.recorder.api import Request
from gpuwatch.recorder.resume import NotOwn, resumable
from gpuwatch.recorder.sources import Dcgm
from gpuwatch.session.study.plan import PLAN, Plan, unique
from gpuwatch.workloads import archive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    record.add_start_arguments(parser)
    parser.add_argument(
        "--trust", action="store_true", help="run the plan's commands, whoever wrote them"
    )
    launch.add_preview_arguments(parser.add_argument)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    launch.need_linux()
    folder = _folder(arguments.study)
    try:
        plan = resumable(folder, archive.build, trusted=arguments.trust)
    except NotOwn as error:
        for line in _commands(error.plan):
            say(line)
        raise
    if not (arguments.plan or arguments.dry_run or plan.settings.get("programs")):
        say("the study has no record of the program's files: changes since then go unnoticed")
    os.chdir(str(plan.settings["working_directory"]))
    request = _request(plan, folder, trusted=arguments.trust)
    return record.start(request, arguments)


def _commands(plan: Plan) -> Iterator[str]:
    """The commands that ``plan`` would run, once for each environment."""
    yield f"in the folder {plan.settings.get('working_directory')} it would run:"
    for workload, environment in unique((run.workload, run.environment) for run in plan.runs):
        own = () if workload.kind == "command" else (workload.name,)
        where = [environment.kind, environment.image, environment.python]
        where += [f"mount {mount}" for mount in environment.mounts]
        where += [f"set {name}={value}" for name, value in environment.variables.items()]
        where += ["pull" if environment.pull else None, environment.network]
        place = ", ".join(str(part) for part in where if part)
        yield f"  {' '.join(map(shell, [*own, *workload.arguments]))}   ({place})"
    if plan.settings.get("dcgm"):
        yield f"  dcgmi, which would connect to {plan.settings['dcgm']}"


def _folder(text: str) -> Path:
    path = Path(text)
    if os.path.isdir(path) and (
        os.path.exists(path / PLAN) or not session_lookup.sessions_under(path)
    ):
        return path.resolve()
    folders = list(
        dict.fromkeys(session.resolve().parent for session in session_lookup.sessions(text))
    )
    if len(folders) > 1:
        raise UsageError(f"{text} holds {len(folders)} studies", f"name one: {folders[0]}")
    return folders[0]


def _request(plan: Plan, folder: Path, *, trusted: bool) -> Request:
    interval, gpus = plan.settings.get("interval_seconds"), plan.settings.get("gpus")
    host = plan.settings.get("dcgm")
    interval = 0.5 if interval is None else float(interval)
    return Request(
        parts=plan.parts,
        out=folder.parent,
        interval=interval,
        gpus=None if gpus is None else tuple(gpus),
        duration=plan.settings.get("duration_seconds"),
        build_archive=archive.build,
        build_hook=hook_archive.build,
        hook=_hook(plan),
        dcgm=Dcgm(host, interval) if host else None,
        seed=plan.seed,
        title=plan.title,
        question=plan.question,
        preset=plan.preset,
        afterwards=plan.settings.get("afterwards"),
        resume=folder,
        trusted=trusted,
    )


def _hook(plan: Plan) -> tuple[str, ...] | None:
    """As in the request; a plan of before the hook is completed without it."""
    options = plan.settings.get("hook")
    return tuple(options) if isinstance(options, list) else None
