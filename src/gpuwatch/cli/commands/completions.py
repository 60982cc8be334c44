"""Print a Tab completion script for a shell: commands, flags, workloads, sessions ...

Write it to a file that the shell reads by itself:

  bash  gpuwatch completions bash > ~/.local/share/bash-completion/completions/gpuwatch
  zsh   gpuwatch completions zsh > FOLDER/_gpuwatch   (FOLDER: one of $fpath, before compinit)
  fish  gpuwatch completions fish > ~/.config/fish/completions/gpuwatch.fish

or use it in the current shell (fish: gpuwatch completions fish | source):

  eval "$(gpuwatch completions bash)"
"""

from __future__ import annotations

import argparse

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", choices=SHELLS, metavar="|".join(SHELLS))


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    from argcomplete.shell_integration import shellcode

    print(shellcode(["gpuwatch"], True, arguments.shell))
    return 0
