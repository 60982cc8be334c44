"""Minutes that no recorder writes end in one sentence, or are unknown."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from gpuwatch.cli import main

FOLDER = Path(__file__).parents[2] / "data" / "h200"
RECORDED, OTHER = FOLDER / "train.gpuwatch", FOLDER / "product.gpuwatch"
REFUSED = {
    "times that fall": "UPDATE minute SET times = substr(times, 9) || substr(times, 1, 8)",
    "another minute": "UPDATE minute SET n = n + 7",
    "a negative minute": "UPDATE minute SET n = -1 - n",
    "no times": "UPDATE minute SET times = x''",
    "a part of a time": "UPDATE minute SET times = x'010203'",
    "too few samples": "UPDATE sample SET samples = substr(samples, 1, 24)",
    "a word": "UPDATE sample SET samples = 'abc'",
    "a number": "UPDATE sample SET samples = 5",
}
UNKNOWN = {
    "infinite": "UPDATE sample SET samples = x'000000000000f07f'",
    "not a number": "UPDATE sample SET samples = x'000000000000f87f'",
    "the largest": "UPDATE sample SET samples = x'ffffffffffffef7f'",
    "minutes without samples": "DELETE FROM sample",
    "samples without minutes": "DELETE FROM minute",
}


@pytest.mark.parametrize("what", [*REFUSED, *UNKNOWN])
def test_every_command_reads_it_or_says_so(
    what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "a.gpuwatch"
    shutil.copy(RECORDED, path)
    with closing(sqlite3.connect(path)) as db, db:
        db.execute({**REFUSED, **UNKNOWN}[what])
    for words in (["show"], ["compare", "--format", "table", OTHER], ["replay", "--plain"]):
        code = main([*map(str, words), str(path)])
        said = capsys.readouterr()
        assert (code != 0) == ("holds values that no recorder writes" in said.err)
        assert (code != 0) == (what in REFUSED)
    code = main(["export", str(path)])
    said = capsys.readouterr()
    assert code == 0 or "holds values that no recorder writes" in said.err
    if what in ("infinite", "not a number", "the largest", "minutes without samples"):
        assert set(said.out.splitlines()[1].split(",")[1:30]) == {""}
