"""Rewrite the summary of a study, by default the last, from its sessions; prints where the page is.

Writes summary.json, .md, .csv and .html, and roofline.svg if a run has a point. Of one session of
several in a folder, or of no study, it writes the page alone, beside it.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gpuwatch.cli.commands import resume
from gpuwatch.cli.commands.compare import prices
from gpuwatch.cli.rendering import FORMATS, picture, render
from gpuwatch.cli.say import say
from gpuwatch.cli.screen import terminal
from gpuwatch.cli.selection import session_lookup
from gpuwatch.core import output
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.text import shell, to_paste
from gpuwatch.session.study import study_folder
from gpuwatch.session.study.plan import PLAN
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
    parser.add_argument("study", metavar="STUDY or SESSION", nargs="*", default=["last"])
    parser.add_argument("--format", choices=FORMATS, help="print the summary, write no file")
    parser.add_argument(
        "--short",
        action="store_true",
        help="print the verdicts without their reasons; with --format table write no file",
    )


def run(arguments: argparse.Namespace, command: tuple[str, ...]) -> int:
    if len(arguments.study) > 1:
        compared = to_paste("compare", *arguments.study)
        raise UsageError(
            f"a report is of one study or session, not of {len(arguments.study)}",
            f"{compared} --format html --out comparison.html",
        )
    (named,) = arguments.study
    alone = _alone(named)
    own = study_folder.sessions_in(Path(named))
    folder = Path(named) if own else resume.folder_of(named, "report")
    if not os.access(folder, os.R_OK | os.X_OK):
        raise StorageError(
            f"cannot read {folder}: Permission denied", f"chmod u+rwx {shell(folder)}"
        )
    if not study_folder.sessions_in(folder) and not study_folder.not_run(folder):
        raise UsageError(f"no session in {named}", "see `gpuwatch sessions`")
    from gpuwatch.analysis.study.cost import with_costs
    from gpuwatch.analysis.study.read import read_sessions, read_study

    result = read_study(folder) if alone is None else read_sessions([alone])
    try:
        result = with_costs(result, prices([], result))
    except UsageError as error:  # no reason to lose the summary of a run
        say(f"no costs: {error}")
    if arguments.format or arguments.short:
        look = terminal.columns(), terminal.colours()
        sys.stdout.write(render(result, arguments.format or "table", *look, short=arguments.short))
    if arguments.format:
        return 0
    try:
        page, *others = _write(folder, result, alone)
    except OSError as error:
        raise StorageError(
            f"cannot write the summary to {folder}: {error.strerror}",
            f"{write_hint(folder, error)}, then: {to_paste('report', named)}",
        ) from error
    if not arguments.short:
        print(page)
        if others:
            say(f"beside it: {', '.join(others)}")
    return 0


def _alone(named: str) -> Path | None:
    """The session that ``named`` names, unless it stands for its study: as the only one there, or
    as the last."""
    if os.path.isdir(named) or named == "last":
        return None
    folder, name = session_lookup.target(named)
    stands = os.path.exists(folder / PLAN) and len(study_folder.sessions_in(folder)) < 2
    return folder / name if name and not stands else None


def _write(folder: Path, result: StudyResult, alone: Path | None) -> list[str]:
    """Replace each file atomically, the most needed first; returns the page and the names of the
    others."""
    if alone is not None:
        output.write_text(alone.with_suffix(".html"), render(result, "html"))
        return [str(alone.with_suffix(".html"))]
    drawn = picture(result)
    if drawn:
        output.write_text(folder / study_folder.ROOFLINE, drawn)
    roofline = study_folder.ROOFLINE if drawn else None
    for name, form in FILES.items():
        output.write_text(folder / name, render(result, form, roofline=roofline))
    *names, page = FILES
    return [str(folder / page), *names, *([roofline] if roofline else [])]
