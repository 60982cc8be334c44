"""Long sessions read by two processes: the same as by one, and nothing is left of the other."""

from __future__ import annotations

import os
import shutil
import signal
from pathlib import Path

import pytest

from gpuwatch.analysis.read import Read, read
from gpuwatch.cli import beside
from gpuwatch.cli.beside import read_beside
from gpuwatch.errors import NotASession

OLD = Path(__file__).parents[1] / "data" / "sessions" / "schema-2.gpuwatch"


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(beside, "_LONG", 0)
    monkeypatch.setattr("os.cpu_count", lambda: 2)
    found = [tmp_path / f"{n}.gpuwatch" for n in range(4)]
    for path in found:
        shutil.copy(OLD, path)
    return found


def test_what_the_other_process_read_is_what_this_one_would_have(paths: list[Path]) -> None:
    here: list[Path] = []

    def told(path: Path) -> Read:
        here.append(path)
        return read(path)

    with read_beside(paths, told) as reading:
        found = [reading(path) for path in paths]
    assert found == [read(path) for path in paths]
    assert here == paths[::2]
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)


def test_a_session_that_the_other_could_not_read_raises_here(paths: list[Path]) -> None:
    paths[1].write_bytes(b"none")
    with read_beside(paths, read) as reading, pytest.raises(NotASession):
        reading(paths[1])


def test_without_the_other_process_all_is_read_here(paths: list[Path]) -> None:
    parent = os.getpid()

    def dying(path: Path) -> Read:
        if os.getpid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        return read(path)

    with read_beside(paths, dying) as reading:
        assert reading(paths[1]) == read(paths[1])


def test_it_ends_with_whoever_does_not_ask_for_what_it_read(paths: list[Path]) -> None:
    with read_beside(paths, read):
        pass
    with pytest.raises(ChildProcessError):
        os.waitpid(-1, os.WNOHANG)
