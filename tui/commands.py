"""gpuwatch's own commands as subprocesses: the only way in which screens act; and the report that
they write of a study or of several sessions."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from gpuwatch.core import models
from gpuwatch.core import paths as places
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.text import clean, shell
from gpuwatch.own_command import OWN_COMMAND
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.plan import PLAN
from gpuwatch.session.study.study_folder import sessions_in

LIST_COMMAND = ("sessions", "--format", "json")
TIMEOUT_SECONDS = 120.0
"""Preparing an environment may pull an image; nobody waits longer for an answer."""
NO_ANSWER = 124
"""Exit code of a command that took longer."""

PREFIX: tuple[str, ...] = OWN_COMMAND


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

    def about(self, path: Path) -> str:
        """What it said of the session ``path``, which is named short: a row holds no whole path."""
        text = self.word if self.good else self.complaint
        return text.replace(str(path), path.name).replace(str(path.parent), path.parent.name)


async def run(
    *arguments: str, timeout: float = TIMEOUT_SECONDS, outlives: bool = False, folder: str = ""
) -> Outcome:
    """Run ``gpuwatch ARGUMENTS`` in ``folder``, or here; unless it ``outlives`` the caller, it is
    ended with that.

    What takes longer than ``timeout`` seconds has exit code :data:`NO_ANSWER`; it is ended too, or
    goes on where it outlives.
    """
    # Into files: one that outlives this program would write into a pipe that nobody holds.
    with TemporaryFile() as out, TemporaryFile() as err:
        starting = asyncio.ensure_future(
            asyncio.get_running_loop().subprocess_exec(
                _Process,
                *PREFIX,
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
                cwd=folder or None,
            )
        )
        try:
            transport, process = await asyncio.shield(starting)
        except asyncio.CancelledError:
            await _end(*await starting, outlives=outlives)
            raise
        try:
            await asyncio.wait_for(process.over.wait(), timeout)
        except asyncio.TimeoutError:
            return Outcome(NO_ANSWER, "", f"no answer after {timeout:.0f} s")
        finally:
            await _end(transport, process, outlives=outlives)
        code = transport.get_returncode()
        for file in (out, err):
            file.seek(0)
        told = (file.read().decode("utf-8", "replace") for file in (out, err))
        return Outcome(NO_ANSWER if code is None else code, *told)


class _Process(asyncio.SubprocessProtocol):
    def __init__(self) -> None:
        self.over = asyncio.Event()

    def process_exited(self) -> None:
        self.over.set()


async def _end(
    transport: asyncio.SubprocessTransport, process: _Process, *, outlives: bool
) -> None:
    """Leave nothing of it behind, unless it goes on and outlives this program."""
    if outlives and not process.over.is_set():
        return
    try:
        if not process.over.is_set():
            with contextlib.suppress(ProcessLookupError):
                transport.terminate()
            await process.over.wait()
    finally:
        # A transport that is collected behind the end of the loop complains on the terminal.
        transport.close()


@dataclass(frozen=True)
class Entry:
    """One session of the list."""

    path: Path
    status: str
    workload: str
    environment: str
    started: str
    seconds: float | None
    step_seconds: float | None
    samples_per_second: float | None
    study: str
    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    """Lines joined by newlines."""
    run: int | None = None
    """Its place in the plan of a study of several runs, from 1 on."""
    block: int | None = None
    """0 is the warm-up block."""
    labels_problem: str = ""
    """Why names, tags and notes of its folder are not known."""
    status_text: str = ""
    """How it ended, in a sentence."""
    reason: str = ""
    """Of one that failed what it said about that."""
    failure: str = ""
    """Of one that failed why, in few words."""
    command: str = ""
    """What ran, with its arguments."""
    command_label: str = ""
    """The label of a command that was compared with others."""
    mfu: float | None = None
    peak_memory: float | None = None
    """Bytes of GPU memory."""
    peak_memory_is_bound: bool = False
    """Whether that is at most so much."""

    @property
    def ran(self) -> str:
        """What ran, with its label if it has one, and its arguments where they are known."""
        ran = self.command or self.workload
        return f"{self.command_label}: {ran}" if self.command_label else ran


@dataclass(frozen=True)
class Study:
    """A study of several runs."""

    path: Path
    study: str
    """The folder's name."""
    name: str = ""
    tags: tuple[str, ...] = ()
    note: str = ""
    """Lines joined by newlines."""
    labels_problem: str = ""
    """As of a session."""
    title: str = ""
    question: str = ""
    environments: tuple[str, ...] = ()
    """The baseline first."""
    runs: int | None = None
    """As planned."""
    commands: tuple[str, ...] = ()
    """What it runs."""
    going_on: bool = False
    """A recorder goes through it, maybe between two runs."""
    waits: str = ""
    """Of a study at a place without any run yet: the state of its job, such as ``queued``."""
    placement: str = ""
    """Of a study at a place that is not over: where, and in which state."""
    says: tuple[tuple[str, str], ...] = ()
    """Kind and sentence of each verdict so far, then of sweeps and of the noise."""


@dataclass(frozen=True)
class Listed:
    """The sessions, newest first, and the studies that several of them are of."""

    entries: tuple[Entry, ...] = ()
    studies: tuple[Study, ...] = ()


async def sessions() -> tuple[Listed, str | None]:
    """The saved and running sessions as the command lists them, and a complaint if it failed."""
    outcome = await run(*LIST_COMMAND)
    return await asyncio.to_thread(listed_of, outcome)


def listed_of(outcome: Outcome) -> tuple[Listed, str | None]:
    """The list that the command wrote, and a complaint if it failed."""
    if not outcome.good:
        return Listed(), outcome.complaint
    try:
        found = json.loads(outcome.out)
        return Listed(
            tuple(map(entry, found["sessions"])), tuple(map(_study, found["studies"]))
        ), None
    except (ValueError, KeyError, TypeError, AttributeError):
        return Listed(), "the list of sessions could not be read"


def entry(item: dict[str, Any]) -> Entry:
    """A session of ``gpuwatch sessions --format json``."""
    texts = ("environment", "started", "status_text", "reason", "failure", "command")
    told: dict[str, Any] = {key: clean(item.get(key) or "") for key in (*texts, "command_label")}
    return Entry(
        **_labels(item),
        **told,
        status=clean(item.get("status") or "unknown"),
        workload=clean(item.get("workload") or "unknown"),
        seconds=_number(item.get("seconds")),
        step_seconds=_number(item.get("step_median_seconds")),
        samples_per_second=_number(item.get("samples_per_second")),
        mfu=_number(item.get("mfu")),
        peak_memory=_number(item.get("peak_gpu_memory_bytes")),
        peak_memory_is_bound=item.get("peak_gpu_memory_method") == Method.BOUND.value,
        run=_whole(item.get("run")),
        block=_whole(item.get("block")),
    )


def _study(item: dict[str, Any]) -> Study:
    placement = item.get("placement") or {}
    return Study(
        **_labels(item),
        title=clean(item.get("title") or ""),
        question=clean(item.get("question") or ""),
        environments=tuple(map(clean, item.get("environments") or ())),
        runs=_whole(item.get("runs")),
        commands=tuple(map(clean, item.get("commands") or ())),
        going_on=item.get("going_on") is True,
        waits=clean(placement.get("state") or "") if not item.get("sessions") else "",
        placement=clean(placement.get("text") or "")
        if item.get("going_on") or placement.get("in_part")
        else "",
        says=tuple((clean(each["kind"]), clean(each["text"])) for each in item.get("says") or ()),
    )


def _labels(item: dict[str, Any]) -> dict[str, Any]:
    """What a session and a study have in common."""
    note = str(item.get("note") or "").splitlines()
    return {
        "path": Path(str(item["path"])),
        **{key: clean(item.get(key) or "") for key in ("study", "name", "labels_problem")},
        "tags": tuple(map(clean, item.get("tags") or ())),
        "note": "\n".join(clean(line).rstrip() for line in note),
    }


def _number(value: object) -> float | None:
    known = models.number(value)
    return None if known is None else float(known)


def _whole(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def record(arguments: Sequence[str]) -> tuple[str, ...]:
    """The command that starts a run and returns: its output names the first session."""
    return ("--record", "--detach", *arguments)


def session_path(outcome: Outcome) -> Path | None:
    """The session that ``--record --detach`` names."""
    line = outcome.out.strip()
    return Path(line) if line.endswith(SUFFIX) else None


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

    ``paths``: a study's folder, a session, or sessions to compare, the baseline first. A study's
    summary is written to its folder again, the page of a session of no study beside it; a
    comparison, and the report of a study in a read-only folder, go into a new file in the current
    folder or, if that is read-only, in the folder of the studies. ``margin``, ``across_devices``
    and ``across_commands``: as for ``gpuwatch compare``.

    Nothing is raised: the text says what went wrong.
    """
    export = export_of(
        paths, margin=margin, across_devices=across_devices, across_commands=across_commands
    )
    outcome = await run(*export.arguments, timeout=_TIMEOUT_SECONDS, outlives=True)
    if not outcome.good:
        return f"no report: {outcome.complaint}"
    return f"report: {_short_path(export.page)}   fetch it: {fetch(export.page)}"


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


def study_of(paths: Sequence[Path]) -> Path | None:
    """The study's folder if ``paths`` are a whole study or one session of it, else ``None``."""
    alone = len(paths) == 1
    folder = paths[0] if alone and paths[0].is_dir() else paths[0].parent
    planned = (folder / PLAN).exists()
    return folder if planned and (alone or list(paths) == sessions_in(folder)) else None


def _new_page() -> Path:
    """A new file name in the current folder or, if that is read-only, in the folder of the
    studies."""
    here = Path.cwd()
    folder = here if os.access(here, os.W_OK) else places.data_home()
    stem = f"gpuwatch-compare-{time.strftime('%Y%m%d-%H%M%S')}"
    names = (f"{stem}{'' if at == 1 else f'-{at}'}.html" for at in range(1, 10_000))
    return next(folder / name for name in names if not (folder / name).exists())
