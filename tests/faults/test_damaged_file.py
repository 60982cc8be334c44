"""Session files that a disk gave back shorter, or with pages of zeros: read, or refused."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.core.errors import GpuwatchError
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.tui.sessions import Script, finished, write

from .aftermath import kept
from .table import Row

PAGE = 4096


def _refused(path: Path) -> bool:
    """Whether the figures of a session cannot be read."""
    try:
        with SessionReader(path) as reader:
            summarise(reader)
    except GpuwatchError:
        return True
    return False


@pytest.mark.parametrize("how", ["cut off", "zeroed"])
def test_a_damaged_file_is_read_or_refused_in_one_line(
    cli: Cli,
    tmp_path: Path,
    times: Callable[[int, int], int],
    dice: random.Random,
    note_fault: Callable[[Row], None],
    how: str,
) -> None:
    tried = times(20, 200)
    lines = [("stdout", f"log line {n}") for n in range(1, 61)]
    script = Script(seconds=60.0, alive=False, meta=finished(seconds=60.0), log=lines)
    path = write(tmp_path / "whole.gpuwatch", script)
    whole = kept(path)
    pages = path.stat().st_size // PAGE
    ends: Counter[str] = Counter()
    said = set()
    for number in range(tried):
        copy = tmp_path / f"{number}.gpuwatch"
        shutil.copyfile(path, copy)
        with copy.open("r+b") as file:
            if how == "cut off":
                file.truncate(dice.randrange(path.stat().st_size))
            else:
                file.seek(PAGE * dice.randrange(pages))
                file.write(bytes(PAGE))
        before = copy.read_bytes()
        try:
            found = kept(copy)
        except GpuwatchError as error:
            ends["refused"] += 1
            assert str(copy) in error.message and error.hint
            if number < 2:
                # It reads no log: where that alone is damaged it has nothing to refuse.
                refused = _refused(copy)
                line = cli.read("show", copy, code=2 if refused else 0).stderr
                assert line.count("\n") == refused
                assert line.startswith("gpuwatch: error: " if refused else "")
            said.add(error.message.replace(str(copy), "SESSION"))
        else:
            # What was lost is missing; nothing stands there that was not recorded.
            ends["read"] += 1
            assert set(found.steps) <= set(whole.steps)
            assert set(found.log) <= set(whole.log)
            assert set(found.ticks) <= set(whole.ticks)
            if found.notice is not None:
                said.add(found.notice)
        assert copy.read_bytes() == before, "nothing fixes a file by guessing"
    note_fault(
        Row(
            "machine",
            f"a finished session {how}{'' if how == 'cut off' else ': one page of it'}",
            tried,
            f"{ends['refused']} are unreadable; {ends['read']} lose what was there",
            "the file, unchanged",
            "; ".join(sorted(said)),
        )
    )
