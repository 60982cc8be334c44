"""The arguments that ``run`` and ``--record`` share, and the request they make."""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.cli.options.cases import long_enough, workloads
from gpuwatch.cli.options.environments import environments
from gpuwatch.core import paths
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import LONGEST_INTERVAL, SHORTEST_INTERVAL
from gpuwatch.core.text import shell
from gpuwatch.recorder.api import Request
from gpuwatch.recorder.sources import Dcgm
from gpuwatch.session.study.plan import MARGIN, Part, unique
from gpuwatch.session.study.plan_file import LARGEST_MARGIN, MOST_BLOCKS, SMALLEST_MARGIN
from gpuwatch.workloads import archive, names, options

_LONGEST_REST = 3600.0
QUICK, RIGOROUS = 3, 20
"""Blocks of ``--quick`` and ``--rigorous``."""
COOL_DOWN = 2.0
"""Seconds of rest before a run in blocks, unless asked otherwise."""
MOST_RUNS = 2000
_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class Design:
    """How a part is to be run: the fields of ``session.study.plan.Part`` of these names."""

    blocks: int | None
    warmup_blocks: int
    margin: float
    cool_down: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """All that ``run`` and ``--record`` take."""
    add_workload_arguments(parser)
    add_recording_arguments(parser)
    add_design_arguments(parser)


def add_workload_arguments(parser: argparse.ArgumentParser) -> None:
    """What to run: names of workloads, and their flags."""
    parser.add_argument(
        "workload",
        nargs="*",
        metavar="WORKLOAD",
        help=f"{', '.join(names.known())}, torchvision:MODEL; or a command of yours behind --",
    )
    options.add_arguments(parser)


def add_recording_arguments(parser: argparse.ArgumentParser) -> None:
    """Where to run it, what to watch, and where the study goes."""
    add = parser.add_argument_group("recording").add_argument
    add("--out", type=_folder, metavar="DIR", help="where the study goes (default: XDG data home)")
    add(
        "--interval",
        type=seconds,
        default=0.5,
        metavar="SECONDS",
        help="between samples, 0.01 to 60 (default: 0.5)",
    )
    add(
        "--duration",
        type=seconds,
        metavar="TIME",
        help="stop each run after this time, such as 90s or 5m",
    )
    add(
        "--gpus",
        metavar="INDEX|UUID,...",
        help="the GPUs to watch and to use (default: all); none: use none, watch all",
    )
    add(
        "--dcgm",
        nargs="?",
        const="localhost",
        type=_host_engine,
        metavar="HOST[:PORT]",
        help="measure bandwidth and pipe activity of GPUs before Hopper through DCGM's host engine "
        "(--dcgm=HOST[:PORT]; default: localhost:5555); keeps ncu and nsys out meanwhile",
    )
    add(
        "--env",
        action="append",
        metavar="KIND[=IMAGE]",
        help="environment, repeatable (default: bare): KIND[=IMAGE][,python=PATH]"
        "[,mount=SRC:DST[:rw]][,shm=SIZE][,memory=SIZE][,network=host|bridge|none]",
    )
    add("--python", metavar="PATH", help="interpreter of the bare environment")
    add("--pull", action="store_true", help="fetch images that are not here")


def add_design_arguments(parser: argparse.ArgumentParser) -> None:
    """In which blocks and in what order."""
    group = parser.add_argument_group("study")
    blocks = group.add_mutually_exclusive_group()
    blocks.add_argument(
        "--blocks",
        type=_blocks,
        metavar="N",
        help="repeat everything in N blocks, in random order, after a warm-up block (7 do for "
        "most questions; without: each once, and no verdict); small workloads take 100 steps then, "
        "without --steps or --epochs",
    )
    blocks.add_argument(
        "--quick", action="store_true", help=f"{QUICK} blocks: describes, is no verdict"
    )
    blocks.add_argument("--rigorous", action="store_true", help=f"{RIGOROUS} blocks")
    group.add_argument(
        "--margin",
        type=margin,
        metavar="PERCENT",
        help="change of the step time that does not matter, such as 0.5%% (default: 1%%)",
    )
    group.add_argument(
        "--order-seed",
        type=options.seed_value,
        metavar="N",
        help="of the order within the blocks (default: drawn, and recorded)",
    )
    group.add_argument(
        "--cool-down",
        type=_rest,
        metavar="TIME",
        help="rest before every run but the first (default: 2s with blocks, else none)",
    )
    group.add_argument("--plan", action="store_true", help="print the order, and run nothing")
    add_plan_format(group.add_argument)


def add_plan_format(add: Callable[..., object]) -> None:
    """How ``plan_preview.shown`` prints; ``add`` is a parser's ``add_argument``."""
    add("--format", choices=("table", "json"), help="of --plan (default: table)")


def _blocks(text: str) -> int:
    count = options.positive_int(text)
    if count > MOST_BLOCKS:
        raise argparse.ArgumentTypeError(f"must be at most {MOST_BLOCKS}, not {text}")
    return count


def margin(text: str) -> float:
    """A margin such as ``1%`` or ``0.01``, as a share: 0.001 to 0.5."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?(%?)", text.strip())
    value = float(found[1]) / (100 if found[2] else 1) if found else 0.0
    if not SMALLEST_MARGIN <= value <= LARGEST_MARGIN:
        raise argparse.ArgumentTypeError(
            f"{text!r} is no margin from 0.1% to 50%: write 1%, 0.5% or 0.01"
        )
    return value


def _rest(text: str) -> float:
    value = 0.0 if re.fullmatch(r"0+(\.0*)?(ms|min|[smh]?)", text.strip()) else seconds(text)
    if value > _LONGEST_REST:
        raise argparse.ArgumentTypeError(f"{text!r} is too long: at most an hour")
    return value


def design(arguments: argparse.Namespace) -> Design:
    """What ``--blocks``, ``--quick``, ``--rigorous``, ``--margin`` and ``--cool-down`` ask for."""
    blocks = QUICK if arguments.quick else RIGOROUS if arguments.rigorous else arguments.blocks
    rest = arguments.cool_down
    return Design(
        blocks=blocks,
        warmup_blocks=0 if blocks is None else 1,
        margin=MARGIN if arguments.margin is None else arguments.margin,
        cool_down=rest if rest is not None else 0.0 if blocks is None else COOL_DOWN,
    )


def _folder(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("names no folder: leave --out away for the default one")
    return Path(text)


def _host_engine(text: str) -> str:
    """``HOST[:PORT]`` or ``unix://SOCKET``; what stands behind a bare ``--dcgm`` is no host."""
    if text in names.known() or text.startswith("torchvision:"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is a workload: name it before --dcgm, or write --dcgm=localhost"
        )
    good = re.fullmatch(r"unix://\S+|\[[0-9a-fA-F:]+\](:\d+)?|[\w.-]+(:\d+)?", text)
    if not good or text.startswith("-"):
        raise argparse.ArgumentTypeError(f"{text!r} is no HOST[:PORT]: write --dcgm=localhost:5555")
    return text


def seconds(text: str) -> float:
    """A time such as ``0.5``, ``500ms``, ``90s``, ``5m``, ``2h``, in seconds."""
    found = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(ms|min|[smhd]?)", text.strip())
    if not found or float(found[1]) <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is no time: write 0.5, 500ms, 90s, 5m or 2h")
    return float(found[1]) * _UNITS[found[2]]


def need_linux() -> None:
    """Raises ``NotAvailable`` elsewhere."""
    if sys.platform != "linux":
        raise NotAvailable("recording needs Linux", "look at saved sessions: gpuwatch sessions DIR")


def request(arguments: argparse.Namespace, command: tuple[str, ...]) -> Request:
    """What the command line of ``run`` and ``--record`` asks for.

    Raises:
        UsageError: it asks for something unknown or contradictory.
        NotAvailable: this is not Linux.
    """
    need_linux()
    cases, asked = workloads(arguments, command), design(arguments)
    if asked.blocks is not None and cases[0].kind == "machine":
        raise UsageError(
            "--blocks without a workload: the machine alone is recorded once",
            "name a workload, or a command of your own behind --",
        )
    part = Part(
        name=", ".join(case.name for case in cases),
        workloads=cases,
        environments=environments(arguments.env or ["bare"], arguments.python, pull=arguments.pull),
        **vars(asked),
    )
    return request_of(arguments, [check_interpreter(part)])


def request_of(
    arguments: argparse.Namespace,
    parts: Sequence[Part],
    *,
    title: str | None = None,
    question: str | None = None,
    preset: str | None = None,
) -> Request:
    """The request for ``parts``, recorded as the rest of ``arguments`` says.

    ``arguments`` has what :func:`add_recording_arguments` and :func:`add_design_arguments` add. The
    order's seed is drawn where a part has blocks and none was given, and runs in blocks are long
    enough for a steady state unless it says how long.

    Raises:
        UsageError: something is out of range or contradicts itself.
        NotAvailable: this is not Linux.
    """
    need_linux()
    if not SHORTEST_INTERVAL <= arguments.interval <= LONGEST_INTERVAL:
        raise UsageError(
            f"--interval {arguments.interval:g} is out of range",
            f"choose from {SHORTEST_INTERVAL:g} to {LONGEST_INTERVAL:g} seconds",
        )
    cases = [case for part in parts for case in part.workloads]
    if arguments.dcgm and any(case.parameters.get("counters") for case in cases):
        raise UsageError(
            "--dcgm holds the counters that ncu needs for --counters", "give one of them"
        )
    for part in parts:
        twice = [case.name for case in unique(part.workloads) if part.workloads.count(case) > 1]
        if part.blocks is not None and twice:
            raise UsageError(
                f"{twice[0]} is asked for twice in the same way", "name it once: blocks repeat it"
            )
    parts = [
        part if part.blocks is None else replace(part, workloads=long_enough(part.workloads))
        for part in parts
    ]
    drawn = random.SystemRandom().randrange(options.LARGEST_SEED + 1)
    given = arguments.order_seed
    asked = Request(
        parts=tuple(parts),
        out=(arguments.out or paths.data_home()).absolute(),
        interval=arguments.interval,
        gpus=gpus(arguments.gpus),
        duration=arguments.duration,
        build_archive=archive.build,
        dcgm=Dcgm(arguments.dcgm, arguments.interval) if arguments.dcgm else None,
        seed=(drawn if given is None else given) if any(p.blocks for p in parts) else None,
        title=title,
        question=question,
        preset=preset,
    )
    count = sum(
        len(part.workloads) * len(part.environments) * ((part.blocks or 1) + part.warmup_blocks)
        for part in parts
    )
    if count > MOST_RUNS:
        raise UsageError(f"that would be {count} runs", f"ask for at most {MOST_RUNS}")
    return asked


def check_interpreter(part: Part) -> Part:
    """``part`` again.

    Raises:
        UsageError: an interpreter is chosen that no case of it would use.
    """
    chosen = next((each.python for each in part.environments if each.python), None)
    if chosen is not None and all(case.kind == "command" for case in part.workloads):
        raise UsageError(
            "python= and --python choose the interpreter of gpuwatch's own workloads, not of a "
            f"command ({part.workloads[0].name})",
            f"call it in the command: -- {shell(chosen)} train.py",
        )
    return part


def gpus(text: str | None) -> tuple[str, ...] | None:
    """What ``--gpus`` names: ``()`` for none, ``None`` where it was not given."""
    if text is None or text.strip() == "none":
        return None if text is None else ()
    named = tuple(filter(None, text.split(",")))
    if not named:
        raise UsageError("--gpus names no GPU", "give an index or a UUID, see nvidia-smi -L")
    return named
