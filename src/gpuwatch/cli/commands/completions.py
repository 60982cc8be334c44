"""Print a Tab completion script for a shell: commands, flags, workloads, sessions ...

Write it to a file that the shell reads by itself, again after each update of gpuwatch:

  bash  gpuwatch completions bash > ~/.local/share/bash-completion/completions/gpuwatch
  zsh   gpuwatch completions zsh > FOLDER/_gpuwatch   (FOLDER: one of $fpath, before compinit)
  fish  gpuwatch completions fish > ~/.config/fish/completions/gpuwatch.fish

or use it in the current shell (fish: gpuwatch completions fish | source):

  eval "$(gpuwatch completions bash)"
"""

from __future__ import annotations

import argparse
import sys

from gpuwatch import __version__

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS)


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    sys.stdout.write(script(arguments.shell))
    return 0


def script(shell: str) -> str:
    """The completion script for ``shell``, one of :data:`SHELLS`."""
    from gpuwatch.cli.shell import completion_scripts as scripts
    from gpuwatch.cli.shell.completion_table import environments, rows, workloads

    lines = [str(row) for row in rows()]
    first = "#compdef gpuwatch\n" if shell == "zsh" else ""
    head = f"{first}# gpuwatch {__version__}, by `gpuwatch completions {shell}`\n"
    if shell == "fish":
        quoted = " \\\n    ".join(map(_fish, lines))
        data = [
            f"set -g __gpuwatch_workloads {_fish(workloads())}",
            f"set -g __gpuwatch_environments {_fish(environments())}",
            f"set -g __gpuwatch_table {quoted}",
        ]
        return "\n".join([head, *data, "", scripts.FISH])
    declare = "typeset -g " if shell == "zsh" else ""
    data = [
        f"{declare}_gpuwatch_workloads={_posix(workloads())}",
        f"{declare}_gpuwatch_environments={_posix(environments())}",
        f"{declare}_gpuwatch_table={_posix(chr(10).join(lines))}",
    ]
    return "\n".join([head, *data, "", scripts.ZSH if shell == "zsh" else scripts.BASH])


def _posix(text: str) -> str:
    """In single quotes for bash and zsh."""
    return "'" + text.replace("'", "'\\''") + "'"


def _fish(text: str) -> str:
    """In single quotes for fish."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
