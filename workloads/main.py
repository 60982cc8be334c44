"""``PYTHON workloads.pyz NAME [flags]``: run a workload and report it in step lines.

torch is imported only after the ``started`` line is out. No failure that a user can cause ends in
a traceback: it becomes an ``error`` event, one line on stderr and an exit code (2 usage,
3 environment, 1 other).
"""

from __future__ import annotations

import os
import re
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from .failures import EnvironmentFailure, Failure, UsageFailure, missing, translate
from .lines import CHANNEL, emit, open_channel
from .ranks import BROKEN_PIPE, Rank, launch, own_rank
from .stopping import Stop, Stopped, leave

if TYPE_CHECKING:
    import argparse

TRACEBACK = "GPUWATCH_WORKLOAD_TRACEBACK"
"""Environment variable; if set, a failure also prints its traceback on stderr."""


def main(argv: Sequence[str], launched_ns: int) -> int:
    """Run the workload named on the command line; returns the exit code.

    ``launched_ns`` is CLOCK_MONOTONIC in nanoseconds when the interpreter started the program.
    """
    stop = Stop()
    stop.install()
    rank = own_rank()
    try:
        if "--list" in argv:
            return _list()
        if "--calibrate" in argv:
            return _calibrate(argv)
        if not any(flag in ("-h", "--help") or flag.startswith("--n") for flag in argv):
            _emit_started(launched_ns)
        return _run(argv, launched_ns, stop, rank)
    except Stopped:
        leave(128 + (stop.signum or 0))
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except Failure as failure:
        return _fail(failure, rank)


def _list() -> int:
    import json

    from .names import TORCHVISION, known

    for name, summary in known().items():
        print(json.dumps({"name": name, "summary": summary}))
    summary = "any of torchvision's image classification models"
    print(json.dumps({"name": f"{TORCHVISION}MODEL", "summary": summary}))
    return 0


def _calibrate(argv: Sequence[str]) -> int:
    import argparse

    parser = _parser("Measure what a device reaches, and report it.")
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--device", default="auto", help="cpu, cuda or cuda:INDEX")
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument(
        "--patient", action="store_true", help="others use the device: measure for most of a minute"
    )
    flags = parser.parse_args(argv)
    if not re.fullmatch(r"auto|cpu|cuda(:\d+)?", flags.device):
        raise UsageFailure(f"there is no device {flags.device!r}", "use cpu, cuda or cuda:INDEX")
    _import_torch("calibration")
    from .calibration import calibrate

    return calibrate(flags.device, quick=flags.quick, patient=flags.patient)


def _parser(description: str) -> argparse.ArgumentParser:
    """A parser that raises failures as errors."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            raise UsageFailure(message, "see PYTHON workloads.pyz --help")

    return Parser(prog="PYTHON workloads.pyz", description=description)


def _fail(failure: Failure, rank: Rank) -> int:
    if rank.failures is not None:
        rank.fail(failure)
    else:
        emit("error", kind=failure.kind, message=failure.message, hint=failure.hint)
        hint = f" ({failure.hint})" if failure.hint else ""
        print(f"{failure.kind}: {failure.message}{hint}", file=sys.stderr)
    if os.environ.get(TRACEBACK):
        traceback.print_exception(failure)
    return failure.exit_code


def _run(argv: Sequence[str], launched_ns: int, stop: Stop, rank: Rank) -> int:
    from .names import check, module_of, program
    from .options import add_arguments, conflict, unsupported

    parser = _parser("Train, and report every step.")
    parser.add_argument("workload", metavar="NAME", help="a name that --list prints")
    parser.add_argument("--list", action="store_true", help="print the workloads as JSON lines")
    parser.add_argument(
        "--calibrate",
        action="store_true",
        help="measure copy bandwidth and matrix products of --device instead of training",
    )
    add_arguments(parser.add_argument_group("workload").add_argument)
    flags = parser.parse_args(argv)
    try:
        flags.workload = program(check(flags.workload)) or flags.workload
    except ValueError as error:
        raise UsageFailure(str(error), "see PYTHON workloads.pyz --list") from None
    refusal = conflict(flags) or unsupported(flags.workload, flags)
    if refusal is not None:
        raise UsageFailure(*refusal)
    ranks = flags.nproc or 1
    if ranks > 1 and rank.size == 1:
        return launch(ranks, silent=CHANNEL in os.environ)
    if flags.nproc == 1:
        _emit_started(launched_ns)

    torch_seconds = _import_torch(module_of(flags.workload))
    if rank.size > 1:
        _open_channel(rank)
        _emit_started(launched_ns)
    from .session import run

    try:
        return run(flags, launched_ns, torch_seconds, stop, rank)
    except (Failure, BrokenPipeError):
        raise
    except Exception as error:
        if stop.signum is not None:
            raise Stopped from error
        raise translate(error, None) from error
    finally:
        stop.training = False


def _emit_started(launched_ns: int) -> None:
    emit(
        "started",
        monotonic_ns=launched_ns,
        python=sys.version.split()[0],
        executable=sys.executable,
    )


def _open_channel(rank: Rank) -> None:
    """Report to a file in the channel's folder, if there is one."""
    import torch

    folder = os.environ.get(CHANNEL)
    if folder is None:
        return
    try:
        open_channel(
            Path(folder),
            rank=rank.number,
            local_rank=rank.number,
            world_size=rank.size,
            python=sys.version.split()[0],
            executable=sys.executable,
            torch=torch.__version__,
            program=Path(sys.argv[0]).name,
        )
    except OSError as error:
        raise EnvironmentFailure(
            f"the ranks cannot report to the folder that {CHANNEL} names: {error}",
            f"unset {CHANNEL}, or let it name a folder that can be written",
        ) from error


def _import_torch(module: str) -> float:
    """Seconds spent importing torch, and torchvision if needed."""
    start = time.perf_counter()
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:
        raise missing("torch", error) from error
    if module == "imagenet":
        try:
            import torchvision  # noqa: F401
        except (ImportError, OSError, RuntimeError) as error:
            raise missing("torchvision", error) from error
    return time.perf_counter() - start
