"""Show home and live with a recorded NVIDIA H200: for who has no GPU at hand.

The recording is played from a copy, which is removed at the end; nothing of this machine is shown.
"""

from __future__ import annotations

import argparse
import os
import shutil
from dataclasses import replace
from tempfile import TemporaryDirectory

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.screen import terminal
from gpuwatch.core import paths


def add_arguments(parser: argparse.ArgumentParser) -> None:
    terminal.add_arguments(parser, plain=False)
    screen_options.add_arguments(parser, plain=False)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    """Show the home screen of a recorded machine until it is left.

    Raises:
        UsageError: there is no terminal to show it on.
    """
    refresh = terminal.refresh(arguments)
    terminal.require("gpuwatch demo, in a terminal")
    from gpuwatch.tui.app import run_demo
    from gpuwatch.tui.home.screen import RECORDING

    look = replace(screen_options.look(arguments), read_only=True)
    with TemporaryDirectory(prefix="gpuwatch-demo-") as folder:
        os.environ.update(XDG_DATA_HOME=f"{folder}/data", XDG_STATE_HOME=f"{folder}/state")
        path = paths.data_home() / "demo" / "01-bare.gpuwatch"
        path.parent.mkdir(parents=True)
        shutil.copyfile(RECORDING, path)
        path.chmod(0o400)
        return run_demo(path, look, refresh=refresh)
