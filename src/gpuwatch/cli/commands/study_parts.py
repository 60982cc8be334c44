"""What ``study``, ``sweep`` and ``noise`` share: parts of a study from what was asked for."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch
from gpuwatch.cli.options.environments import environments
from gpuwatch.core.models import JSON, Workload
from gpuwatch.session.study.plan import Part


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """How the study is run and recorded."""
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
    """A part with environments as behind ``--env`` and the design that ``arguments`` ask for.

    Raises:
        UsageError: an environment cannot be understood, or has an interpreter for nothing.
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
    """How many runs a part has, warm-up included."""
    blocks = 1 if part.blocks is None else part.blocks + part.warmup_blocks
    return len(part.workloads) * len(part.environments) * blocks
