"""Prints what is committed to the sessions of a study, for gpuwatch on another machine."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from gpuwatch.core.errors import UsageError
from gpuwatch.places.relay import BEAT_SECONDS, EVERY_SECONDS, Pipe, Relay

_MARKER = re.compile(r"[0-9a-f]{1,64}")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="the study's folder")
    parser.add_argument("--marker", required=True, metavar="HEX", help="printed before all else")
    parser.add_argument(
        "--every",
        type=float,
        default=EVERY_SECONDS,
        metavar="SECONDS",
        help=f"look for changes this often (default {EVERY_SECONDS:g})",
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    check_marker(arguments.marker)
    if not 0.01 <= arguments.every <= BEAT_SECONDS:
        raise UsageError(
            f"--every {arguments.every:g} is out of range", f"between 0.01 and {BEAT_SECONDS:g}"
        )
    pipe = Pipe(sys.stdin.fileno(), sys.stdout.fileno())
    Relay(arguments.folder, pipe, arguments.marker, arguments.every).run()
    return 0


def check_marker(marker: str) -> None:
    """
    Raises:
        UsageError: it is none.
    """
    if not _MARKER.fullmatch(marker):
        raise UsageError("--marker takes hexadecimal digits", "such as --marker 0123abcd")
