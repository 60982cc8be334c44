"""The commands by name, and the help of the program as a whole."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn, Protocol

from gpuwatch.cli.options.global_options import command_at
from gpuwatch.core.errors import UsageError


class Command(Protocol):
    """A module of ``gpuwatch.cli``: its docstring is the help of the command."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None: ...

    def run(self, arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
        """Carry the command out; ``command`` is what stood behind ``--``."""
        ...


SESSION = """\
SESSION is a file, a study's folder or its name, the start of an id, a name that
`gpuwatch rename` gave, tag:TAG, or `last`."""
"""The end of the help of every command that takes one."""
HOME = ""
"""In place of a command's name: `gpuwatch` alone, with the home screen's options."""

COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("gpuwatch.cli.commands.run", "start a workload and watch it live"),
    "--record": (
        "gpuwatch.cli.commands.record",
        "the same without a screen; or record the machine",
    ),
    "study": ("gpuwatch.cli.commands.study", "run a preset, or a study from a file"),
    "sweep": ("gpuwatch.cli.commands.sweep", "go through the values of a workload's parameter"),
    "noise": ("gpuwatch.cli.commands.noise", "what runs vary by here, and what that lets one find"),
    "resume": ("gpuwatch.cli.commands.resume", "go on with a study that broke off"),
    "attach": (
        "gpuwatch.cli.commands.attach",
        "watch a run that goes on; --record takes up a lost one",
    ),
    "replay": ("gpuwatch.cli.commands.replay", "watch a saved session"),
    "stop": ("gpuwatch.cli.commands.stop", "end a run"),
    "sessions": ("gpuwatch.cli.commands.sessions", "list what runs and what is saved"),
    "rename": ("gpuwatch.cli.commands.rename", "give a session or a study a name"),
    "tag": ("gpuwatch.cli.commands.tag", "tag a session or a study"),
    "note": ("gpuwatch.cli.commands.note", "write a note on a session or a study"),
    "delete": ("gpuwatch.cli.commands.delete", "delete sessions or studies, after asking"),
    "show": ("gpuwatch.cli.commands.show", "the figures of a session"),
    "log": ("gpuwatch.cli.commands.log", "what a run wrote"),
    "kernels": ("gpuwatch.cli.commands.kernels", "which kernels ran, and what they executed"),
    "compare": (
        "gpuwatch.cli.commands.compare",
        "runs and studies against the first: a verdict, and why",
    ),
    "roofline": (
        "gpuwatch.cli.commands.roofline",
        "what bounds a run: FLOP/s against FLOP per byte",
    ),
    "export": ("gpuwatch.cli.commands.export", "a run's or a study's data as CSV, JSON or Parquet"),
    "import": (
        "gpuwatch.cli.commands.import_",
        "make a session of what nsys, ncu or nvprof printed",
    ),
    "doctor": ("gpuwatch.cli.commands.doctor", "what can run here, and how to fix the rest"),
    "calibrate": (
        "gpuwatch.cli.commands.calibrate",
        "measure what this machine's GPUs or CPU reach",
    ),
    "build": ("gpuwatch.cli.commands.build", "build the workloads' image for Docker or Apptainer"),
    "serve": ("gpuwatch.cli.commands.serve", "the screens in a browser of this machine"),
    "report": ("gpuwatch.cli.commands.report", "rewrite the summary of a study"),
    "completions": ("gpuwatch.cli.commands.completions", "what bash, zsh or fish completes on Tab"),
    "manual": ("gpuwatch.cli.commands.manual", "the manual page, for man"),
}

EXAMPLES: tuple[tuple[str, str], ...] = (
    ("gpuwatch", "devices now, saved sessions, start a run"),
    ("gpuwatch run mnist-cnn", "train a small network and watch it"),
    ("gpuwatch run -- python train.py", "the same with a program of your own"),
    ("gpuwatch --record resnet18 --steps 100 --out D", "in a script, without a screen"),
    ("gpuwatch --record --duration 60s", "the machine alone, for a minute"),
    ("gpuwatch study --list", "whole studies: bare against containers ..."),
    ("gpuwatch sweep mnist-cnn --batch-size 16,32,64", "which batch size is fastest"),
    ("gpuwatch compare D/*/*.gpuwatch", "saved runs side by side"),
)
EXIT_CODES: tuple[tuple[int, str], ...] = (
    (0, "done"),
    (1, "a run failed"),
    (2, "usage"),
    (3, "environment not available"),
    (130, "interrupted"),
)


class Parser(argparse.ArgumentParser):
    """Errors as one line with the command that helps."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")


def dispatch(arguments: Sequence[str]) -> int:
    """Find the command in ``arguments`` and run it.

    Raises:
        GpuwatchError: whatever the command raises; UsageError for what cannot be understood.
    """
    own, command = _split(arguments)
    at = command_at(own)
    if own[at : at + 1] and own[at] in COMMANDS:
        name = own.pop(at)
    elif "--record" in own:
        name = "--record"
        own.remove(name)
    elif at == len(own) and not command and not {"-h", "--help", "--version"}.intersection(own):
        name = HOME
    else:
        return _help(own[at:])
    module = module_of(name)
    # A command may take words that begin with a dash and are no options.
    words = getattr(module, "words", list)(own)
    return module.run(parser_of(name).parse_intermixed_args(words), command)


def module_of(name: str) -> Command:
    """The module of a command; of :data:`HOME` the home screen's."""
    module: Command = import_module(COMMANDS[name][0] if name else "gpuwatch.cli.commands.home")
    return module


def parser_of(name: str) -> Parser:
    """What a command, or :data:`HOME`, takes, and its help."""
    module = module_of(name)
    parser = Parser(
        prog=f"gpuwatch {name}".rstrip(),
        description=(getattr(module, "__doc__", None) or COMMANDS[name][1]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    if any("SESSION" in str(action.metavar) for action in parser._actions):
        parser.epilog = SESSION
    return parser


def _split(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """What is for gpuwatch, and the user's command behind ``--``."""
    listed = list(arguments)
    if "--" not in listed:
        return listed, ()
    at = listed.index("--")
    if at == len(listed) - 1:
        raise UsageError("there is no command behind --", "gpuwatch run -- COMMAND ARGUMENT...")
    return listed[:at], tuple(listed[at + 1 :])


def _help(own: Sequence[str]) -> int:
    width = max(map(len, COMMANDS))
    listed = "\n".join(f"  {name:{width}}  {what}" for name, (_, what) in COMMANDS.items())
    longest = max(len(line) for line, _ in EXAMPLES)
    examples = "\n".join(f"  {line:{longest}}  {what}" for line, what in EXAMPLES)
    codes = ", ".join(f"{code} {what}" for code, what in EXIT_CODES)
    parser = Parser(
        prog="gpuwatch",
        usage="gpuwatch [COMMAND] [...]",
        description="Launch a workload, watch the GPU live, record every run, compare runs.",
        epilog=f"commands:\n{listed}\n\nexamples:\n{examples}\n\nexit codes: {codes}\n"
        "`gpuwatch COMMAND --help` tells more of each command.\n",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("command", nargs="?", metavar="COMMAND", help=argparse.SUPPRESS)
    parsed, _ = parser.parse_known_args(list(own))
    if parsed.command is not None:
        raise UsageError(_unknown(parsed.command), "see `gpuwatch --help`")
    parser.print_help()
    return 0


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    from gpuwatch.workloads.names import TORCHVISION, known, suggest

    if f"{TORCHVISION}{name}" in suggest(name):
        name = f"{TORCHVISION}{name}"
    if name in known() or name.startswith(TORCHVISION):
        return f"{name} is a workload: `gpuwatch run {name}`"
    close = get_close_matches(name, COMMANDS, n=2)
    return f"no command {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
