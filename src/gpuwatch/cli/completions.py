"""Print the completion of commands, flags, workloads, environments and sessions for a shell."""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    raise NotImplementedError


def script(shell: str) -> str:
    """The script that ``shell``, one of :data:`SHELLS`, reads to complete ``gpuwatch``."""
    raise NotImplementedError
