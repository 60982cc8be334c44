"""Start a workload and watch it live; without a terminal, record it in the foreground.

The recorder runs in a session of its own: leaving the screen, or losing the connection, does not
affect the run. `gpuwatch attach` returns to it.

  gpuwatch run python train.py                                 a program of your own
  gpuwatch run resnet50 --dtype bfloat16 --steps 200           a workload that gpuwatch brings along
  gpuwatch run mnist-cnn --env bare --env docker --blocks 10   two environments, compared

Programs that do not use torch report by lines on standard output, each in one write:

  :::GPUWATCH {"event": "step", "step": 12, "samples": 64, "seconds": 0.0051, "loss": 0.4}
  :::GPUWATCH {"event": "count", "flop_per_step": 4.6e9, "bytes_per_step": 3.7e8}
  :::GPUWATCH {"event": "run", "device": "cuda", "dtype": "bfloat16", "device_uuid": ["GPU-..."]}

A step line of several steps has `count`, and `seconds` as a list. It may have monotonic_ns (at its
end), phases, flop, bytes, warmup. Other lines: started (monotonic_ns), versions (torch, threads),
startup (import_seconds, model_seconds, first_step_seconds), epoch (epoch, loss, acc1).
"""

from __future__ import annotations

import argparse
from pathlib import Path

from gpuwatch.cli import plan as preview
from gpuwatch.cli.commands import record
from gpuwatch.cli.options import begun, launch, screen_options
from gpuwatch.cli.parser import Parser
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.study_result import exit_code
from gpuwatch.core.errors import ExitCode, UsageError
from gpuwatch.recorder.request import Request
from gpuwatch.session.study.progress import recorder_alive
from gpuwatch.session.study.study_folder import sessions_in


def add_arguments(parser: Parser) -> None:
    launch.add_arguments(parser)
    begun.add_arguments(parser)
    screen_options.add_arguments(parser)
    parser.set_defaults(detach=False, quiet=False)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if not (arguments.workload or arguments.commands or command):
        raise UsageError(
            "nothing to run", "name a workload, or a program of your own; or just: gpuwatch"
        )
    return start(launch.request(arguments, command), arguments)


def start(request: Request, arguments: argparse.Namespace) -> int:
    """Start ``request`` and show it; without a terminal, or in the background, record it as
    :func:`record.start` does. Returns the exit code."""
    screen = arguments.plain or terminal.usable()
    if arguments.detach or not screen or len(request.on) > 1:
        return record.start(request, arguments, echo=True)
    begun.check(request, arguments)
    if preview.shown(request, arguments):
        return ExitCode.DONE
    preview.announce(request)
    if request.on:
        from gpuwatch.cli.place import sending, watching

        (placed,) = sending.send(request)
        study = Path(placed.study)
        begun.begun(study, request.plan, arguments)
        if not arguments.plain:
            look, refresh = screen_options.look(arguments), _refresh(arguments)
            shown = watching.on_screen(placed, look, refresh, started=True)
            return _ended(study, shown) if sessions_in(study) else exit_code(study)
        if (path := watching.first_session(placed)) is None:
            return exit_code(study)
    else:
        record.report_orphans()
        record.takes_input(request.plan, foreground=False)
        code, text = record.start_detached(request)
        if code is not ExitCode.DONE:
            return record.report_start(code, text)
        path = Path(text)
        begun.begun(path.parent, request.plan, arguments)
    refresh = _refresh(arguments)
    shown = screen_options.watch(arguments, path, refresh, follow=True, started=True)
    return _ended(path.parent, shown)


def _refresh(arguments: argparse.Namespace) -> float:
    """Seconds between two pictures: there is nothing new between two samples."""
    return max(terminal.REFRESH_SECONDS, arguments.interval or 0.0)


def _ended(study: Path, shown: int) -> int:
    """Print the summary of a study that is over; returns the exit code, of what showed it while the
    study goes on."""
    if shown != ExitCode.DONE or recorder_alive(study):
        return shown
    code = exit_code(study)
    record.tell_end(study, code)
    return code
