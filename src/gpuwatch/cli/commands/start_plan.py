"""Record what is missing of a study that was sent here; started by gpuwatch at another host.

With --look: print whether a run of it goes on although its recorder died.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch
from gpuwatch.cli.say import say
from gpuwatch.core.errors import UsageError
from gpuwatch.recorder import api
from gpuwatch.recorder.allocation import pod_gpus
from gpuwatch.recorder.observer import Observer
from gpuwatch.recorder.request import Request
from gpuwatch.session.study.attempts import ATTEMPT
from gpuwatch.session.study.plan import read
from gpuwatch.session.study.progress import without_recorder


def _runs(text: str) -> frozenset[int]:
    return frozenset(map(int, text.split(",")))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--attempt", required=True, metavar="ID")
    parser.add_argument("--runs", type=_runs, metavar="INDEX,...")
    parser.add_argument("--one-block", action="store_true")
    parser.add_argument("--detach", action="store_true")
    parser.add_argument("--look", action="store_true")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    launch.need_linux()
    folder = arguments.folder.absolute()
    if arguments.look:
        print("started" if without_recorder(folder) is None else "orphaned")
        return 0
    plan = read(folder)
    if plan is None or not ATTEMPT.fullmatch(arguments.attempt):
        raise UsageError(f"{folder} has no plan that can be read", "start the study again")
    if plan.settings.gpus is None:
        plan = replace(plan, settings=replace(plan.settings, gpus=pod_gpus(os.environ)))
    request = Request(
        plan,
        folder.parent,
        resume=folder,
        attempt=arguments.attempt,
        only=arguments.runs,
        one_block=arguments.one_block,
    )
    if arguments.detach:
        return record.report_start(*record.start_detached(request))
    return api.record(request, Observer(say))
