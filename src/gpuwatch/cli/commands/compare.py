"""Sessions and studies against the first: a verdict where there are runs enough, and its reasons.

Of a study's folder and of a tag it takes all sessions. A study alone is compared in its own blocks.
Sessions saved at different times, and several studies, are compared as groups that no block pairs:
what drifted between them is in the difference.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from gpuwatch.cli.options import screen_options
from gpuwatch.cli.options.launch import margin
from gpuwatch.cli.rendering import FORMATS, render
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core import output
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.text import to_paste
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study import study_folder
from gpuwatch.session.writing.write_hints import room


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("session", nargs="+", metavar="SESSION")
    parser.add_argument(
        "--across-devices",
        action="store_true",
        help="compare runs on different GPUs or processors too, which else is no verdict",
    )
    parser.add_argument(
        "--margin",
        type=margin,
        metavar="PERCENT",
        help="change of the step time that does not matter, such as 0.5%% (default: the study's, "
        "or 1%%)",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        help="read every sample and every step of long sessions, which takes its time",
    )
    screen_options.add_arguments(parser)
    parser.add_argument("--format", choices=FORMATS, help="instead of the screen")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FILE",
        help="with --format: write it to a new file; one that is there stays as it is",
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    found = list(
        dict.fromkeys(path for text in arguments.session for path in session_lookup.sessions(text))
    )
    if len(found) < 2:
        for path in found:
            SessionReader(path).close()  # what is no session is told as that
        what = f"{found[0]} is one session" if found else "there is no session"
        raise UsageError(
            f"{what}; a comparison takes two or more", f"its figures: {to_paste('show', found[0])}"
        )
    out: Path | None = arguments.out
    if out is not None and arguments.format is None:
        raise UsageError("--out is of a format, and none is named", "add --format html")
    if out is not None and os.path.lexists(out):
        raise _taken(out)
    options = {"across_devices": arguments.across_devices, "margin": arguments.margin}
    if arguments.format is None and terminal.usable() and not arguments.plain:
        from gpuwatch.tui.app import run_compare

        return run_compare(
            found, **options, exact=arguments.exact, look=screen_options.look(arguments)
        )
    from gpuwatch.analysis.study.read import read, read_exactly, read_sessions, read_study
    from gpuwatch.cli.parallel_read import read_beside

    folder = _whole_study(arguments.session, found)
    with read_beside(found, read_exactly if arguments.exact else read) as reading:
        options["reading"] = reading
        if folder is None:
            result = read_sessions(found, **options)
        else:
            result = read_study(folder, **options)
    text = render(result, arguments.format or "table", columns=terminal.columns())
    if out is None:
        sys.stdout.write(text)
    else:
        _write(out, text)
    return 0


def _write(out: Path, text: str) -> None:
    """Make the file ``out``, all of it or none."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        with output.asked_for(out, new=True) as file:
            file.write(text.encode())
    except FileExistsError as error:
        if os.path.lexists(out):
            raise _taken(out) from None
        why = f"{out.parent} is no folder"
        raise StorageError(f"cannot write {out}: {why}", "choose another --out") from error
    except OSError as error:
        raise StorageError(f"cannot write {out}: {error.strerror}", room(out, error)) from error


def _taken(out: Path) -> UsageError:
    return UsageError(f"{out} is there already", "name a file that is not, or remove it")


def _whole_study(named: list[str], found: list[Path]) -> Path | None:
    """The folder, where one study was named and nothing else."""
    folder = found[0].parent
    alone = len(named) == 1 and len({path.parent for path in found}) == 1
    return folder if alone and len(found) == len(study_folder.sessions_in(folder)) else None
