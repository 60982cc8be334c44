"""The machine loses power while a session is written: what the disk has then can be read."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sqlite3
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from gpuwatch.core.errors import NotASession
from gpuwatch.session.reading.open import CUT
from gpuwatch.session.reading.status import State
from tests.conftest import Cli
from tests.waiting import until

from .aftermath import in_order, kept, nothing_left, stepping, workload
from .preload import Preload
from .table import Row

STEPS = workload(100_000, 0.01)
JOURNAL = "-journal"
HOT = b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7"
"""How a journal begins that is to be rolled back."""


def test_a_copy_of_file_and_journal_at_any_moment_is_whole(
    cli: Cli,
    tmp_path: Path,
    times: Callable[[int, int], int],
    dice: random.Random,
    note_fault: Callable[[Row], None],
) -> None:
    tried = times(20, 200)
    preload, out = Preload(cli, tmp_path), tmp_path / "out"
    recorder = cli.start("--record", "--quiet", "--interval", "0.05", "--out", out, *STEPS)
    path = stepping(out)
    cut: list[tuple[Path, float]] = []
    hot = 0
    while len(cut) < tried or not hot:
        # Between two writes of a transaction; a commit makes about a dozen.
        preload.stop_after(dice.randrange(40))
        until(lambda: _state(recorder.pid) == "T")
        copy = _copy(path, tmp_path / f"cut-{len(cut)}")
        cut.append((copy, time.monotonic()))
        hot += Path(f"{copy}{JOURNAL}").read_bytes()[: len(HOT)] == HOT
        os.kill(recorder.pid, signal.SIGCONT)
    preload.stop_after(-1)
    recorder.terminate()
    recorder.communicate()
    nothing_left(cli, out)
    whole = kept(path)
    in_order(whole)

    lost, refused = 0.0, set()
    noticed: Counter[str] = Counter()
    for copy, at in cut:
        alone = copy.parent / "alone" / copy.name
        alone.parent.mkdir()
        shutil.copyfile(copy, alone)
        found = kept(copy)
        in_order(found)
        assert found.status.state is State.LOST and found.notice is None
        assert whole.ticks[: len(found.ticks)] == found.ticks
        with sqlite3.connect(copy) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        lost = max(lost, at - found.newest)
        assert kept(copy) == found, "it stays as it was found"
        try:
            notice = kept(alone).notice
            assert notice is not None
            noticed[notice] += 1
        except NotASession as error:
            assert error.hint is not None and "ending in -journal" in error.hint
            refused.add(error.message.partition(" is ")[2])
    assert found.status.text.partition(": ")[0] in _shown(cli, cut[-1][0])
    assert CUT in _shown(cli, _alone(cut))
    note_fault(
        Row(
            "machine",
            f"power cut: file and journal together, {hot} in the middle of a transaction",
            len(cut),
            f"the last {lost:.2f} s at most; never a part of a transaction",
            "the session with its journal, which the first reader rolls back",
            "; ".join(sorted({found.status.text.replace(found.meta["session"]["id"], "ID")})),
        )
    )
    note_fault(
        Row(
            "machine",
            "power cut: the file without its journal",
            len(cut),
            f"as above, or everything: {len(cut) - noticed.total()} are unreadable without it",
            "the session, unchanged",
            "; ".join([*(f"{n} times: {text}" for text, n in noticed.items()), *sorted(refused)]),
        )
    )


def _shown(cli: Cli, path: Path) -> str:
    return " ".join(cli.read("show", path).stdout.split())


def _alone(cut: list[tuple[Path, float]]) -> Path:
    """A copy without its journal in which SQLite sees nothing wrong."""
    for copy, _ in cut:
        alone = copy.parent / "alone" / copy.name
        with contextlib.suppress(NotASession):
            if kept(alone).notice == CUT:
                return alone
    raise AssertionError("none can be read")


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]


def _copy(path: Path, folder: Path) -> Path:
    """The session and its journal as they are; the copy of the session."""
    folder.mkdir()
    for end in ("", JOURNAL):
        if Path(f"{path}{end}").exists():
            shutil.copyfile(f"{path}{end}", folder / f"{path.name}{end}")
    return folder / path.name
