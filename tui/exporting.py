"""Writes the report of a study or of several sessions, by running gpuwatch's commands.

For a whole study that renews the summary in its folder; otherwise it is a page with a new name.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path

from gpuwatch.core import paths as places
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import shell
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.study_folder import sessions_in
from gpuwatch.tui import commands

PAGE = "summary.html"
"""The file of a study's summary to open."""
_TIMEOUT_SECONDS = 1800.0
"""A report reads long sessions in full."""


@dataclass(frozen=True)
class Export:
    """The command that writes a report, and the page that it writes."""

    arguments: tuple[str, ...]
    page: Path


async def export_report(
    paths: Sequence[Path],
    *,
    margin: float | None = None,
    across_devices: bool = False,
    across_commands: bool = False,
) -> str:
    """Write the report of ``paths``; returns where it is and, after three blanks, how to fetch it.

    ``paths``: a study's folder, a session of a study, or sessions to compare, the baseline first. A
    study's summary is written to its folder again; other reports, and that of a study in a
    read-only folder, go into a new file in the current folder or, if that is read-only, in the
    folder of the studies. ``margin``, ``across_devices`` and ``across_commands``: as for ``gpuwatch
    compare``.

    Nothing is raised: the text says what went wrong. Only a summary is ever overwritten.
    """
    export = export_of(
        paths, margin=margin, across_devices=across_devices, across_commands=across_commands
    )
    if isinstance(export, str):
        return export
    outcome = await commands.run(*export.arguments, timeout=_TIMEOUT_SECONDS, outlives=True)
    if not outcome.good:
        return f"no report: {outcome.complaint}"
    return f"report: {_short_path(export.page)}   fetch it: {fetch(export.page)}"


def export_of(
    paths: Sequence[Path],
    *,
    margin: float | None = None,
    across_devices: bool = False,
    across_commands: bool = False,
) -> Export | str:
    """The command for a report of ``paths``, or why there is none; see :func:`export_report`."""
    listed = [path.absolute() for path in paths]
    folder = _study_of(listed)
    if len(listed) == 1 and listed[0].is_dir():
        listed = sessions_in(listed[0])
    as_it_is = margin is None and not across_devices and not across_commands
    if folder is not None and as_it_is and os.access(folder, os.W_OK):
        return Export(("report", str(folder)), folder / PAGE)
    sessions = listed if folder is None else sessions_in(folder)
    if len(sessions) < 2:
        if folder is None:
            return "no report: the session is of no study; mark another one to compare it with"
        return f"no report: {folder} cannot be written"
    page = _new_page()
    options = [] if margin is None else ["--margin", f"{100 * margin:.9g}%"]
    options += ["--across-devices"] if across_devices else []
    options += ["--across-commands"] if across_commands else []
    # A whole study is given as its folder, to be compared in blocks, with the runs missing.
    compared = [folder] if folder is not None else sessions
    arguments = [*map(str, compared), *options, "--format", "html", "--out", str(page)]
    return Export(("compare", *arguments), page)


def _short_path(page: Path) -> str:
    """``~/study/summary.html`` for a page in the home folder, else the full path."""
    home = Path.home()
    return f"~/{page.relative_to(home)}" if page.is_relative_to(home) else str(page)


def fetch(page: Path) -> str:
    """The command that copies ``page`` from this machine, to be run on another one."""
    return f"scp {platform.node() or 'HOST'}:{shell(page)} ."


def _study_of(paths: Sequence[Path]) -> Path | None:
    """The study's folder if ``paths`` are a whole study or one session of it, else ``None``.

    Without a plan, that is a single session in a folder that has no file with the summary's name,
    which might be the user's own.
    """
    alone = len(paths) == 1
    folder = paths[0] if alone and paths[0].is_dir() else paths[0].parent
    sessions = sessions_in(folder)
    whole = (alone and folder == paths[0]) or list(paths) == sessions
    if (folder / PLAN).exists():
        return folder if whole or alone else None
    return folder if whole and len(sessions) == 1 and not (folder / PAGE).exists() else None


def _new_page() -> Path:
    """A new file name in the current folder or, if that is read-only, in the folder of the
    studies."""
    here = Path.cwd()
    folder = here if os.access(here, os.W_OK) else places.data_home()
    stem = f"gpuwatch-compare-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (f"{stem}{'' if at == 1 else f'-{at}'}.html" for at in range(1, 10_000))
    return next(folder / name for name in names if not (folder / name).exists())
