"""gpuwatch's own commands as subprocesses: the only way in which screens act; and the report that
they write of a study or of several sessions."""

from __future__ import annotations

import asyncio
import os
import platform
import subprocess
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from gpuwatch.core import paths as places
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.text import clean, shell
from gpuwatch.own_command import OWN_COMMAND
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.study_folder import sessions_in

TIMEOUT_SECONDS = 120.0
"""Preparing an environment may pull an image; nobody waits longer for an answer."""
NO_ANSWER = 124
"""Exit code of a command that took longer."""

_POLL_SECONDS = 0.02

PREFIX: tuple[str, ...] = OWN_COMMAND
Process = subprocess.Popen[bytes]


@dataclass(frozen=True)
class Outcome:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def good(self) -> bool:
        return self.code == 0

    @property
    def word(self) -> str:
        """The last line on standard error, where commands talk."""
        lines = [line for line in self.err.splitlines() if line.strip()]
        return clean(lines[-1]).removeprefix("gpuwatch: ") if lines else ""

    @property
    def complaint(self) -> str:
        """The line that says what is wrong."""
        return self.word or f"the command ended with exit code {self.code} and said nothing"

    def about(self, path: Path, name: str = "") -> str:
        """What it said of the session ``path``, with its ``name``: a row holds no whole path."""
        text = self.word if self.good else self.complaint
        text = text.replace(str(path), name or path.name)
        return text.replace(str(path.parent), path.parent.name)


async def run(
    *arguments: str,
    timeout: float = TIMEOUT_SECONDS,
    outlives: bool = False,
    folder: str = "",
    began: Callable[[Process], None] = lambda _: None,
) -> Outcome:
    """Run ``gpuwatch ARGUMENTS`` in ``folder``, or here; unless it ``outlives`` the caller, it is
    ended with that. ``began`` is given its process.

    What takes longer than ``timeout`` seconds has exit code :data:`NO_ANSWER`; it is ended too, or
    goes on where it outlives.
    """
    # Into files: one that outlives this program would write into a pipe that nobody holds.
    with TemporaryFile() as out, TemporaryFile() as err:
        # None of asyncio's, which complain on the terminal where they end after its loop.
        process = subprocess.Popen(
            [*PREFIX, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
            cwd=folder or None,
        )
        began(process)
        try:
            code = await asyncio.wait_for(_end(process), timeout)
        except asyncio.TimeoutError:
            return Outcome(NO_ANSWER, "", f"no answer after {timeout:.0f} s")
        finally:
            if not outlives:
                process.terminate()
                await _end(process)
        for file in (out, err):
            file.seek(0)
        return Outcome(code, *(file.read().decode("utf-8", "replace") for file in (out, err)))


async def _end(process: Process) -> int:
    """Its exit code, once it is over."""
    while (code := process.poll()) is None:
        await asyncio.sleep(_POLL_SECONDS)
    return code


def recorded(outcome: Outcome) -> list[Path]:
    """What ``--record --detach`` names: its first session, at places the folder of each study."""
    return [Path(line) for line in outcome.out.split("\n") if line]


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
    paths: Sequence[Path], writing: dict[Path, Process] | None = None, **judging: Any
) -> str:
    """Write the report of ``paths``; returns where it is, or over SSH how to fetch it.

    ``paths``: a study's folder, a session, or sessions to compare, the baseline first. A study's
    summary is written to its folder again, the page of a session of no study beside it; a
    comparison, and the report of a study in a read-only folder, go into a new file in the current
    folder or, if that is read-only, in the folder of the studies. ``writing`` has its page and
    process until this has returned. ``judging``: ``margin``, ``across_devices`` and
    ``across_commands``, as for ``gpuwatch compare``.

    Nothing is raised: the text says what went wrong.
    """
    export, writing = export_of(paths, **judging), {} if writing is None else writing
    outcome = await run(
        *export.arguments,
        timeout=_TIMEOUT_SECONDS,
        outlives=True,
        began=partial(writing.__setitem__, export.page),
    )
    writing.pop(export.page, None)
    return _report(export.page) if outcome.good else f"no report: {outcome.complaint}"


def left_behind(page: Path, process: Process, patience: float = 5.0) -> str:
    """What became of a report whose screen was left while it was written, after ``patience``
    seconds at most; then it goes on."""
    try:
        code = process.wait(patience)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        return f"report not finished, it is still being written: {page}"
    return f"no report: exit code {code}" if code else _report(page)


def _report(page: Path) -> str:
    """Where it is."""
    home = Path.home()
    in_home = page.relative_to(home) if page.is_relative_to(home) else None
    if "SSH_CONNECTION" in os.environ:
        return f"report; fetch it: scp {platform.node() or 'HOST'}:{shell(in_home or page)} ."
    return f"report: {page if in_home is None else '~' / in_home}"


def export_of(
    paths: Sequence[Path],
    *,
    margin: float | None = None,
    across_devices: bool = False,
    across_commands: bool = False,
) -> Export:
    """The command for a report of ``paths``; see :func:`export_report`."""
    listed = [path.absolute() for path in paths]
    folder = study_of(listed)
    if len(listed) == 1 and listed[0].is_dir():
        listed = sessions_in(listed[0])
    sessions = listed if folder is None else sessions_in(folder)
    as_it_is = margin is None and not across_devices and not across_commands
    in_place = len(sessions) < 2 or (as_it_is and folder is not None and os.access(folder, os.W_OK))
    if folder is not None and in_place:
        return Export(("report", str(folder)), folder / PAGE)
    if len(sessions) == 1:
        return Export(("report", str(sessions[0])), sessions[0].with_suffix(".html"))
    # A new file in the current folder or, if that is read-only, in the folder of the studies.
    here = Path.cwd() if os.access(Path.cwd(), os.W_OK) else places.data_home()
    stem = f"gpuwatch-compare-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (f"{stem}{'' if at == 1 else f'-{at}'}.html" for at in range(1, 10_000))
    page = next(here / name for name in names if not (here / name).exists())
    options = [] if margin is None else ["--margin", f"{100 * margin:.9g}%"]
    options += ["--across-devices"] if across_devices else []
    options += ["--across-commands"] if across_commands else []
    # A whole study is given as its folder, to be compared in blocks, with the runs missing.
    compared = [folder] if folder is not None else sessions
    arguments = [*map(str, compared), *options, "--format", "html", "--out", str(page)]
    return Export(("compare", *arguments), page)


def study_of(paths: Sequence[Path]) -> Path | None:
    """The study's folder if ``paths`` are a whole study or one session of it, else ``None``."""
    alone = len(paths) == 1
    folder = paths[0] if alone and paths[0].is_dir() else paths[0].parent
    planned = (folder / PLAN).exists()
    return folder if planned and (alone or list(paths) == sessions_in(folder)) else None
