"""The arguments that ``run`` and ``--record`` share, and the request built from them."""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli.options import begun, joining
from gpuwatch.cli.options.cases import labelled, long_enough, workloads
from gpuwatch.cli.options.environments import environments
from gpuwatch.cli.parser import Add, Once, Parser
from gpuwatch.core import models, paths
from gpuwatch.core.errors import NotAvailable, UsageError
from gpuwatch.core.interpreter import takes_interpreter
from gpuwatch.core.text import shell
from gpuwatch.recorder.request import Request, plan_of
from gpuwatch.session.study.plan import MARGIN, Part, Settings, unique
from gpuwatch.session.study.plan_file import LARGEST_MARGIN, MOST_BLOCKS, SMALLEST_MARGIN
from gpuwatch.workloads import names, options

if TYPE_CHECKING:
    from gpuwatch.studies import Study

_LONGEST_REST = 3600.0
_LARGEST_FRACTION = 0.1
"""Largest margin without a per cent sign: 0.5 may mean 0.5 % or 50 %."""
QUICK, RIGOROUS = 3, 20
"""Blocks of ``--quick`` and ``--rigorous``."""
COOL_DOWN = 2.0
"""Default rest in s before each run in blocks."""
MOST_RUNS = 2000
_KEEP = ("bare", "charliecloud")
"""Environments without process numbers of their own."""
_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def add_arguments(parser: Parser) -> None:
    """All arguments of ``run`` and ``--record``."""
    add_workload_arguments(parser)
    parser.add_argument(
        "--command",
        action="append",
        dest="commands",
        metavar="LABEL=COMMAND",
        help="a program of your own with a label, repeatable: the commands are compared with the "
        "first, in every environment; with --blocks for a verdict",
    )
    add_study_arguments(parser)


def add_study_arguments(parser: Parser) -> None:
    """How a study is recorded and laid out: what :func:`request_of` reads."""
    add_recording_arguments(parser)
    add_design_arguments(parser)


def add_start_arguments(parser: argparse.ArgumentParser) -> None:
    """How a study is started: what ``record.start`` reads."""
    parser.add_argument(
        "--detach", action="store_true", help="run in the background; prints the session's path"
    )
    parser.add_argument("--quiet", action="store_true", help="print only errors")
    begun.add_arguments(parser)


def add_workload_arguments(parser: Parser) -> None:
    """What to run: names of workloads, and their flags."""
    parser.add_argument(
        "workload",
        nargs="*",
        metavar="WORKLOAD",
        help=f"{', '.join(names.known())}, torchvision:MODEL; or a program of your own",
    )
    add = parser.add_argument_group("workload").add_argument
    options.add_arguments(parser.listed(add, action=Once))


def add_recording_arguments(parser: Parser) -> None:
    """Where to run it, what to watch, and where the study goes."""
    add = parser.listed(parser.add_argument_group("recording").add_argument)
    add("--out", type=_folder, metavar="DIR", help="where the study goes (default: XDG data home)")
    add(
        "--interval",
        type=seconds,
        metavar="SECONDS",
        help=f"time between samples, 0.01 to 60 (default: {Settings.interval_seconds:g})",
    )
    add(
        "--duration",
        type=_duration,
        metavar="TIME",
        help="stop each run after this time, such as 90s or 5m",
    )
    add(
        "--gpus",
        metavar="INDEX|UUID,...",
        help="the GPUs to watch and use (default: all); none: use none, watch all; off: watch "
        "none, and never call NVIDIA's driver",
    )
    add(
        "--dcgm",
        nargs="?",
        const="localhost",
        type=_host_engine,
        metavar="HOST[:PORT]",
        help="measure bandwidth and pipe activity of GPUs before Hopper through DCGM's host engine "
        "(--dcgm=HOST[:PORT]; default: localhost:5555); blocks ncu and nsys meanwhile",
    )
    add(
        "--env",
        action="append",
        metavar="KIND[=IMAGE]",
        help="environment, repeatable (default: bare); behind it, without spaces: ,label=NAME "
        ",set=VAR=VALUE ,python=PATH ,mount=SRC:DST[:rw] ,shm=SIZE ,memory=SIZE "
        ",network=host|bridge|none",
    )
    add(
        "--hook",
        type=_hook,
        default=(),
        metavar="on|off|loss",
        help="whether your own programs that use torch report steps, FLOP and ranks (default: on); "
        "loss: read the loss, too",
    )
    add(
        "--keep-children",
        action="store_true",
        help="let what a workload leaves running go on (default: it is ended with the workload)",
    )
    add("--python", metavar="PATH", help="interpreter of the bare environment")
    add(
        "--on",
        action="append",
        metavar="PLACE",
        help="record it elsewhere: ssh=HOST[,python=PATH][,folder=DIR], or slurm[,OPTION=VALUE...] "
        "with sbatch's options, slurm,job=ID for a job that runs, or "
        "kubernetes,image=IMAGE[,gpu=RESOURCE:N][,KEY=VALUE...] (default: this machine); "
        "repeatable: a study at each place",
    )
    add("--pull", action="store_true", help="fetch images that are not here")


def add_design_arguments(parser: Parser) -> None:
    """Blocks, their order, and the rest between runs."""
    group = parser.add_argument_group("study")
    add = parser.listed(group.add_argument)
    add_blocks = parser.listed(group.add_mutually_exclusive_group().add_argument)
    add_blocks(
        "--blocks",
        type=_blocks,
        metavar="N",
        help="repeat everything in N blocks, in random order, after a warm-up block (10 tolerate "
        "one disturbed run, fewer do not; default: each once, no verdict, in a sweep 3 blocks); "
        "small workloads then take 100 steps unless --steps or --epochs is given",
    )
    add_blocks("--quick", action="store_true", help=f"{QUICK} blocks: a description, no verdict")
    add_blocks("--rigorous", action="store_true", help=f"{RIGOROUS} blocks")
    add(
        "--margin",
        type=margin,
        metavar="PERCENT",
        help="largest change of the step time that does not matter, such as 0.5%% (default: 1%%)",
    )
    add(
        "--cool-down",
        type=rest,
        metavar="TIME",
        help="rest before every run except the first (default: 2s with blocks, else none)",
    )
    add_order_seed(add)
    add_preview_arguments(add)


def add_order_seed(add: Add) -> None:
    """The order of the runs; ``add`` is a parser's ``add_argument``."""
    add(
        "--order-seed",
        type=options.seed_value,
        metavar="N",
        help="seed of the order within the blocks (default: random, and recorded)",
    )


def add_preview_arguments(add: Add) -> None:
    """The options of ``plan.shown``; ``add`` is a parser's ``add_argument``."""
    add("--plan", action="store_true", help="print the order of the runs, and run nothing")
    add(
        "--dry-run",
        action="store_true",
        help="print the order and how each run would be launched, and run nothing",
    )
    add("--format", choices=("table", "json"), help="of --plan and --dry-run (default: table)")


def _blocks(text: str) -> int:
    return options.positive_int(text, MOST_BLOCKS)


def margin(text: str) -> float:
    """Parse a margin such as ``1%`` or ``0.01`` as a fraction, 0.001 to 0.5."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+) ?(%?)", text.strip())
    value = float(match[1]) / (100 if match[2] else 1) if match else 0.0
    if match and not match[2] and _LARGEST_FRACTION < value <= LARGEST_MARGIN:
        raise argparse.ArgumentTypeError(
            f"unclear margin {text!r}: write {value:g}% or {100 * value:g}%"
        )
    if not SMALLEST_MARGIN <= value <= LARGEST_MARGIN:
        raise argparse.ArgumentTypeError(
            f"invalid margin {text!r}: expected 0.1% to 50%, such as 1%, 0.5% or 0.01"
        )
    return value


def rest(text: str) -> float:
    """Parse a rest between runs, in s: at most an hour, and 0 is one too."""
    value = seconds(text)
    if value > _LONGEST_REST:
        raise argparse.ArgumentTypeError(f"{text!r} is too long: at most an hour")
    return value


def blocks(arguments: argparse.Namespace) -> int | None:
    """What ``--blocks``, ``--quick`` and ``--rigorous`` ask for."""
    given: int | None = arguments.blocks
    return QUICK if arguments.quick else RIGOROUS if arguments.rigorous else given


def part(
    name: str,
    cases: Sequence[models.Workload],
    places: Sequence[models.Environment],
    *,
    blocks: int | None,
    margin: float | None,
    cool_down: float | None,
    sweep: Mapping[str, tuple[models.JSON, ...]] | None = None,
) -> Part:
    """A part of a study, in which ``None`` stands for the default of ``--blocks``, ``--margin`` or
    ``--cool-down``. Runs in blocks without a given length are made long enough for a steady state.

    Raises:
        UsageError: an interpreter is chosen, but no case takes one; or blocks cannot be.
    """
    if blocks is not None and cases[0].kind == "machine":
        raise UsageError(
            "--blocks without a workload: the machine alone is recorded once",
            "name a workload, or a program of your own",
        )
    chosen = next((environment.python for environment in places if environment.python), None)
    if chosen is not None and not any(map(takes_interpreter, cases)):
        raise UsageError(
            "python= and --python choose the interpreter of gpuwatch's own workloads and of "
            f"commands that begin with python, not of {cases[0].name}",
            f"call it in the command: -- {shell(chosen)} train.py",
        )
    twice = [case.name for case in unique(cases) if cases.count(case) > 1]
    if blocks is not None and twice:
        raise UsageError(
            f"{twice[0]} is named twice with the same settings", "name it once: blocks repeat it"
        )
    return Part(
        name=name,
        workloads=tuple(cases) if blocks is None else long_enough(cases),
        environments=tuple(places),
        blocks=blocks,
        warmup_blocks=0 if blocks is None else 1,
        margin=MARGIN if margin is None else margin,
        cool_down=cool_down if cool_down is not None else 0.0 if blocks is None else COOL_DOWN,
        sweep=dict(sweep or {}),
    )


def part_of(
    arguments: argparse.Namespace,
    name: str,
    cases: Sequence[models.Workload],
    places: Sequence[str],
    sweep: Mapping[str, tuple[models.JSON, ...]] | None = None,
) -> Part:
    """The only part of what ``arguments`` ask for; see :func:`part`. ``places``: values for
    ``--env``."""
    return part(
        name,
        cases,
        environments(places, arguments.python, pull=arguments.pull),
        blocks=blocks(arguments),
        margin=arguments.margin,
        cool_down=arguments.cool_down,
        sweep=sweep,
    )


def count(part: Part) -> int:
    """The number of runs of a part, warm-up included."""
    repeated = 1 if part.blocks is None else part.blocks + part.warmup_blocks
    return len(part.workloads) * len(part.environments) * repeated


def _folder(text: str) -> Path:
    if not text.strip():
        raise argparse.ArgumentTypeError("empty folder name: omit --out for the default folder")
    return Path(text)


def _host_engine(text: str) -> str:
    """Check ``HOST[:PORT]`` or ``unix://SOCKET``; a workload after a bare ``--dcgm`` is refused."""
    if text in names.known() or text.startswith("torchvision:"):
        raise argparse.ArgumentTypeError(
            f"{text!r} is a workload: name it before --dcgm, or write --dcgm=localhost"
        )
    good = re.fullmatch(r"unix://\S+|\[[0-9a-fA-F:]+\](:\d+)?|[\w.-]+(:\d+)?", text)
    if not good or text.startswith("-"):
        raise argparse.ArgumentTypeError(
            f"invalid HOST[:PORT] {text!r}: write --dcgm=localhost:5555"
        )
    return text


def _hook(text: str) -> tuple[str, ...] | None:
    """The options of ``--hook``: ``None`` for ``off``."""
    options = tuple(dict.fromkeys(text.split(",")))
    if options in (("on",), ("off",)):
        return None if options == ("off",) else ()
    if unknown := [option for option in options if option not in models.HOOK_OPTIONS]:
        raise argparse.ArgumentTypeError(
            f"no {unknown[0]!r}: write on, off or {', '.join(models.HOOK_OPTIONS)}"
        )
    return options


def seconds(text: str) -> float:
    """Parse a time such as ``0``, ``500ms``, ``90s``, ``5m`` or ``2h`` into seconds."""
    match = re.fullmatch(r"(\d+(?:\.\d*)?|\.\d+)(ms|min|[smhd]?)", text.strip())
    if not match:
        raise argparse.ArgumentTypeError(
            f"invalid time {text!r}: expected 0.5, 500ms, 90s, 5m or 2h"
        )
    return float(match[1]) * _UNITS[match[2]]


def _duration(text: str) -> float:
    if not (value := seconds(text)):
        raise argparse.ArgumentTypeError(f"{text!r} is too short: more than 0")
    return value


def need_linux() -> None:
    """Raise ``NotAvailable`` on any other system."""
    if sys.platform != "linux":
        raise NotAvailable("recording needs Linux", "look at saved sessions: gpuwatch sessions DIR")


def request(arguments: argparse.Namespace, command: tuple[str, ...]) -> Request:
    """The request for the command line of ``run`` or ``--record``.

    Raises:
        UsageError: an argument is unknown or contradicts another.
        NotAvailable: this is not Linux.
    """
    if arguments.commands:
        cases = labelled(arguments.commands, arguments, command)
    else:
        cases = workloads(arguments, command)
    name = ", ".join(case.label or case.name for case in cases)
    return request_of(arguments, [part_of(arguments, name, cases, arguments.env or ["bare"])])


def request_of(
    arguments: argparse.Namespace, parts: Sequence[Part], study: Study | None = None
) -> Request:
    """The request for ``parts``, with the recording settings of ``arguments``.

    ``arguments`` has what :func:`add_recording_arguments` and :func:`add_design_arguments` add;
    ``study`` is the file that the parts are from. Without ``--order-seed``, a seed is drawn if any
    part has blocks.

    Raises:
        UsageError: something is out of range or contradicts itself.
        NotAvailable: this is not Linux.
    """
    on = checked_places(arguments.on or (() if study is None else study.on))
    if not on:
        need_linux()
    interval = Settings.interval_seconds if arguments.interval is None else arguments.interval
    if not models.SHORTEST_INTERVAL <= interval <= models.LONGEST_INTERVAL:
        raise UsageError(
            f"--interval {interval:g} is out of range",
            f"choose from {models.SHORTEST_INTERVAL:g} to {models.LONGEST_INTERVAL:g} seconds",
        )
    cases = [case for part in parts for case in part.workloads]
    if arguments.dcgm and any(case.parameters.get("counters") for case in cases):
        raise UsageError(
            "--dcgm holds the counters that ncu needs for --counters", "give one of them"
        )
    kinds = dict.fromkeys(env.kind for part in parts for env in part.environments)
    if arguments.keep_children and (ends := [kind for kind in kinds if kind not in _KEEP]):
        raise UsageError(
            f"--keep-children, and what runs in {ends[0]} ends with its container",
            "leave it out, or run it bare",
        )
    if (runs := sum(map(count, parts))) > MOST_RUNS:
        raise UsageError(f"that would be {runs} runs", f"ask for at most {MOST_RUNS}")
    seed = arguments.order_seed
    if seed is None and study is not None:
        seed = study.order_seed
    if drawn := seed is None:
        seed = random.SystemRandom().randrange(options.LARGEST_SEED + 1)
    hook = arguments.hook
    if getattr(arguments, "profile", None) and any(case.kind == "command" for case in cases):
        if hook is None:
            raise UsageError(
                "--profile is the work of the hook in your program, and --hook off leaves it out",
                "leave one of them out",
            )
        hook = (*hook, f"profile={arguments.profile}")
    settings = Settings(
        interval,
        arguments.duration,
        gpus(arguments.gpus),
        arguments.dcgm,
        hook,
        arguments.keep_children,
        None if study is None else study.afterwards,
    )
    plan = plan_of(parts, settings, seed=seed if any(part.blocks for part in parts) else None)
    if study is not None:
        plan = replace(plan, title=study.title, question=study.question, preset=study.preset)
    request_ = Request(plan, (arguments.out or paths.data_home()).absolute(), drawn=drawn)
    at_each = [joining.at(request_, place) for place in on]
    return at_each[0] if len(at_each) == 1 else replace(request_, on=on)


def checked_places(texts: Sequence[str]) -> tuple[str, ...]:
    """The places that ``--on`` names, whose spelling is checked.

    Raises:
        UsageError: one is misspelt, or given twice.
    """
    if not texts:
        return ()
    from gpuwatch.places import load, spec

    for text in texts:
        load(spec.parse(text), Path())
    if len(set(texts)) < len(texts):
        raise UsageError("--on names a place twice", "name each once")
    return tuple(texts)


def gpus(text: str | None) -> tuple[str, ...] | None:
    """The GPUs that ``--gpus`` names: ``()`` for none, ``GPUS_OFF``, ``None`` if it was not
    given."""
    if text is None or text.strip() == "none":
        return None if text is None else ()
    named = tuple(filter(None, text.split(",")))
    if not named:
        raise UsageError("--gpus names no GPU", _NAMES)
    for name in named:
        if name != models.GPUS_OFF[0] and not _GPU.fullmatch(name.strip()):
            raise UsageError(f"--gpus: {name!r} is no name of a GPU", _NAMES)
    return named


_GPU = re.compile(r"(mig-)?(gpu-)?[\da-f][\da-f/-]*", re.IGNORECASE)
_NAMES = "give an index or a UUID, see nvidia-smi -L"
