"""Sessions that another user may write to: none is read in place with a journal."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuwatch.core.errors import NotASession, StorageError
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.study.study_folder import set_aside
from gpuwatch.session.writing.statements import event
from tests.fuzz import bases
from tests.session.conftest import create
from tests.session.samples import times_of

Write = Callable[..., Path]
NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


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


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """Of a recorder that was killed in a transaction."""
    (tmp_path / "theirs").mkdir()
    return bases._torn(tmp_path / "theirs" / "01-bare.gpuwatch")


def test_ones_own_session_that_goes_on_is_read_in_place(tmp_path: Path) -> None:
    store = create(tmp_path / "s.gpuwatch")
    with SessionReader(tmp_path / "s.gpuwatch") as reader:
        store.write([event(1, "x", "first")])
        assert [row.text for row in reader.events()] == ["first"]
    store.close()


@pytest.mark.parametrize("shared", WAYS)
def test_what_others_may_write_to_and_was_not_closed_is_to_be_copied_first(
    torn: Path, shared: Callable[[Path], None]
) -> None:
    shared(torn.parent)
    before = {each.name: each.read_bytes() for each in torn.parent.iterdir()}
    with pytest.raises(StorageError, match="others may write to it, and it was not closed") as told:
        SessionReader(torn)
    assert f"copy it first: sqlite3 {torn} '.backup COPY.gpuwatch'" in (told.value.hint or "")
    aside = set_aside(torn)
    journal = Path(f"{aside}-journal")
    assert [aside.read_bytes(), journal.read_bytes()] == list(map(before.get, sorted(before)))


def test_ones_own_torn_session_is_rolled_back_below_a_folder_of_a_group(torn: Path) -> None:
    torn.parent.parent.chmod(0o2775)
    with SessionReader(torn) as reader:
        assert [row.text for row in reader.log()] == ["x"]


def test_nothing_beside_a_session_without_a_journal_is_looked_at(write: Write) -> None:
    path = write()
    path.chmod(0o666)
    with SessionReader(path) as reader:
        os.mkfifo(f"{path}-journal")
        assert len(times_of(reader)) == 25


@needs_root
@pytest.mark.parametrize("what", ["pipe", "link", "folder"])
def test_what_takes_the_place_of_a_journal_is_refused(
    torn: Path, tmp_path: Path, what: str
) -> None:
    journal = Path(f"{torn}-journal")
    kept = journal.rename(tmp_path / "kept")
    if what == "pipe":
        os.mkfifo(journal)
    elif what == "link":
        journal.symlink_to(kept)
    else:
        journal.mkdir()
    given_away(torn.parent)
    with pytest.raises(NotASession, match="not a regular file"):
        SessionReader(torn)
