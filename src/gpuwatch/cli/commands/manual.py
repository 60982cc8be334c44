"""Print the manual page, generated from the same parsers as --help.

gpuwatch manual | man -l -
gpuwatch manual > ~/.local/share/man/man1/gpuwatch.1   (then: man gpuwatch)
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable, Iterator
from functools import partial

from gpuwatch import __version__
from gpuwatch.cli.dispatch import COMMANDS, EXAMPLES, EXIT_CODES, HOME, SESSION, parser_of
from gpuwatch.cli.parser import Parser
from gpuwatch.cli.shell.completion_table import help_of

_WIDTH = 76
_CODES = {
    0: "also a run that was stopped by gpuwatch stop, SIGTERM, SIGHUP or --duration",
    1: "or its end could not be saved",
    2: "also a file or folder that cannot be read or written",
    3: "also an interpreter or a GPU; also recording on a system other than Linux",
    130: "by Ctrl-C",
}
_VARIABLES = (
    ("NO_COLOR", "if set, no colours: states are shown by words, marks and weight"),
    ("TERM, COLORTERM, COLORFGBG", "what the terminal can show, and whether it is light"),
    ("LC_ALL, LC_CTYPE, LANG", "with an encoding other than UTF-8 only ASCII is printed"),
    ("COLUMNS", "width of the output"),
    ("XDG_DATA_HOME", "studies, images and ceilings are in its folder gpuwatch"),
    ("XDG_STATE_HOME", "running runs are in its folder gpuwatch"),
    ("VIRTUAL_ENV, CONDA_PREFIX", "where the bare environment looks for an interpreter first"),
    ("DOCKER_HOST, DOCKER_CONTEXT", "the Docker daemon to use; it must be on this machine"),
    ("CH_IMAGE_STORAGE", "where Charliecloud keeps images, for gpuwatch doctor --images"),
    ("CUDA_VISIBLE_DEVICES", "which GPUs a workload may use, in every environment; best by UUID"),
    ("GPUWATCH_WORKLOAD_TRACEBACK", "1: a failing workload also shows its traceback"),
)
_FILES = (
    ("~/.local/share/gpuwatch/studies/STUDY/", "a study: one command with all its runs"),
    (
        "STUDY/plan.json, STUDY/*.gpuwatch",
        "the plan, and a session for each run: an SQLite database",
    ),
    ("STUDY/summary.md, .html, .json, .csv", "the result of the study, rewritten after each run"),
    ("~/.local/share/gpuwatch/ceilings/", "the results of gpuwatch calibrate"),
    ("~/.local/share/gpuwatch/images/", "images that gpuwatch made or fetched"),
    ("~/.local/state/gpuwatch/runs/", "a folder for each running run"),
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The command has no arguments."""


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    sys.stdout.write(page())
    return 0


def page() -> str:
    """``gpuwatch(1)``: all commands with their flags, exit codes, variables and files."""
    lines = [
        f'.TH GPUWATCH 1 "" "gpuwatch {__version__}" "User Commands"',
        ".ad l",
        ".nh",
        *_section("NAME"),
        r"gpuwatch \- launch a workload, watch the GPU live, record every run, compare runs",
        *_section("SYNOPSIS"),
        r".B gpuwatch",
        r"[\fICOMMAND\fR] [...]",
        *_section("DESCRIPTION"),
        *_text(_ABOUT),
        *_text(SESSION),
        *_section("COMMANDS"),
        *_items((name, what) for name, (_, what) in COMMANDS.items()),
        *_section("OPTIONS WITHOUT A COMMAND"),
        *_items(
            [
                ("--help", "list the commands, or after a command its flags"),
                ("--version", "print the version"),
            ]
        ),
        *_options(parser_of(HOME), HOME, ()),
    ]
    shared = [_line(action) for action in parser_of("run").arguments]
    for name in COMMANDS:
        lines += _command(name, () if name == "run" else shared)
    lines += [
        *_section("EXIT STATUS"),
        *_items((str(code), f"{what}; {_CODES[code]}") for code, what in EXIT_CODES),
        *_section("ENVIRONMENT"),
        *_items(_VARIABLES),
        *_section("FILES"),
        *_items(_FILES),
        *_section("EXAMPLES"),
        *_items(EXAMPLES),
        *_section("SEE ALSO"),
        *_text("nvidia-smi(1), docker(1), apptainer(1)"),
    ]
    return "\n".join(lines) + "\n"


_ABOUT = """\
gpuwatch runs a training workload bare or in a container, samples the GPUs, the processors and the
workload itself, and records everything to a session file. Every screen and report is a view of such
files: closing one, or losing the connection, does not affect the run. On a screen ? lists its keys.

Standard output is data, standard error is messages. Your own command goes after --."""


def _command(name: str, shared: Iterable[str]) -> Iterator[str]:
    parser = parser_of(name)
    parser.formatter_class = partial(argparse.RawDescriptionHelpFormatter, width=_WIDTH)
    usage = parser.format_usage().removeprefix("usage: ").rstrip()
    yield from _section(f"gpuwatch {name}")
    yield from _block(usage.splitlines())
    yield from _text((parser.description or COMMANDS[name][1]).strip())
    yield from _options(parser, name, shared)


def _options(parser: Parser, command: str, shared: Iterable[str]) -> Iterator[str]:
    """The options with their help; those in ``shared``, of ``gpuwatch run``, by name only."""
    known = {*shared}
    actions = [
        action
        for action in parser.arguments
        if action.help is not argparse.SUPPRESS and "--help" not in action.option_strings
    ]
    explained = [action for action in actions if action.help and _line(action) not in known]
    yield from _items((_named(action), help_of(action, command)) for action in explained)
    plain = [_named(action) for action in actions if action.option_strings and not action.help]
    if plain:
        yield from _text(f"Further: {', '.join(plain)}.")
    alike = [action for action in actions if action.option_strings and _line(action) in known]
    same = [action.option_strings[-1] for action in alike]
    if same:
        yield from _text(f"As for gpuwatch run: {', '.join(same)}.")


def _line(action: argparse.Action) -> str:
    return f"{_named(action)} {action.help}"


def _named(action: argparse.Action) -> str:
    """``--steps N``, ``WORKLOAD``."""
    value = "" if action.nargs == 0 else action.metavar or action.dest.upper()
    if action.choices is not None:
        value = "|".join(map(str, action.choices))
    value = f"[{value}]" if action.option_strings and action.nargs == "?" else str(value)
    return " ".join(filter(None, [", ".join(action.option_strings), value]))


def _section(title: str) -> Iterator[str]:
    yield f'.SH "{_escaped(title)}"'


def _items(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for name, what in pairs:
        yield ".TP"
        yield rf"\fB{_escaped(name)}\fR"
        yield _start(_escaped(what))


def _text(text: str) -> Iterator[str]:
    """Paragraphs; one whose lines all begin with two spaces is kept verbatim."""
    for paragraph in re.split(r"\n\s*\n", text):
        yield ".PP"
        lines = paragraph.splitlines()
        if all(line.startswith("  ") for line in lines):
            yield from _block(lines)
        else:
            yield _start(_escaped(" ".join(line.strip() for line in lines)))


def _block(lines: Iterable[str]) -> Iterator[str]:
    yield from (".PP", ".nf", *(_start(_escaped(line)) for line in lines), ".fi")


def _escaped(text: str) -> str:
    """Escape for roff; dashes become those that can be copied into a command line."""
    text = text.replace("\\", r"\e").replace("-", r"\-").replace('"', r"\(dq")
    return text.replace("[,", r"\:[,")  # allow a line break there


def _start(line: str) -> str:
    """A line of text, protected from being read as a roff request."""
    return rf"\&{line}" if line.startswith((".", "'")) else line
