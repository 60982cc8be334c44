"""The arguments that ``run`` and ``--record`` share, and the request they make."""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from gpuwatch import paths
from gpuwatch.cli.environments import environments
from gpuwatch.errors import NotAvailable, UsageError
from gpuwatch.models import Workload
from gpuwatch.recorder.record import Request
from gpuwatch.recorder.sources import Dcgm
from gpuwatch.workloads import archive, names, options

_SHORTEST, _LONGEST = 0.01, 60.0
_UNITS = {"": 1.0, "ms": 1e-3, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "workload",
        nargs="*",
        metavar="WORKLOAD",
        help=f"{', '.join(names.known())}, torchvision:MODEL; or a command of yours behind --",
    )
    add = parser.add_argument_group("recording").add_argument
    add("--out", type=_folder, metavar="DIR", help="where the study goes (default: XDG data home)")
    add(
        "--interval",
        type=seconds,
        default=0.5,
        metavar="SECONDS",
        help="between samples, 0.01 to 60 (default: 0.5)",
    )
    add("--duration", type=seconds, metavar="TIME", help="stop after this time, such as 90s or 5m")
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
    options.add_arguments(parser)


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
    """What the command line asks for.

    Raises:
        UsageError: it asks for something unknown or contradictory.
        NotAvailable: this is not Linux.
    """
    need_linux()
    if not _SHORTEST <= arguments.interval <= _LONGEST:
        raise UsageError(
            f"--interval {arguments.interval:g} is out of range",
            f"choose from {_SHORTEST:g} to {_LONGEST:g} seconds",
        )
    clash = options.conflict(arguments)
    if clash:
        raise UsageError(*clash)
    if arguments.dcgm and arguments.counters:
        raise UsageError(
            "--dcgm holds the counters that ncu needs for --counters", "give one of them"
        )
    return Request(
        workloads=_workloads(arguments, command),
        environments=environments(arguments.env or ["bare"], arguments.python, pull=arguments.pull),
        out=(arguments.out or paths.data_home()).absolute(),
        interval=arguments.interval,
        gpus=gpus(arguments.gpus),
        duration=arguments.duration,
        build_archive=archive.build,
        dcgm=Dcgm(arguments.dcgm, arguments.interval) if arguments.dcgm else None,
    )


def gpus(text: str | None) -> tuple[str, ...] | None:
    """What ``--gpus`` names: ``()`` for none, ``None`` where it was not given."""
    if text is None or text.strip() == "none":
        return None if text is None else ()
    named = tuple(filter(None, text.split(",")))
    if not named:
        raise UsageError("--gpus names no GPU", "give an index or a UUID, see nvidia-smi -L")
    return named


_RUNNERS = re.compile(
    r"(python|pypy|ruby|perl|node|bash|dash|zsh|sh)[\d.]*|torchrun|accelerate",
)


def command_name(command: Sequence[str]) -> str:
    """What tells a command of the user's from others: the script rather than its interpreter."""
    name = Path(command[0]).name
    if not _RUNNERS.fullmatch(name):
        return name
    rest = iter(command[1:])
    for argument in rest:
        if argument == "-m":
            return next(rest, name)
        if argument == "-c":
            return name
        flag = argument.startswith("-") or "=" in argument
        if not flag and argument != "launch":
            return Path(argument).name or name
    return name


def _own_program(words: Sequence[str]) -> str | None:
    """The mend for a program that was named like a workload."""
    first = words[0]
    if shutil.which(first) or Path(first).exists() or Path(first).suffix in (".py", ".sh"):
        return f"a program of your own stands behind --: -- {shlex.join(words)}"
    return None


def _workloads(arguments: argparse.Namespace, command: tuple[str, ...]) -> tuple[Workload, ...]:
    given = {
        name: value
        for name in options.FLAGS
        if (value := getattr(arguments, name)) is not None and value is not False
    }
    if command:
        if arguments.workload:
            raise UsageError(
                f"both a workload ({arguments.workload[0]}) and a command behind --",
                "give one of them",
            )
        if given:
            flag = "--" + next(iter(given)).replace("_", "-")
            raise UsageError(
                f"{flag} is a flag of gpuwatch's own workloads",
                f"write it behind -- for {command[0]}",
            )
        return (Workload(command_name(command), "command", command),)
    if not arguments.workload:
        if given:
            flag = "--" + next(iter(given)).replace("_", "-")
            raise UsageError(f"{flag} without a workload", f"name one: {', '.join(names.known())}")
        if arguments.env:
            raise UsageError(
                "--env without a workload: the machine alone is recorded outside of containers",
                "name a workload, or a command of your own behind --",
            )
        return (Workload("machine", "machine"),)
    if given.get("data"):
        given["data"] = arguments.data = str(Path(arguments.data).absolute())
    found = []
    for name in arguments.workload:
        try:
            found.append(names.check(name))
        except ValueError as error:
            raise UsageError(str(error), _own_program(arguments.workload)) from None
    flags = tuple(options.to_argv(arguments))
    return tuple(Workload(name, "workload", flags, given) for name in found)
