"""The channels of a long session read by two processes: the same as by one, whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.samples import coarse
from gpuwatch.analysis.samples.long_window import LongWindow, ParallelRead
from gpuwatch.analysis.summary.summary import summarise
from gpuwatch.cli import main
from gpuwatch.cli import parallel_read as other
from gpuwatch.cli.parallel_read import in_child_process
from gpuwatch.session.reading.reader import SessionReader
from tests.tui.sessions import Script, finished, write


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five minutes at 10 Hz."""
    script = Script(seconds=300.0, interval=0.1, alive=False, meta=finished(seconds=300.0))
    return write(tmp_path_factory.mktemp("long") / "01-bare.gpuwatch", script)


@pytest.fixture(autouse=True)
def long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coarse, "MOST_TICKS", 1000)
    monkeypatch.setattr(coarse, "_SEVERAL", 2)


Work = Callable[[], LongWindow]
Given = Iterator[Callable[[], LongWindow | None]]


@contextmanager
def killed(work: Work) -> Given:
    def dies() -> LongWindow:
        os.kill(os.getpid(), signal.SIGKILL)
        return work()

    with in_child_process(dies) as found:
        yield found


@contextmanager
def later(work: Work) -> Given:
    """One bucket more is there when the other process looks."""
    found = work()
    yield lambda: replace(found, whole=(found.whole[0], found.whole[1] + 1))


@contextmanager
def elsewhere(work: Work) -> Given:
    """Other samples are there when the other process looks."""
    found = work()
    yield lambda: replace(found, drawn=(found.drawn[0] + 1, found.drawn[1]))


@pytest.mark.parametrize("parallel", [in_child_process, killed, later, elsewhere])
def test_the_figures_are_those_of_one_process(path: Path, parallel: ParallelRead) -> None:
    asked: list[Work] = []

    @contextmanager
    def noted(work: Work) -> Given:
        asked.append(work)
        with parallel(work) as found:
            yield found

    with SessionReader(path) as reader:
        alone, shared = summarise(reader), summarise(reader, parallel=noted)
    assert len(asked) == 1
    assert shared == alone


def test_show_asks_for_it_where_the_file_is_large(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[int] = []
    fork = os.fork

    def seen() -> int:
        started.append(fork())
        return started[-1]

    monkeypatch.setattr(os, "fork", seen)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    told = []
    for size in (1 << 40, 0):
        monkeypatch.setattr(other, "_LONG", size)
        assert main(["show", str(path)]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    (child,) = started
    assert not Path(f"/proc/{child}").exists()
