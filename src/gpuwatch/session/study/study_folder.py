"""A study on disk: one folder with its plan, its sessions and its summary."""

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
from gpuwatch.core.text import to_paste
from gpuwatch.session.placement import read as read_placement
from gpuwatch.session.reading.open import roll_back
from gpuwatch.session.schema import SUFFIX
from gpuwatch.session.study.plan import LARGEST, PLAN, Plan, labels, read
from gpuwatch.session.study.plan_file import document
from gpuwatch.session.study.signature import sign
from gpuwatch.session.writing.write_hints import write_hint

SUMMARY_JSON = "summary.json"
SUMMARY_MARKDOWN = "summary.md"
ROOFLINE = "roofline.svg"
RECORDER_LOG = "recorder.log"
GAVE_UP = "the end of the session could not be saved: "
"""How a recorder that can write no more begins to say why, in its log."""


def slug(text: str) -> str:
    """``text`` as part of a file name."""
    return re.sub(r"[^A-Za-z0-9._+-]+", "-", text).strip("-.")[:60] or "run"


def create(out: Path, plan: Plan) -> Path:
    """Create the folder ``out/STUDY`` with ``plan`` and return it; the plan gets the folder's name.

    Raises:
        StorageError: the folder or the plan cannot be written.
        UsageError: the plan is larger than readers accept.
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
        # A recording of the machine cannot be resumed.
        write(folder, replace(named, signature=None if plan.of_machine else sign(named)))
        _flush(out)
    except OSError as error:
        raise StorageError(
            f"cannot write to {out}: {error.strerror}",
            f"choose another folder with --out, or {write_hint(out, error)}",
        ) from error
    return folder


def write(folder: Path, plan: Plan) -> None:
    """Replace the plan in ``folder`` and flush it to the disk.

    Raises:
        OSError: it cannot be written.
        UsageError: it is larger than readers accept.
    """
    output.write_text(folder / PLAN, _text(plan), flush=True)
    _flush(folder)


def _text(plan: Plan) -> str:
    text = json.dumps(document(plan), indent=1) + "\n"
    if len(text) > LARGEST:  # characters are bytes: it is ASCII
        size, limit = len(text) / (1 << 20), LARGEST >> 20
        raise UsageError(
            f"the plan of {len(plan.runs)} runs takes {size:.1f} MiB; the limit is {limit} MiB",
            "ask for fewer runs or cases, or put a long command into a script",
        )
    return text


def _flush(folder: Path) -> None:
    """Flush the file names in ``folder`` to the disk, if the file system supports it."""
    with contextlib.suppress(OSError), opened(folder) as fd:
        os.fsync(fd)


@contextlib.contextmanager
def opened(folder: Path, flags: int = 0) -> Iterator[int]:
    """A descriptor of a folder; ``flags``: more than it always has, such as ``O_NOFOLLOW``."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | flags)
    try:
        yield fd
    finally:
        os.close(fd)


def note(folder: Path, problems: Mapping[int, Sequence[Problem]]) -> None:
    """Write into the plan why runs, by index, are not started; an empty list clears the entry.

    Best effort: a plan that cannot be read or written stays as it is.
    """
    plan = read(folder) if problems else None
    if plan is not None:
        merged = {**plan.problems, **{index: tuple(added) for index, added in problems.items()}}
        with contextlib.suppress(OSError, UsageError):
            write(
                folder, replace(plan, problems={i: merged[i] for i in sorted(merged) if merged[i]})
            )


def note_rest(folder: Path, problem: Problem) -> None:
    """Write ``problem`` into the plan for all runs that never had their turn. Best effort."""
    plan = read(folder)
    if plan is not None:
        waiting = [run for run in plan.runs if not os.path.exists(folder / run.file)]
        note(folder, {run.index: [problem] for run in waiting if run.index not in plan.problems})


_A_LOOK = 0.5
"""Seconds to retry the lock: a brief :func:`is_held` elsewhere must not block a recorder."""
STUDY_ENDED = "study-ended"
"""Problem code of a run that never had its turn."""
_NO_VERDICT = "no verdict counts it: that needs its samples, which are gone"
FETCHED_IN_PART = "fetched-in-part"
"""Problem code of a run of which only a few figures are here."""


@dataclass(frozen=True)
class NotRun:
    """A run of the plan that did not take place."""

    label: str
    problems: tuple[Problem, ...]
    index: int | None = None
    """Its position in the plan, from 1."""

    @property
    def in_part(self) -> bool:
        """Whether it ran elsewhere, and only a few figures of it are here."""
        return self.problems[0].code == FETCHED_IN_PART

    @property
    def why(self) -> str:
        """The first problem."""
        verb = "was fetched in part" if self.in_part else "did not run"
        return f"{self.label} {verb}: {self.problems[0].text}"

    @property
    def hint(self) -> str | None:
        """How to fix the first problem."""
        return self.problems[0].hint

    @property
    def text(self) -> str:
        """One line: the first problem and how to fix it."""
        return f"{self.why}; {self.hint}" if self.hint else self.why


def not_run(folder: Path) -> list[NotRun]:
    """The runs of the plan that did not take place; empty if the plan cannot be read."""
    plan = read(folder)
    if plan is None:
        return []
    run_labels = labels(plan.runs)
    problems = {**plan.problems, **_in_part(folder, plan)}
    return [NotRun(run_labels[index - 1], problems[index], index) for index in sorted(problems)]


def _in_part(folder: Path, plan: Plan) -> dict[int, tuple[Problem, ...]]:
    """The runs without a session here of which a few figures are, by index."""
    placement = read_placement(folder)
    if placement is None or placement.in_part is None or placement.going_on:
        return {}
    files = {run.index: run.file for run in plan.runs}
    hint = f"repeat it: {to_paste('resume', folder.name)}"
    return {
        told.run: (Problem(FETCHED_IN_PART, f"{told.text}; {_NO_VERDICT}", hint),)
        for told in placement.in_part.runs
        if told.run in files and not os.path.exists(folder / files[told.run])
    }


@contextlib.contextmanager
def held(folder: Path) -> Iterator[None]:
    """Be the only recorder of the study, until the end of the block or of this process.

    Raises:
        UsageError: the study has another recorder.
    """
    with opened(folder) as fd, contextlib.ExitStack() as rest:
        deadline = time.monotonic() + _A_LOOK
        while not paths.locked(fd, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise UsageError(
                    f"another recorder is already running the study {folder}",
                    "watch it: gpuwatch attach",
                )
            time.sleep(_A_LOOK / 10)
        with contextlib.suppress(OSError):  # by which :func:`holder` recognises a recorder
            plan = os.open(folder / PLAN, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
            rest.callback(os.close, plan)
        with contextlib.suppress(OSError):  # left by killed recorders
            for unfinished in folder.glob(f".{PLAN}.*"):
                unfinished.unlink()
        yield


def is_held(folder: Path) -> bool:
    """Whether the study has a recorder; ``False`` also on file systems without locks."""
    try:
        with opened(folder) as fd:
            return not paths.locked(fd, fcntl.LOCK_SH)
    except OSError:
        return False


_LOOKS = 20
"""At the locks of the machine. The kernel tells them by the page: where others come and go, a look
may miss one."""


def holder(folder: Path, session: Path | None = None) -> ProcessId | None:
    """This user's recorder of the study, found by its lock, that has ``session`` open; ``None`` if
    there is none here."""
    for _ in range(_LOOKS):
        try:
            inode = str(folder.stat().st_ino)
            locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        except OSError:
            return None
        for _, kind, _, access, pid, place, *_ in (line for line in locks if len(line) >= 8):
            locked = (kind, access) == ("FLOCK", "WRITE") and place.rpartition(":")[2] == inode
            # Inode numbers repeat across file systems, and anybody can lock a folder.
            if locked and _goes_through(pid, folder, session):
                return identify(int(pid))
        if not is_held(folder):
            return None
    return None


def _goes_through(pid: str, folder: Path, session: Path | None) -> bool:
    """Whether a process of this user has the folder and a plan open, as in :func:`held`, and the
    session."""
    try:
        if os.stat(f"/proc/{pid}").st_uid != os.geteuid():
            return False
        opened = list(Path(f"/proc/{pid}/fd").iterdir())
    except OSError:
        return False
    has_folder = has_plan = False
    has_session = session is None
    for descriptor in opened:
        with contextlib.suppress(OSError):  # closed since
            has_folder |= descriptor.samefile(folder)
            has_session |= session is not None and descriptor.samefile(session)
            name = os.path.basename(os.readlink(descriptor))
            has_plan |= name.removesuffix(" (deleted)") == PLAN
    return has_folder and has_plan and has_session


def set_aside(path: Path) -> Path:
    """Rename an unfinished session, so that its run can be repeated; returns the new path.

    It stays readable under the new name, but no longer belongs to the study. Its journal is rolled
    back first, so that only one file remains.

    Raises:
        OSError: it cannot be rolled back or renamed.
    """
    roll_back(path)
    number = 1
    while any(os.path.lexists(f"{path}.lost-{number}{end}") for end in ("", "-journal")):
        number += 1
    new = path.with_name(f"{path.name}.lost-{number}")
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():  # not a session's; it must never end up beside another session
        journal.rename(f"{new}-journal")
    return path.rename(new)


def sessions_in(folder: Path) -> list[Path]:
    """The session files of a study, in order of their numbers."""
    return sorted(folder.glob(f"*{SUFFIX}"))


def is_open(session: Path) -> bool:
    """Whether somebody still writes a session, or did not close it: it has a journal beside it."""
    return session.with_name(f"{session.name}-journal").exists()


def _fresh(out: Path, stem: str) -> Path:
    for number in range(1, 1000):
        folder = out / (stem if number == 1 else f"{stem}-{number}")
        try:
            folder.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return folder
    raise StorageError(
        f"{out} has too many studies named {stem}", "choose another folder with --out"
    )
