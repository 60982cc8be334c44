"""Values of the wrong type in a session file: one error for whoever reads them, and none else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from gpuwatch.analysis.samples import source
from gpuwatch.analysis.study.read import read
from gpuwatch.core.errors import NotASession
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector, PastView
from gpuwatch.tui.feed.snapshot import View
from tests.tui import process_sessions as processes
from tests.tui.hostile import WRONG, columns_of, spoil
from tests.tui.sessions import NS, Script, finished, write

pytestmark = pytest.mark.usefixtures("programs")

_TABLES = ("device", "channel", "event", "gpu_process", "log", "process", "step", "tick", "minute")
_LENIENT = ("device", "channel", "gpu_process", "process", "tick")
"""Tables of texts, and those whose rows are left out where they make no sense."""


def made(path: Path) -> Path:
    script = Script(
        seconds=62.0,
        log=[("stdout", "a"), ("stderr", "b")],
        events=[(5.0, "xid", "Xid 13")],
        meta=finished(seconds=62.0),
    )
    return processes.add(write(path, script), processes.RUN, processes.STRANGER, t=8.0)


def show(path: Path) -> None:
    with SessionReader(path) as reader:
        collector = Collector(reader)
        collector.update()
        past = PastView(collector)
        for view in (View(), View(roofline=True, grid=True, seconds=None, at=6 * NS)):
            past.at(view.at, view.seconds).snapshot(view)
        reader.log_lines(0, 100)
    read(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "MOST_RATES", 0)
        patch.setattr(source, "MOST_LINES", 0)
        read(path)


@pytest.mark.parametrize("table", _TABLES)
def test_every_reader_tells_wrong_values_by_one_error(tmp_path: Path, table: str) -> None:
    whole, path = made(tmp_path / "whole.gpuwatch"), tmp_path / "spoilt.gpuwatch"
    told = 0
    for of, column in columns_of(whole):
        if of != table or (column[0] == "c" and column[1:].isdigit() and int(column[1:]) > 0):
            continue
        for value in WRONG[::2]:
            shutil.copy(whole, path)
            if spoil(path, table, column, value, last=True):
                try:
                    show(path)
                except NotASession:
                    told += 1
    assert told or table in _LENIENT


@pytest.mark.parametrize(
    ("table", "column"),
    [("log", "t"), ("step", "step"), ("step", "t"), ("minute", "times"), ("event", "t")],
)
def test_a_word_in_place_of_a_number_is_told(tmp_path: Path, table: str, column: str) -> None:
    path = made(tmp_path / "a.gpuwatch")
    assert spoil(path, table, column, "abc")
    with pytest.raises(NotASession, match="holds values that no recorder writes"):
        show(path)
