"""Go on with a study that broke off: what is missing of it, in the order of its plan.

STUDY is the folder of a study, one of its sessions, or its name. Runs that took place are kept,
failed ones too. One that was stopped (Ctrl-C, `gpuwatch stop`) is done again, its session kept
under another name; so is one that broke off with its recorder, unless it left all that it takes to
complete its session. Everything is as the first command asked for, the environment variables are
those of now.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from gpuwatch.cli import find, launch, record
from gpuwatch.errors import UsageError
from gpuwatch.recorder.record import Request
from gpuwatch.recorder.resume import resumable
from gpuwatch.recorder.sources import Dcgm
from gpuwatch.session.plan import PLAN, Plan
from gpuwatch.workloads import archive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    record.add_start_arguments(parser)
    parser.add_argument("--plan", action="store_true", help="print what is missing, run nothing")
    launch.add_plan_format(parser.add_argument)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    launch.need_linux()
    folder = _folder(arguments.study)
    plan = resumable(folder)
    os.chdir(str(plan.settings["working_directory"]))
    return record.start(_request(plan, folder), arguments)


def _folder(text: str) -> Path:
    path = Path(text)
    if os.path.isdir(path) and (os.path.exists(path / PLAN) or not find.sessions_under(path)):
        return path.resolve()
    folders = list(dict.fromkeys(each.resolve().parent for each in find.sessions(text)))
    if len(folders) > 1:
        raise UsageError(f"{text} holds {len(folders)} studies", f"name one: {folders[0]}")
    return folders[0]


def _request(plan: Plan, folder: Path) -> Request:
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
        dcgm=Dcgm(host, interval) if host else None,
        seed=plan.seed,
        title=plan.title,
        question=plan.question,
        preset=plan.preset,
        afterwards=plan.settings.get("afterwards"),
        resume=folder,
    )
