"""What this machine's runs vary by, and which change so many blocks can find.

One environment is run against itself, in 10 blocks without --blocks: there is no true difference,
so what is seen is noise. Give the steps and the environment of the study that it is for (without
--steps or --epochs 100 steps; the ImageNet networks 15, gcn 200).

  gpuwatch noise mnist-cnn --steps 200
  gpuwatch noise mnist-cnn --steps 200 --env docker
  gpuwatch noise -- python train.py
"""

from __future__ import annotations

import argparse

from gpuwatch.cli.commands import record, study_parts
from gpuwatch.cli.options import launch
from gpuwatch.cli.options.cases import workloads
from gpuwatch.core.errors import UsageError

BLOCKS = 10


def add_arguments(parser: argparse.ArgumentParser) -> None:
    launch.add_workload_arguments(parser)
    study_parts.add_arguments(parser)
    parser.set_defaults(blocks=BLOCKS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if not arguments.workload and not command:
        raise UsageError("nothing to run", "name a workload, or a command of your own behind --")
    texts = arguments.env or ["bare"]
    if len(texts) > 1:
        raise UsageError(
            f"the noise of one environment at a time, not of {len(texts)}",
            "measure each with a command of its own",
        )
    cases = workloads(arguments, command)
    name = ", ".join(case.name for case in cases)
    part = study_parts.part(f"noise of {name}", cases, texts * 2, arguments)
    return record.start(launch.request_of(arguments, [part]), arguments)
