"""``--notify``: who is told of the end of a run, and of troubles."""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from gpuwatch.core import output
from gpuwatch.own_command import OWN_COMMAND

VARIABLE = "GPUWATCH_NOTIFY"
LOG = "notify.log"
"""In the study's folder: what could not be told."""
WEB = ("http://", "https://")


def add_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--notify",
        type=address,
        default=os.environ.get(VARIABLE) or None,
        metavar="TO",
        help="a URL or a command that is told when it is over, with the verdict, or in trouble: "
        f"see gpuwatch notify --help (default: ${VARIABLE})",
    )


def address(text: str) -> str:
    """Parse whom to tell: a command, or a URL that can be told."""
    if not text.strip():
        raise argparse.ArgumentTypeError("it is empty: give a URL or a command")
    kind, found, _ = text.partition("://")
    if found and kind.isalnum() and not text.startswith(WEB):
        raise argparse.ArgumentTypeError(f"cannot tell {kind}://: give an http or https URL")
    return text


def follow(study: Path, to: str | None) -> None:
    """Tell ``to`` of ``study`` in a process of its own; it has a session, or waits at a place."""
    if to is None:
        return
    # Not as an argument, which others could read: a webhook's address is a secret.
    with open(study / LOG, "ab", opener=output.private_file) as log:
        subprocess.Popen(
            [*OWN_COMMAND, "notify", "--started", str(study)],
            env={**os.environ, VARIABLE: to},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
