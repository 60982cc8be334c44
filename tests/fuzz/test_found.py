"""What hostile sessions once did, each by itself."""

from __future__ import annotations

import contextlib
import gc
import os
import sqlite3
import struct
import sys
from pathlib import Path

import pytest

from gpuwatch.cli.selection.session_lookup import resolved, sessions_under
from gpuwatch.core.errors import GpuwatchError, NotASession
from gpuwatch.core.text import document
from gpuwatch.session.reading.bounded_connection import MOST_BYTES
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.tui.feed.collector import Collector
from tests.fuzz import bases, raw
from tests.tui.sessions import Script, finished, write


@pytest.fixture
def session(tmp_path: Path) -> Path:
    script = Script(seconds=60.0, alive=False, meta=finished(seconds=60.0),
                    log=[("stdout", "x" * 200)] * 300)  # fmt: skip
    return write(tmp_path / "study" / "01-bare.gpuwatch", script)


@pytest.fixture
def torn(tmp_path: Path) -> Path:
    """A session whose recorder was killed: SQLite rolls its journal back."""
    (tmp_path / "torn").mkdir()
    return bases._torn(tmp_path / "torn" / "01-bare.gpuwatch")


def refused(path: Path) -> str:
    with pytest.raises(NotASession) as caught:
        SessionReader(path).close()
    return str(caught.value)


def test_a_journal_that_names_another_file_does_not_remove_it(torn: Path) -> None:
    victim = torn.parent.parent / "victim"
    victim.write_text("stays")
    with Path(f"{torn}-journal").open("ab") as journal:
        journal.write(raw.super_journal(victim))
    assert "is not a recorder's journal" in refused(torn)
    assert victim.read_text() == "stays"


def test_sqlite_itself_would_have_removed_it(torn: Path) -> None:
    victim = torn.parent.parent / "victim"
    victim.write_text("goes")
    with Path(f"{torn}-journal").open("ab") as journal:
        journal.write(raw.super_journal(victim))
    with contextlib.closing(sqlite3.connect(torn)) as file:
        file.execute("SELECT count(*) FROM sqlite_master").fetchone()
    assert not victim.exists()


def test_a_journal_of_its_own_is_still_rolled_back(torn: Path) -> None:
    with SessionReader(torn) as reader:
        assert [row.text for row in reader.log()] == ["x"]


def test_a_journal_that_gives_the_file_a_huge_length_is_refused(torn: Path) -> None:
    journal, size = Path(f"{torn}-journal"), torn.stat().st_size
    data = bytearray(journal.read_bytes())
    data[16:20] = struct.pack(">I", 2**31 - 1)
    journal.write_bytes(data)
    assert "is not a recorder's journal" in refused(torn)
    assert torn.stat().st_size == size


@pytest.mark.parametrize("end", ["-journal", "-wal"])
@pytest.mark.parametrize("what", ["pipe", "folder", "link"])
def test_what_is_no_file_beside_a_session_is_not_opened(session: Path, end: str, what: str) -> None:
    beside = Path(f"{session}{end}")
    if what == "pipe":
        os.mkfifo(beside)
    elif what == "folder":
        beside.mkdir()
    else:
        beside.symlink_to("/dev/zero")
    assert f"{beside}" in refused(session)


def test_a_write_ahead_log_puts_nothing_over_a_session(session: Path) -> None:
    with contextlib.closing(sqlite3.connect(session)) as file:
        file.execute("PRAGMA journal_mode=WAL")
    assert "journal_mode=DELETE" in refused(session)
    assert sorted(each.name for each in session.parent.iterdir()) == [session.name]


def test_pages_that_lead_in_a_circle_end(session: Path) -> None:
    whole = session.read_bytes()
    size = int.from_bytes(whole[16:18], "big")
    pages = len(whole) // size
    inner = [at for at in range(0, len(whole), size) if whole[at] == 5]
    assert inner, "no table of the session has more than one page"
    for at in inner:
        for target in range(2, pages + 1, max(1, pages // 6)):
            data = bytearray(whole)
            cells = int.from_bytes(data[at + 3 : at + 5], "big")
            for entry in range(at + 12, at + 12 + 2 * cells, 2):
                place = at + int.from_bytes(data[entry : entry + 2], "big")
                data[place : place + 4] = struct.pack(">I", target)
            data[at + 8 : at + 12] = struct.pack(">I", target)
            session.write_bytes(data)
            with contextlib.suppress(GpuwatchError), SessionReader(session) as reader:
                Collector(reader).update()
                list(reader.all_steps())
            with contextlib.suppress(GpuwatchError), SessionReader(session) as reader:
                reader.samples(())


def test_a_table_that_few_pages_make_endless_is_told(session: Path) -> None:
    """Inner pages each of whose entries leads to the next one: 10 ** 12 rows in 50 KB."""
    with contextlib.closing(sqlite3.connect(session)) as file, file:
        ((root,),) = file.execute("SELECT rootpage FROM sqlite_master WHERE name = 'event'")
        file.execute("INSERT INTO event VALUES (1, 0, 'x', NULL, 'y')")
    data = bytearray(session.read_bytes())
    size, pages = int.from_bytes(data[16:18], "big"), len(data) // 4096
    assert size == 4096
    leaf = bytes(data[(root - 1) * size : root * size])
    depth = 6
    for level in range(depth):
        own, below = (root, pages + 1)[level > 0] + max(0, level - 1), pages + 1 + level
        page = bytearray(size)
        page[0:12] = struct.pack(">BHHHBI", 5, 0, 100, size - 500, 0, below)
        for entry in range(100):
            at = size - 500 + 5 * entry
            page[12 + 2 * entry : 14 + 2 * entry] = struct.pack(">H", at)
            page[at : at + 5] = struct.pack(">IB", below, 1)
        begin = (own - 1) * size
        data[begin : begin + size] = page
    data[(pages + depth - 1) * size :] = leaf
    data[28:32] = struct.pack(">I", len(data) // size)
    session.write_bytes(data)
    with SessionReader(session) as reader, pytest.raises(NotASession):
        reader.events()
    with SessionReader(session) as reader, pytest.raises(NotASession, match="damaged"):
        reader._rows("SELECT sum(t) FROM event")


def test_an_answer_that_is_too_large_is_told_and_a_log_comes_in_pieces(session: Path) -> None:
    text = "y" * (15 << 20)
    with contextlib.closing(sqlite3.connect(session)) as file, file:
        for number in range(10):
            file.execute("INSERT INTO fact VALUES ('host', ?, ?)", (str(number), text))
            file.execute("INSERT INTO step (t, step, count, warmup, phases) VALUES (?, ?, 1, 0, ?)",
                         (10**11 + number, 10**6 + number, text))  # fmt: skip
    with SessionReader(session) as reader:
        assert len(text) * 10 > MOST_BYTES
        with pytest.raises(NotASession, match="too large"):
            reader._rows("SELECT value FROM fact")
        reader.facts()
        assert "only the first 2 rows of the table fact are read" in reader.left_out
        assert sum(1 for row in reader.all_steps() if row.step >= 10**6) == 10


@pytest.mark.parametrize("table", ["sqlite_master", "meta"])
def test_a_session_that_is_refused_leaves_no_file_open(session: Path, table: str) -> None:
    with contextlib.closing(sqlite3.connect(session)) as file:
        ((root,),) = file.execute("SELECT rootpage FROM sqlite_master WHERE name = 'meta'")
    data = bytearray(session.read_bytes())
    at = 100 if table == "sqlite_master" else (root - 1) * 4096
    data[at : at + 8] = b"\xff" * 8
    session.write_bytes(data)
    gc.collect()  # what other tests left open is not closed between the two counts
    before = len(os.listdir("/proc/self/fd"))
    kept = []
    for _ in range(3):
        with pytest.raises(NotASession) as caught:
            SessionReader(session)
        kept.append(caught.value)
    assert len(os.listdir("/proc/self/fd")) <= before


@pytest.mark.skipif(sys.version_info < (3, 11), reason="SQLite's limits are set from 3.11 on")
def test_no_other_database_is_attached(session: Path) -> None:
    with SessionReader(session) as reader, pytest.raises(NotASession):
        reader._rows("ATTACH ':memory:' AS other")


def test_a_link_to_itself_is_listed_and_opened_with_a_word(tmp_path: Path) -> None:
    link = tmp_path / "a.gpuwatch"
    link.symlink_to(link)
    assert resolved(sessions_under(tmp_path)) == [link]
    with pytest.raises(GpuwatchError):
        SessionReader(link)


@pytest.mark.parametrize("text", ["\x9b31m", "\x7f", "\u202e", "\u2028", "\ud800", "\U000e0041"])
def test_json_holds_no_character_that_a_terminal_acts_on(text: str) -> None:
    import json

    raw_text = json.dumps({"a": f"ä{text}é"}, ensure_ascii=False)
    told = document(raw_text)
    assert text not in told and "ä" in told
    assert json.loads(told) == {"a": f"ä{text}é"}
