"""Run a workload with several values of a parameter: which is fastest, and which are as good.

Give several values separated by commas; several such flags give every combination. A single value
applies to all runs. Each combination runs once per block (default: 3 blocks), by default for 100
steps (15 for the ImageNet networks, 200 for gcn). A value that runs out of memory is not tried
again, nor is any larger batch.

  gpuwatch sweep mnist-cnn --batch-size 16,32,64,128
  gpuwatch sweep resnet18 --dtype float32,tf32,bfloat16 --blocks 5
  gpuwatch sweep alexnet --workers 0,2,4 --env bare --env docker
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.cli.commands import record
from gpuwatch.cli.options import launch
from gpuwatch.cli.options.cases import given_flags
from gpuwatch.cli.parser import Once, Parser
from gpuwatch.core.errors import UsageError
from gpuwatch.core.models import JSON
from gpuwatch.studies import parameters
from gpuwatch.workloads import names, options

BLOCKS = 3
_SUCH_AS = "such as: gpuwatch sweep mnist-cnn --batch-size 16,32,64"
_OWN = (
    "of a program of your own: gpuwatch run --command 'a=...' --command 'b=...' --blocks 10 "
    "(of unlike batch sizes it tells the samples/s, without a verdict)"
)


def add_arguments(parser: Parser) -> None:
    parser.add_argument(
        "workload",
        nargs="*",
        metavar="WORKLOAD",
        help=f"one of {', '.join(names.known())}, torchvision:MODEL",
    )
    launch.add_study_arguments(parser)
    launch.add_start_arguments(parser)
    parser.set_defaults(blocks=BLOCKS)
    flags = parser.add_argument_group("workload", "flags as for `gpuwatch run`")
    add = parser.listed(flags.add_argument, action=Once)
    for name in options.FLAGS:
        if name in parameters.SWITCHES:
            add(parameters.flag(name), action="store_true")
        else:
            several = name in parameters.SWEEPABLE
            add(parameters.flag(name), metavar="VALUE[,VALUE...]" if several else "VALUE")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if command:
        raise UsageError(
            "sweep varies the flags of gpuwatch's own workloads, not those of a command", _OWN
        )
    if len(arguments.workload) != 1:
        given = f"not {len(arguments.workload)}" if arguments.workload else "and none was named"
        own = any(Path(word).suffix == ".py" for word in arguments.workload)
        raise UsageError(f"sweep takes one workload, {given}", _OWN if own else _SUCH_AS)
    fixed, sweep = axes(arguments)
    if not sweep:
        raise UsageError("no flag has several values", _SUCH_AS)
    (name,) = arguments.workload
    try:
        names.check(name)
    except ValueError as error:
        raise UsageError(str(error), "see `gpuwatch sweep --help`") from None
    parameters.check_size(sweep, "sweep")
    part = launch.part_of(
        arguments,
        ", ".join([name, *(axis.replace("_", " ") for axis in sweep)]),
        parameters.cases(name, fixed, sweep, "sweep"),
        arguments.env or ["bare"],
        sweep,
    )
    return record.start(launch.request_of(arguments, [part]), arguments)


def axes(arguments: argparse.Namespace) -> tuple[dict[str, JSON], dict[str, tuple[JSON, ...]]]:
    """The parameters with one value, and those with several.

    Raises:
        UsageError: a value is invalid, or is given twice.
    """
    fixed: dict[str, JSON] = {}
    sweep: dict[str, tuple[JSON, ...]] = {}
    for name, given in given_flags(arguments).items():
        if given is True:
            fixed[name] = True
            continue
        texts = given.split(",") if name in parameters.SWEEPABLE else [given]
        try:
            values = [parameters.value_of(name, text.strip()) for text in texts]
        except ValueError as error:
            what = f"{parameters.flag(name)}: {error}"
            raise UsageError(what, "see `gpuwatch run --help`") from None
        if len(values) > 1:
            sweep[name] = parameters.axis(name, values, "sweep")
        else:
            fixed[name] = parameters.checked(name, values[0], "sweep")
    return fixed, sweep
