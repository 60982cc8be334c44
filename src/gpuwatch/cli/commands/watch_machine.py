"""Record this machine for a screen of gpuwatch on another one, which starts it and reads it."""

from __future__ import annotations

import argparse
import sys
import time
from contextlib import closing

from gpuwatch.cli.commands import relay
from gpuwatch.core.errors import NotAvailable
from gpuwatch.core.text import clean
from gpuwatch.places.relay import Pipe, Relay
from gpuwatch.tui.feed.machine_recorder import MachineRecorder

EVERY_SECONDS = 2.0
"""Between two samples, and between two looks of the relay."""
_POLL_SECONDS = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--marker", required=True, metavar="HEX", help="printed before all else")
    parser.add_argument("--joined-job", metavar="ID", help="the Slurm job that it runs in")


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Record until standard input or output is closed; nothing is left then.

    Raises:
        UsageError: the marker is none.
        NotAvailable: the machine cannot be recorded.
    """
    relay.check_marker(arguments.marker)
    job = arguments.joined_job
    more = () if job is None else ("--joined-job", job)
    try:
        recorder = MachineRecorder(EVERY_SECONDS, more=more)
    except OSError as error:
        raise NotAvailable(f"nothing can be recorded: {error.strerror}") from error
    with closing(recorder):
        while (session := recorder.session()) is None:
            if (lines := recorder.error_lines()) is not None:
                why = clean(lines[-1]) if lines else "the recorder ended without a word"
                raise NotAvailable(why)
            time.sleep(_POLL_SECONDS)
        pipe = Pipe(sys.stdin.fileno(), sys.stdout.fileno())
        Relay(session.parent, pipe, arguments.marker, EVERY_SECONDS).run()
    return 0
