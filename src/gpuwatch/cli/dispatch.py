"""The commands by name, and the help of the program as a whole."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import import_module
from types import ModuleType

from gpuwatch.cli.parser import Parser
from gpuwatch.core.errors import ExitCode, UsageError

SESSION = """\
SESSION is a file, a study's folder or its name (for one session a study of one
run), the start of an id, a name given with `gpuwatch rename`, tag:TAG, or `last`,
which commands that only read take where none is given."""
"""Help epilogue of every command that takes a session."""
HOME = ""
"""Name for `gpuwatch` without a command, with the home screen's options."""

COMMANDS: dict[str, str] = {
    "run": "start a workload and watch it live",
    "--record": "record a workload without a screen, or the machine alone",
    "study": "run a preset, or a study from a file",
    "sweep": "run a workload with several values of a parameter",
    "noise": "how much runs vary here, and which changes show",
    "rerun": "run a recorded run or study again, as a new one",
    "resume": "continue an interrupted study",
    "attach": "watch a running run; --record takes over one whose recorder died",
    "notify": "tell when a run or study is over, or in trouble",
    "replay": "watch a saved session",
    "stop": "end a run",
    "signal": "send a signal to a process, with a prompt",
    "sessions": "list running and saved sessions",
    "rename": "give a session or a study a name",
    "tag": "tag a session or a study",
    "note": "write a note on a session or a study",
    "delete": "delete sessions or studies, with a prompt",
    "show": "the figures of a session",
    "log": "the output of a run",
    "kernels": "which kernels ran, and what they executed",
    "compare": "compare runs and studies with the first: a verdict, and why",
    "report": "rewrite the summary of a study",
    "roofline": "what bounds a run: FLOP/s against FLOP per byte",
    "export": "a run's or a study's data as CSV, JSON or Parquet",
    "import": "make a session from the output of nsys, ncu or nvprof",
    "demo": "home and live with a recorded GPU, for a look",
    "doctor": "what can run here, and how to fix the rest",
    "calibrate": "measure the peak rates of this machine's GPUs or CPU",
    "build": "build the workloads' image for Docker or Apptainer",
    "serve": "show the screens in a browser on this machine",
    "completions": "Tab completion for bash, zsh or fish",
}
"""What each command does, in the order of ``--help``."""
_GROUPS = {
    "run": "run",
    "attach": "watch and end",
    "sessions": "keep",
    "show": "look and compare",
    "demo": "set up",
}
"""Headings of ``--help``, by the first command below each."""

HIDDEN = frozenset({"follow", "in-part", "relay", "start-plan", "watch-machine"})
"""Commands that only gpuwatch itself starts, here or at another place."""

PROGRAMS = frozenset({"run", "--record", "noise"})
"""Commands that run a program of the user's own; ``--`` before it may be left out."""
_HARDLY_OF_A_PROGRAM = {"--blocks", "--dry-run", "--env", "--plan", "--quick", "--rigorous"}
"""Options that behind a program may have been meant for gpuwatch."""
_TAKE_WORDS = PROGRAMS | {"doctor", "sweep", "rename", "tag", "note"}
"""Commands that look at the words after ``--``."""

EXAMPLES: tuple[tuple[str, str], ...] = (
    ("gpuwatch", "devices now, saved sessions, start a run"),
    ("gpuwatch run mnist-cnn", "train a small network and watch it"),
    ("gpuwatch run python train.py", "the same with a program of your own"),
    ("gpuwatch --record resnet18 --steps 100 --out D", "in a script, without a screen"),
    ("gpuwatch --record --duration 60s", "the machine alone, for a minute"),
    ("gpuwatch study --list", "ready-made studies: bare against containers ..."),
    ("gpuwatch sweep mnist-cnn --batch-size 16,32,64", "which batch size is fastest"),
    ("gpuwatch compare D/*/*.gpuwatch", "saved runs side by side"),
)
_MEANT = {"list": "sessions", "ls": "sessions", "diff": "compare", "version": "--version"}
"""Commands by what other programs call them."""
VALUED = ("--interval", "--on", "--theme")
"""Options of the home screen that take a value."""


def dispatch(arguments: Sequence[str]) -> int:
    """Find the command in ``arguments`` and run it.

    Raises:
        UsageError: the command line is invalid.
        GpuwatchError: any error of the command.
    """
    own, command = _split(arguments)
    at = command_at(own)
    if own[at : at + 1] == ["help"]:
        own = [*own[at + 1 :], "--help"]
        at = command_at(own)
    if own[at : at + 2] == ["run", "--record"]:  # not of a program that has such an option
        own.pop(at)
    if "--record" in own[: at + 1]:  # before a word that may be an option's value
        name = "--record"
        own.remove(name)
    elif own[at : at + 1] and (own[at] in COMMANDS or own[at] in HIDDEN):
        name = own.pop(at)
    elif "--record" in own:
        name = "--record"
        own.remove(name)
    else:
        _check_options(own[:at])
        if at < len(own) or command or {"-h", "--help", "--version"}.intersection(own):
            return _help(own[at:])
        name = HOME
    module = module_of(name)
    # A command such as `tag` may take words with a leading dash that are not options.
    words, parser = getattr(module, "words", list)(own), parser_of(name)
    if name in PROGRAMS:
        from gpuwatch.cli.options.cases import command_name, program_at
        from gpuwatch.cli.say import say

        if (start := program_at(parser, words)) is not None:
            words, after = words[:start], words[start:]
            known = [option for each in parser.arguments for option in each.option_strings]
            for word in sorted(_HARDLY_OF_A_PROGRAM.intersection(known, after)):
                whose = command_name(after)
                say(f"{word} goes to {whose}; for gpuwatch write it before {after[0]}")
            command = (*after, *(("--", *command) if command else ()))
    if command and name not in _TAKE_WORDS:
        raise UsageError(f"{name} takes no command", f"see `{parser.prog} --help`")
    code: int = module.run(parser.parse_intermixed_args(words), command)
    return code


def command_at(arguments: Sequence[str]) -> int:
    """Index of the command, of words such as ``--plain replay last``: the first that is neither an
    option nor an option's value; the number of words if there is none. Options may be abbreviated,
    as in argparse."""
    at = 0
    while at < len(arguments) and arguments[at].startswith("-"):
        word = arguments[at]
        at += 2 if len(word) > 2 and any(option.startswith(word) for option in VALUED) else 1
    return min(at, len(arguments))


def _check_options(before: Sequence[str]) -> None:
    """Raise ``UsageError`` if one of the words before a command is no option there."""
    from difflib import get_close_matches

    of_home = [option for each in parser_of(HOME).arguments for option in each.option_strings]
    known = ["--record", "--version", *of_home]
    for word in before:
        if word.startswith("--") and not any(o.startswith(word.partition("=")[0]) for o in known):
            close = get_close_matches(word.partition("=")[0], known, n=1, cutoff=0.7)
            hint = f"did you mean {close[0]}?" if close else "see `gpuwatch --help`"
            raise UsageError(f"no option {word}", hint)


def module_of(name: str) -> ModuleType:
    """The module of a command, whose docstring is its help text; for :data:`HOME` that of the home
    screen. Its ``run`` gets the arguments of its ``add_arguments``, and the words after ``--``."""
    file = {"": "home", "--record": "record", "import": "import_"}.get(name, name)
    return import_module(f"gpuwatch.cli.commands.{file.replace('-', '_')}")


def parser_of(name: str) -> Parser:
    """The argument parser of a command or of :data:`HOME`."""
    module = module_of(name)
    parser = Parser(
        prog=f"gpuwatch {name}".rstrip(),
        description=module.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    module.add_arguments(parser)
    if any("SESSION" in str(action.metavar) for action in parser.arguments):
        parser.epilog = SESSION
    return parser


def _split(arguments: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """Split into gpuwatch's own arguments and the user's command after ``--``."""
    words = list(arguments)
    if "--" not in words:
        return words, ()
    at = words.index("--")
    if at == len(words) - 1:
        raise UsageError("no command after --", "gpuwatch run -- COMMAND ARGUMENT...")
    return words[:at], tuple(words[at + 1 :])


def _help(own: Sequence[str]) -> int:
    width = max(map(len, COMMANDS))
    commands = "\n".join(
        (f"\n{_GROUPS[name]}:\n" if name in _GROUPS else "") + f"  {name:{width}}  {what}"
        for name, what in COMMANDS.items()
    ).lstrip()
    longest = max(len(line) for line, _ in EXAMPLES)
    examples = "\n".join(f"  {line:{longest}}  {what}" for line, what in EXAMPLES)
    codes = ", ".join(f"{code} {code.name.replace('_', ' ').lower()}" for code in ExitCode)
    parser = Parser(
        prog="gpuwatch",
        usage="gpuwatch [COMMAND] [...]",
        description="Launch a workload, watch the GPU live, record every run, compare runs.",
        epilog=f"{commands}\n\nexamples:\n{examples}\n\nexit codes: {codes}\n"
        "See `gpuwatch COMMAND --help` for each command.\n",
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
    from shutil import which

    from gpuwatch.core.text import to_paste
    from gpuwatch.workloads.names import TORCHVISION, known, suggest

    if f"{TORCHVISION}{name}" in suggest(name):
        name = f"{TORCHVISION}{name}"
    if name in known() or name.startswith(TORCHVISION):
        return f"{name} is a workload: `gpuwatch run {name}`"
    if name.endswith(".py"):
        return f"{name} is no command; to run it: `{to_paste('run python', name)}`"
    if meant := _MEANT.get(name):
        return f"no command {name!r}; did you mean {meant}?"
    if which(name):
        return f"{name} is no command of gpuwatch; to run it: `{to_paste('run', name)} ...`"
    close = get_close_matches(name, COMMANDS, n=2) or [f"run {each}" for each in suggest(name)]
    close = close or [_MEANT[each] for each in get_close_matches(name, _MEANT, 1, 0.7)]
    return f"no command {name!r}" + (f"; did you mean {' or '.join(close)}?" if close else "")
