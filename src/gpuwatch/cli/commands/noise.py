"""Measure how much runs vary on this machine, and which change a number of blocks can detect.

One environment is run against itself, by default in 10 blocks: there is no true difference, so any
difference seen is noise. Give the steps and environment of the study that you plan (the default is
100 steps; 15 for the ImageNet networks, 200 for gcn).

  gpuwatch noise mnist-cnn --steps 200
  gpuwatch noise mnist-cnn --steps 200 --env docker
  gpuwatch noise -- python train.py
"""

from __future__ import annotations

import argparse

from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch
from gpuwatch.cli.options.cases import workloads
from gpuwatch.cli.parser import Parser
from gpuwatch.core.errors import UsageError

BLOCKS = 10


def add_arguments(parser: Parser) -> None:
    launch.add_workload_arguments(parser)
    launch.add_study_arguments(parser)
    launch.add_start_arguments(parser)
    parser.set_defaults(blocks=BLOCKS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if not arguments.workload and not command:
        raise UsageError("nothing to run", "name a workload, or a program of your own")
    texts = arguments.env or ["bare"]
    if len(texts) > 1:
        raise UsageError(
            f"noise measures one environment at a time, not {len(texts)}",
            "run one command for each --env",
        )
    cases = workloads(arguments, command)
    name = ", ".join(case.name for case in cases)
    part = launch.part_of(arguments, f"noise of {name}", cases, texts * 2)
    return record.start(launch.request_of(arguments, [part]), arguments)
