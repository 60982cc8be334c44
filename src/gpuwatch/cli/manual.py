"""Print the manual page, in roff: gpuwatch manual | man -l -"""

from __future__ import annotations

import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """It takes none."""


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    raise NotImplementedError


def page() -> str:
    """``gpuwatch(1)``, all commands and their flags from the parsers of ``--help``."""
    raise NotImplementedError
