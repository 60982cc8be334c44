"""Rewrite the summary of a study, by default the last, from its sessions; prints where the page is.

Writes summary.json, .md, .csv and .html, and roofline.svg if a run has a point.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli.commands import resume
from gpuwatch.cli.rendering import FORMATS, picture, render
from gpuwatch.cli.screen import terminal
from gpuwatch.core import output
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.text import shell, to_paste
from gpuwatch.session.study import study_folder
from gpuwatch.session.writing.write_hints import write_hint

if TYPE_CHECKING:
    from gpuwatch.analysis.results import StudyResult

FILES = {
    study_folder.SUMMARY_JSON: "json",
    study_folder.SUMMARY_MARKDOWN: "md",
    "summary.csv": "csv",
    "summary.html": "html",
}
"""File names in the study's folder, with their formats."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("study", metavar="STUDY", nargs="?", default="last")
    parser.add_argument("--format", choices=FORMATS, help="print the summary, write no file")
    parser.add_argument(
        "--short",
        action="store_true",
        help="print the verdicts without their reasons; with --format table write no file",
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    folder = Path(arguments.study)
    if not os.path.isdir(folder):
        folder = resume.folder_of(arguments.study)
    if not os.access(folder, os.R_OK | os.X_OK):
        raise StorageError(
            f"cannot read {folder}: Permission denied", f"chmod u+rwx {shell(folder)}"
        )
    if not study_folder.sessions_in(folder) and not study_folder.not_run(folder):
        raise UsageError(f"no session in {folder}", "see `gpuwatch sessions`")
    from gpuwatch.analysis.study.read import read_study

    result = read_study(folder)
    if arguments.format:
        columns = terminal.columns()
        short = arguments.short
        sys.stdout.write(render(result, arguments.format, columns=columns, short=short))
        return 0
    if arguments.short:
        sys.stdout.write(render(result, "table", columns=terminal.columns(), short=True))
    try:
        _write(folder, result)
    except OSError as error:
        raise StorageError(
            f"cannot write the summary to {folder}: {error.strerror}",
            f"{write_hint(folder, error)}, then: {to_paste('report', folder)}",
        ) from error
    if not arguments.short:
        print(folder / "summary.html")
    return 0


def _write(folder: Path, result: StudyResult) -> None:
    """Replace each file atomically, the most needed first."""
    drawn = picture(result)
    if drawn:
        output.write_text(folder / study_folder.ROOFLINE, drawn)
    roofline = study_folder.ROOFLINE if drawn else None
    for name, form in FILES.items():
        output.write_text(folder / name, render(result, form, roofline=roofline))
