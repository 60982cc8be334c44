"""Build the parts of a study from the command line, for ``study``, ``sweep`` and ``noise``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch
from gpuwatch.cli.options.environments import environments
from gpuwatch.cli.parser import Parser
from gpuwatch.core.models import JSON, Workload
from gpuwatch.session.study.plan import Part


def add_arguments(parser: Parser) -> None:
    """The options for running and recording the study."""
    launch.add_recording_arguments(parser)
    launch.add_design_arguments(parser)
    record.add_start_arguments(parser)


def part(
    name: str,
    workloads: Sequence[Workload],
    texts: Sequence[str],
    arguments: argparse.Namespace,
    *,
    sweep: Mapping[str, tuple[JSON, ...]] | None = None,
) -> Part:
    """A part with environments from ``--env`` ``texts`` and the design in ``arguments``.

    Raises:
        UsageError: an environment is invalid, or has an interpreter that no case uses.
    """
    made = Part(
        name=name,
        workloads=tuple(workloads),
        environments=environments(texts, arguments.python, pull=arguments.pull),
        **vars(launch.design(arguments)),
        sweep=dict(sweep or {}),
    )
    return launch.check_interpreter(made)


def runs(part: Part) -> int:
    """The number of runs of a part, warm-up included."""
    blocks = 1 if part.blocks is None else part.blocks + part.warmup_blocks
    return len(part.workloads) * len(part.environments) * blocks
