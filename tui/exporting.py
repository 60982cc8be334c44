"""The report of a study, or of sessions that were put together, as files: by gpuwatch's commands.

Of a whole study it is the summary in its folder, made anew; else a page with a name of its own,
which replaces nothing.
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
"""What a person opens of a study's summary."""
_TIMEOUT_SECONDS = 1800.0
"""Long sessions are read whole."""


@dataclass(frozen=True)
class Export:
    """The command that writes a report, and the page that it makes."""

    arguments: tuple[str, ...]
    page: Path


async def export_report(
    paths: Sequence[Path], *, margin: float | None = None, across_devices: bool = False
) -> str:
    """Write the report of ``paths`` and say where it is and, behind three blanks, how to fetch it.

    ``paths``: a study's folder, a session, which stands for its study, or sessions to compare, the
    first the baseline. A study's summary is made anew in its folder; other reports, and that of a
    study whose folder cannot be written, go into a new file in the current folder, else beside the
    studies. ``margin`` and ``across_devices`` are those of ``gpuwatch compare``.

    What goes wrong is what is said: nothing is raised, and no file is replaced but a summary.
    """
    export = export_of(paths, margin=margin, across_devices=across_devices)
    if isinstance(export, str):
        return export
    outcome = await commands.run(*export.arguments, timeout=_TIMEOUT_SECONDS, outlives=True)
    if not outcome.good:
        return f"no report: {outcome.complaint}"
    return f"report: {_short_path(export.page)}   fetch it: {fetch(export.page)}"


def export_of(
    paths: Sequence[Path], *, margin: float | None = None, across_devices: bool = False
) -> Export | str:
    """What to run for a report of ``paths``, or why there is none; see :func:`export_report`."""
    listed = [path.absolute() for path in paths]
    folder = _study_of(listed)
    if len(listed) == 1 and listed[0].is_dir():
        listed = sessions_in(listed[0])
    as_it_is = margin is None and not across_devices
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
    # A whole study by its name: it is compared in its own blocks, with what did not run.
    compared = [folder] if folder is not None else sessions
    arguments = [*map(str, compared), *options, "--format", "html", "--out", str(page)]
    return Export(("compare", *arguments), page)


def _short_path(page: Path) -> str:
    """``~/study/summary.html``: what is in one's own folder is told from there."""
    home = Path.home()
    return f"~/{page.relative_to(home)}" if page.is_relative_to(home) else str(page)


def fetch(page: Path) -> str:
    """The command that copies ``page`` from this machine, to be given on another one."""
    return f"scp {platform.node() or 'HOST'}:{shell(page)} ."


def _study_of(paths: Sequence[Path]) -> Path | None:
    """The folder, where ``paths`` are a study as a whole, or one session of it.

    Without a plan that is a session which is alone, and has no file of the summary's name beside it
    that may be someone's own.
    """
    alone = len(paths) == 1
    folder = paths[0] if alone and paths[0].is_dir() else paths[0].parent
    sessions = sessions_in(folder)
    whole = (alone and folder == paths[0]) or list(paths) == sessions
    if (folder / PLAN).exists():
        return folder if whole or alone else None
    return folder if whole and len(sessions) == 1 and not (folder / PAGE).exists() else None


def _new_page() -> Path:
    """A name that no file has, in the current folder or, where that takes none, by the studies."""
    here = Path.cwd()
    folder = here if os.access(here, os.W_OK) else places.data_home()
    stem = f"gpuwatch-compare-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (f"{stem}{'' if at == 1 else f'-{at}'}.html" for at in range(1, 10_000))
    return next(folder / name for name in names if not (folder / name).exists())
