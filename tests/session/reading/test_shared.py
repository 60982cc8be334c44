"""Sessions that another user may write to: what is copied, what is read in place."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from gpuwatch.core.errors import NotASession, StorageError
from gpuwatch.session.reading import private_copy
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.study_folder import set_aside
from gpuwatch.session.writing.statements import event
from gpuwatch.session.writing.store import SessionStore
from tests.fuzz import bases
from tests.fuzz.swaps import NOBODY
from tests.session.conftest import create
from tests.session.samples import times_of
from tests.waiting import until

Write = Callable[..., Path]
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of private copies."""
    folder = tmp_path / "private"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def open_to_others(folder: Path) -> None:
    folder.chmod(0o1777)


def given_away(folder: Path) -> None:
    for each in (folder, *folder.iterdir()):
        os.chown(each, NOBODY, NOBODY)


def written_by_a_group(folder: Path) -> None:
    for each in folder.glob("*.gpuwatch"):
        each.chmod(0o660)


WAYS = [
    pytest.param(open_to_others, id="in a folder as /tmp"),
    pytest.param(written_by_a_group, id="that a group may write"),
    pytest.param(given_away, id="of another user", marks=needs_root),
]


@contextlib.contextmanager
def going_on(path: Path) -> Iterator[SessionStore]:
    path.parent.mkdir()
    store = create(path)
    try:
        yield store
    finally:
        store.close()


def test_ones_own_session_that_goes_on_is_read_in_place(tmp_path: Path, private: Path) -> None:
    path = tmp_path / "own" / "s.gpuwatch"
    with going_on(path) as store, SessionReader(path) as reader:
        assert Path(f"{path}-journal").exists()
        assert list(private.iterdir()) == []
        store.write([event(1, "x", "first")])
        assert [row.text for row in reader.events()] == ["first"]


@pytest.mark.parametrize("shared", WAYS)
def test_a_session_with_a_journal_is_copied_and_followed(
    tmp_path: Path, private: Path, shared: Callable[[Path], None]
) -> None:
    path = tmp_path / "theirs" / "s.gpuwatch"
    with going_on(path) as store:
        shared(path.parent)
        with SessionReader(path) as reader:
            assert reader.notice is None
            (copy,) = private.iterdir()
            assert copy.stat().st_mode & 0o777 == 0o700
            store.write([event(1, "x", "first")])
            assert [row.text for row in until(reader.events)] == ["first"]
        assert list(private.iterdir()) == []


@pytest.mark.parametrize("shared", WAYS)
def test_a_torn_session_is_rolled_back_in_a_copy_alone(
    tmp_path: Path, private: Path, shared: Callable[[Path], None]
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    path = bases._torn(theirs / "01-bare.gpuwatch")
    shared(theirs)
    before = {each.name: each.read_bytes() for each in theirs.iterdir()}
    with SessionReader(path) as reader:
        assert [row.text for row in reader.log()] == ["x"]
        assert reader.notice == "read from a private copy: its last transaction was cut off"
    assert {each.name: each.read_bytes() for each in theirs.iterdir()} == before
    assert list(private.iterdir()) == []


def test_a_torn_session_below_a_folder_that_others_may_rename_is_not_rolled_back_in_place(
    tmp_path: Path, private: Path
) -> None:
    common = tmp_path / "common"
    (common / "own").mkdir(parents=True)
    common.chmod(0o777)
    path = bases._torn(common / "own" / "01-bare.gpuwatch")
    before = path.read_bytes()
    with SessionReader(path) as reader:
        assert [row.text for row in reader.log()] == ["x"]
    assert path.read_bytes() == before


@pytest.mark.parametrize("shared", WAYS)
def test_setting_a_session_aside_rolls_nothing_back_that_others_may_swap(
    tmp_path: Path, shared: Callable[[Path], None]
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    path = bases._torn(theirs / "01-bare.gpuwatch")
    shared(theirs)
    before, journal = path.read_bytes(), Path(f"{path}-journal").read_bytes()
    aside = set_aside(path)
    assert aside.read_bytes() == before
    assert Path(f"{aside}-journal").read_bytes() == journal


def test_nothing_beside_a_session_without_a_journal_is_looked_at(write: Write) -> None:
    path = write()
    path.chmod(0o666)
    with SessionReader(path) as reader:
        os.mkfifo(f"{path}-journal")
        assert len(times_of(reader)) == 25


@needs_root
@pytest.mark.parametrize("what", ["pipe", "link", "folder"])
def test_what_takes_the_place_of_a_journal_is_refused(tmp_path: Path, what: str) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    path = bases._torn(theirs / "01-bare.gpuwatch")
    journal = Path(f"{path}-journal")
    kept = journal.rename(tmp_path / "kept")
    if what == "pipe":
        os.mkfifo(journal)
    elif what == "link":
        journal.symlink_to(kept)
    else:
        journal.mkdir()
    given_away(theirs)
    with pytest.raises(NotASession, match="not a regular file"):
        SessionReader(path)


def test_more_than_the_limit_is_not_copied(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    path = bases._torn(theirs / "01-bare.gpuwatch")
    open_to_others(theirs)
    monkeypatch.setattr(private_copy, "MOST", path.stat().st_size - 1)
    with pytest.raises(StorageError, match="read it as its owner"):
        SessionReader(path)
    assert list(private.iterdir()) == []


FULL = """
import sys, tempfile
sys.path[:0] = {path!r}
tempfile.tempdir = sys.argv[2]
from gpuwatch.cli import main
sys.exit(main(["log", sys.argv[1]]))
"""


def test_a_full_temporary_folder_is_told(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    path = bases._torn(theirs / "01-bare.gpuwatch")
    open_to_others(theirs)
    limited = f'ulimit -f 8; trap \'\' XFSZ; exec {sys.executable} -c "$0" "$@"'
    done = subprocess.run(
        ["bash", "-c", limited, FULL.format(path=sys.path), path, tmp_path],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr.startswith(f"gpuwatch: error: cannot copy {path}: File too large")
    assert done.stderr.count("\n") == 1


@needs_root
def test_root_copies_what_another_user_may_put_a_device_in_the_place_of(
    write: Write, private: Path
) -> None:
    path = write()
    os.chown(path, NOBODY, NOBODY)
    with SessionReader(path) as reader:
        assert len(list(private.iterdir())) == 1
        assert len(times_of(reader)) == 25
    assert list(private.iterdir()) == []
