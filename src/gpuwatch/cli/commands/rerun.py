"""Run a recorded run or study again, as a new one.

The same commands, environments, settings and place; blocks in a new order; programs as they are
now. STUDY can be `last`. The plan of a study says which commands are run: a study that you
did not start needs --trust. Without it the commands are only printed.
"""

from __future__ import annotations

import argparse
import os
import random
from dataclasses import replace

from gpuwatch.cli.commands import resume
from gpuwatch.cli.commands import run as run_command
from gpuwatch.cli.options import launch, screen_options
from gpuwatch.cli.place.lookup import sent
from gpuwatch.recorder.api import own_plan
from gpuwatch.recorder.request import Request, plan_of
from gpuwatch.workloads import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY")
    parser.add_argument(
        "--trust", action="store_true", help="run the plan's commands, whoever wrote them"
    )
    launch.add_start_arguments(parser)
    launch.add_order_seed(parser.add_argument)
    launch.add_preview_arguments(parser.add_argument)
    screen_options.add_arguments(parser)
    parser.set_defaults(interval=None)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    launch.need_linux()
    folder = resume.folder_of(arguments.study)
    plan = resume.or_say_commands(own_plan, folder, trusted=arguments.trust)
    os.chdir(plan.settings.working_directory)
    seed = None if plan.seed is None else arguments.order_seed
    drawn = seed is None and plan.seed is not None
    if drawn:
        seed = random.SystemRandom().randrange(options.LARGEST_SEED + 1)
    new = plan_of(plan.parts, plan.settings, seed=seed)
    new = replace(new, title=plan.title, question=plan.question, preset=plan.preset)
    placed = sent(folder)
    on = () if placed is None else (placed.place,)
    return run_command.start(Request(new, folder.parent, drawn=drawn, on=on), arguments)
