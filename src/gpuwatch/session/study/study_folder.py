"""A study on disk: the folder of one command, with its plan, its sessions and its summary."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from gpuwatch.core import output, paths
from gpuwatch.core.errors import StorageError, UsageError
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.models import Problem
from gpuwatch.core.processes import ProcessId, identify
from gpuwatch.session.reading.open import roll_back
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.plan import LARGEST, PLAN, Plan, labels, read
from gpuwatch.session.study.plan_file import document
from gpuwatch.session.study.signature import sign
from gpuwatch.session.writing.write_hints import room

SUMMARY_JSON = "summary.json"
SUMMARY_MARKDOWN = "summary.md"
ROOFLINE = "roofline.svg"


def slug(text: str) -> str:
    """``text`` as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60] or "run"


def create(out: Path, plan: Plan) -> Path:
    """Make ``out/STUDY`` with ``plan``, whose name becomes the folder's; returns the new folder.

    Raises:
        StorageError: the folder or the plan cannot be written.
        UsageError: the plan is larger than what is read again.
    """
    names = dict.fromkeys(slug(run.workload.name) for run in plan.runs)
    stem = f"{slug(plan.preset or '+'.join(names))[:80]}-{time.strftime('%Y%m%d-%H%M%S')}"
    _text(replace(plan, study=f"{stem}-999"))  # refused before there is a folder
    try:
        if out == paths.data_home():
            paths.make_private(out)
        else:
            out.mkdir(parents=True, exist_ok=True)
        folder = _fresh(out, stem)
        named = replace(plan, study=folder.name)
        write(folder, replace(named, signature=_signed(named)))
        _flush(out)
    except OSError as error:
        raise StorageError(
            f"cannot write to {out}: {error.strerror}",
            f"choose another folder with --out, or {room(out, error)}",
        ) from error
    return folder


def _signed(plan: Plan) -> str | None:
    """The signature of a plan that can be gone on with: not of a recording of the machine."""
    return None if plan.runs[0].workload.kind == "machine" else sign(plan)


def write(folder: Path, plan: Plan) -> None:
    """Replace the plan in ``folder``; it is on the disk then.

    Raises:
        OSError: it cannot be written.
        UsageError: it is larger than what is read again.
    """
    output.write_text(folder / PLAN, _text(plan), flush=True)
    _flush(folder)


def _text(plan: Plan) -> str:
    text = json.dumps(document(plan), indent=1) + "\n"
    if len(text) > LARGEST:  # all of it is ASCII
        size, limit = len(text) / (1 << 20), LARGEST >> 20
        raise UsageError(
            f"the plan of {len(plan.runs)} runs takes {size:.1f} MiB; at most {limit} MiB are read",
            "ask for fewer runs or cases, or put a long command into a script",
        )
    return text


def _flush(folder: Path) -> None:
    """Bring the names in ``folder`` to the disk, where its file system can."""
    with contextlib.suppress(OSError):
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def note(folder: Path, problems: Mapping[int, Sequence[Problem]]) -> None:
    """Write into the plan why runs of it, by index, are not started; an empty list takes it back.

    Best effort: a plan that cannot be read or written stays as it is.
    """
    known = read(folder) if problems else None
    if known is not None:
        told = {**known.problems, **{index: tuple(found) for index, found in problems.items()}}
        with contextlib.suppress(OSError, UsageError):
            write(folder, replace(known, problems={i: told[i] for i in sorted(told) if told[i]}))


def note_rest(folder: Path, problem: Problem) -> None:
    """Write into the plan why the runs that never had their turn did not run. Best effort."""
    known = read(folder)
    if known is not None:
        rest = [run for run in known.runs if not os.path.exists(folder / run.file)]
        note(folder, {run.index: [problem] for run in rest if run.index not in known.problems})


_A_LOOK = 0.5
"""Seconds for which :func:`is_held`, in another process, cannot keep a recorder from starting."""
STUDY_ENDED = "study-ended"
"""Code of the problem of a run that never had its turn."""


@dataclass(frozen=True)
class NotRun:
    """A run of the plan that did not take place."""

    label: str
    problems: tuple[Problem, ...]
    index: int | None = None
    """Its place in the plan, from 1 on."""

    @property
    def why(self) -> str:
        """The first problem."""
        return f"{self.label} did not run: {self.problems[0].text}"

    @property
    def hint(self) -> str | None:
        """How to fix it."""
        return self.problems[0].hint

    @property
    def text(self) -> str:
        """One line: the first problem and how to fix it."""
        return f"{self.why}; {self.hint}" if self.hint else self.why


def not_run(folder: Path) -> list[NotRun]:
    """The runs of the plan that did not take place; empty where the plan cannot be read."""
    known = read(folder)
    if known is None or not known.problems:
        return []
    told = labels(known.runs)
    return [NotRun(told[index - 1], problems, index) for index, problems in known.problems.items()]


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only recorder that goes through the study, for as long as this process lives.

    Raises:
        UsageError: another one does.
    """
    fd, plan = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC), -1
    try:
        deadline = time.monotonic() + _A_LOOK
        while not _locked(fd, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise UsageError(
                    f"another recorder goes through {folder}", "watch it: gpuwatch attach"
                )
            time.sleep(_A_LOOK / 10)
        with contextlib.suppress(OSError):  # what :func:`holder` knows a recorder by
            plan = os.open(folder / PLAN, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        with contextlib.suppress(OSError):  # half-made by recorders that were killed
            for unfinished in folder.glob(f".{PLAN}.*"):
                unfinished.unlink()
        yield
    finally:
        os.close(fd)
        if plan >= 0:
            os.close(plan)


def is_held(folder: Path) -> bool:
    """Whether a recorder goes through the study; unknown, and so ``False``, where the file system
    has no locks."""
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _locked(fd, fcntl.LOCK_SH)
    finally:
        os.close(fd)


def holder(folder: Path, session: Path | None = None) -> ProcessId | None:
    """The recorder that goes through the study, by its lock, and has ``session`` open; ``None``:
    none of this user's here."""
    try:
        inode = str(folder.stat().st_ino)
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
    except OSError:
        return None
    for _, kind, _, access, pid, place, *_ in (line for line in locks if len(line) >= 8):
        locked = (kind, access) == ("FLOCK", "WRITE") and place.rpartition(":")[2] == inode
        # Inodes have the same number on several file systems, and anybody may lock a folder.
        if locked and _goes_through(pid, folder, session):
            return identify(int(pid))
    return None


def _goes_through(pid: str, folder: Path, session: Path | None) -> bool:
    """Whether a process of this user has the folder and a plan open, as :func:`held` has them, and
    the session."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return False
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    has_folder = has_plan = False
    has_session = session is None
    for each in opened:
        with contextlib.suppress(OSError):  # closed since
            has_folder |= each.samefile(folder)
            has_session |= session is not None and each.samefile(session)
            name = os.path.basename(os.readlink(each))
            has_plan |= name.removesuffix(" (deleted)") == PLAN
    return has_folder and has_plan and has_session


def _locked(fd: int, how: int) -> bool:
    """Take a lock until ``fd`` is closed; ``False``: somebody else's is in the way."""
    try:
        fcntl.flock(fd, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def set_aside(path: Path) -> Path:
    """Rename a session that broke off, so that its run can be done again; its new path.

    It stays readable under its new name, and is none of the study's any more. Its journal is rolled
    back first: from there on it is one file.

    Raises:
        OSError: it cannot be rolled back or renamed.
    """
    roll_back(path)
    number = 1
    while any(os.path.lexists(f"{path}.lost-{number}{end}") for end in ("", "-journal")):
        number += 1
    new = path.with_name(f"{path.name}.lost-{number}")
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():  # of what is no session; it must never lie beside another one
        journal.rename(f"{new}-journal")
    return path.rename(new)


def sessions_in(folder: Path) -> list[Path]:
    """The session files of a study, in the order of their numbers."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def _fresh(out: Path, stem: str) -> Path:
    for number in range(1, 1000):
        folder = out / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise StorageError(f"{out} is full of studies named {stem}", "choose another folder with --out")
