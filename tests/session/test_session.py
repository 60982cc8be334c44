"""The session file: what is written is read, and nothing else is believed."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from gpuwatch.core.errors import NewerSchema, NotASession, StorageError
from gpuwatch.core.metrics import Method
from gpuwatch.session import schema
from gpuwatch.session.reading.open import CUT
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State, status
from gpuwatch.session.writing.statements import event, meta
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.session.writing.writer import SessionWriter
from tests.session.samples import rows_of, times_of
from tests.waiting import until

from .conftest import SECOND, create

Write = Callable[..., Path]


def test_what_was_written_is_read(write: Write) -> None:
    with SessionReader(write(25)) as reader:
        rows = rows_of(reader, [0, 1])
        assert [row[0] for row in rows] == [n * SECOND for n in range(25)]
        assert rows[7] == (7 * SECOND, 0.07, None)
        utilization, power = reader.channels()
        assert (utilization.unit, utilization.method) == ("1", Method.MEASURED)
        assert (power.method, power.reason) == (Method.UNAVAILABLE, "no RAPL here")
        assert status(reader.meta(), reader.path).state is State.FINISHED


def test_a_minute_that_is_over_is_kept_by_channel(tmp_path: Path) -> None:
    path = tmp_path / "s.gpuwatch"
    writer = SessionWriter(create(path), 2, base_ns=0)
    for n in range(150):
        writer.tick(n, n * SECOND, [n / 100, None])
    assert writer.commit()
    with sqlite3.connect(path) as db:
        assert db.execute("SELECT n, last FROM minute").fetchall() == [(0, 59), (1, 119)]
        assert db.execute("SELECT count(*), min(n) FROM tick").fetchall() == [(30, 120)]
        sizes = dict(db.execute("SELECT n, length(samples) FROM sample"))
    assert sizes == {0: 480, 1: 8, 2048: 480, 2049: 8}, "a value that stays is written once"
    everything = [(n * SECOND, n / 100, None) for n in range(150)]
    with SessionReader(path) as reader:
        assert rows_of(reader, [0, 1]) == everything
        for after, upto in ((-1, 0), (59, 60), (30, 90), (119, 149), (149, 500), (70, 70)):
            read = reader.samples([1, 0], after * SECOND, upto * SECOND)
            assert list(read.t) == [t for t, *_ in everything if after < t / SECOND <= upto]
            assert list(read.values[1]) == [t / SECOND / 100 for t in read.t]
    writer.start()
    assert writer.close()
    with SessionReader(path) as reader:
        assert rows_of(reader, [0, 1]) == everything
        assert reader.last_sample() == 149 * SECOND


def test_a_session_is_for_its_owner_alone(write: Write) -> None:
    assert stat.S_IMODE(write().stat().st_mode) == 0o600


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "s.gpuwatch").write_text("precious")
    with pytest.raises(StorageError):
        create(tmp_path / "s.gpuwatch")
    assert (tmp_path / "s.gpuwatch").read_text() == "precious"


@pytest.mark.parametrize("content", [b"", b"x" * 5000, b"SQLite format 3\x00" + b"\x00" * 4000])
def test_what_is_no_session_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "s.gpuwatch"
    path.write_bytes(content)
    with pytest.raises(NotASession):
        SessionReader(path)


def test_another_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "s.gpuwatch"
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE t (a)")
    with pytest.raises(NotASession, match="SQLite database"):
        SessionReader(path)


def test_a_newer_schema_names_the_mend(write: Write) -> None:
    path = write()
    with sqlite3.connect(path) as db:
        db.execute(f"PRAGMA user_version={schema.VERSION + 1}")
    with pytest.raises(NewerSchema, match="newer one"):
        SessionReader(path)


@pytest.mark.parametrize(
    "attack",
    [
        "CREATE TRIGGER t AFTER INSERT ON event BEGIN DELETE FROM log; END",
        "CREATE VIEW extra AS SELECT 1",
        "CREATE TABLE extra (a)",
        "CREATE INDEX i ON event (t)",
        "DROP TABLE event",
        "ALTER TABLE event ADD COLUMN x DEFAULT (1)",
        "ALTER TABLE tick ADD COLUMN evil",
    ],
)
def test_an_unexpected_schema_is_refused(write: Write, attack: str) -> None:
    path = write()
    with sqlite3.connect(path) as db:
        db.execute(attack)
    with pytest.raises(NotASession, match="tables"):
        SessionReader(path)


def test_values_of_the_wrong_type_are_unknown_not_believed(write: Write) -> None:
    path = write()
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO tick SELECT 25, 61000000000, 'x', 1")
        db.execute("INSERT INTO tick SELECT 26, 62000000000, 9e999, 1")
        db.execute("INSERT INTO tick SELECT 27, 63000000000, 0.05, 1")
        db.execute("UPDATE meta SET value = '{' WHERE key = 'session'")
    with SessionReader(path) as reader:
        assert [value for _, value in rows_of(reader, [0])[25:]] == [None, None, 0.05]
        assert reader.meta()["session"] is None


def test_every_single_damaged_page_is_refused_or_read_without_harm(write: Write) -> None:
    original = write(50)
    size = original.stat().st_size
    for at in range(0, size, 512):
        damaged = original.with_name(f"{at}.gpuwatch")
        shutil.copy(original, damaged)
        with damaged.open("r+b") as file:
            file.seek(at)
            file.write(Random(at).randbytes(256))
        try:
            with SessionReader(damaged) as reader:
                reader.meta(), reader.channels(), rows_of(reader, [0]), reader.log()
        except (NotASession, NewerSchema):
            pass


def test_reading_never_writes(write: Write) -> None:
    path = write()
    before = path.read_bytes()
    with SessionReader(path) as reader, pytest.raises(NotASession, match="readonly"):
        reader._rows("DELETE FROM tick")
    assert path.read_bytes() == before


def test_a_file_whose_commit_takes_seconds_is_waited_for(write: Write) -> None:
    """Longer than a reader waited before: a recorder beside others that write to its disk."""
    path = write(25)
    writer = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    writer.execute("BEGIN EXCLUSIVE")
    committed = threading.Timer(3.0, writer.execute, ("COMMIT",))
    committed.start()
    try:
        with SessionReader(path) as reader:
            assert len(times_of(reader)) == 25
            committed.join()
            writer.execute("BEGIN EXCLUSIVE")
            reader.wait_at_most(0.1)
            with pytest.raises(StorageError, match="is busy"):
                reader.meta()
    finally:
        committed.join()
        writer.close()


def test_rows_wait_while_the_file_cannot_be_written(tmp_path: Path) -> None:
    troubles: list[str] = []
    path = tmp_path / "s.gpuwatch"
    writer = SessionWriter(create(path), 2, base_ns=0, on_trouble=troubles.append)
    writer.start()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        for n in range(5):
            writer.tick(n, n * SECOND, [n, None])
        until(lambda: troubles)
    finally:
        other.execute("ROLLBACK")
        other.close()
    assert writer.close()
    with SessionReader(path) as reader:
        assert [value for _, value in rows_of(reader, [0])] == list(range(5))
        assert [row.kind for row in reader.events()] == ["storage"]


def test_memory_is_bounded_while_the_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuwatch.session.writing import writer as writing

    monkeypatch.setattr(writing, "MOST_SAMPLES", 100)
    store = create(tmp_path / "s.gpuwatch")
    writer = SessionWriter(store, 2, base_ns=0)

    def fail(rows: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(store, "write", fail)
    writer.put(event(0, "kept", "an event is never dropped"))
    for n in range(1000):
        writer.tick(n, n, [n, None])
        if n % 50 == 0:
            writer.commit()
    writer.commit()
    monkeypatch.undo()
    writer.start()
    assert writer.close()
    with SessionReader(tmp_path / "s.gpuwatch") as reader:
        kinds = {row.kind: row.text for row in reader.events()}
        assert set(kinds) == {"kept", "storage"}
        assert "are lost" in kinds["storage"]


WRITE_FOREVER = """
import sys
sys.path[:0] = {path!r}
from pathlib import Path
from gpuwatch.session.writing.statements import event
from gpuwatch.session.writing.store import SessionStore
store = SessionStore.reopen(Path(sys.argv[1]))
n = 0
while True:
    store.write([event(n + i, "x", "y" * 3000) for i in range(50)])
    n += 50
    print(n, flush=True)
"""


@pytest.mark.parametrize("attempt", range(8))
def test_a_writer_killed_in_mid_transaction_leaves_a_file_that_opens(
    tmp_path: Path, attempt: int
) -> None:
    path = tmp_path / "s.gpuwatch"
    create(path).close()
    process = subprocess.Popen(
        [sys.executable, "-c", WRITE_FOREVER.format(path=sys.path), str(path)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    said = [int(process.stdout.readline()) for _ in range(1 + attempt)]
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    said += [int(line) for line in process.stdout if line.endswith("\n")]
    lone = tmp_path / "lone.gpuwatch"
    shutil.copy(path, lone)
    with SessionReader(path) as reader:
        read = reader.events(limit=10**9)
    assert len(read) >= said[-1]
    try:
        with SessionReader(lone) as reader:
            reader.events()
    except NotASession as error:
        assert "journal" in str(error)


LEFT = """
import os, sys
sys.path[:0] = {path!r}
from dataclasses import asdict
from pathlib import Path
from gpuwatch.core.processes import identify
from gpuwatch.session.writing.statements import meta
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.session.writing.writer import SessionWriter
rows = [meta("recorder", asdict(identify(os.getpid())))]
store = SessionStore.create(Path(sys.argv[1]), (), rows)
{then}
os._exit(0)
"""
CANNOT_END = """
writer = SessionWriter(store, 0, base_ns=0)
writer.start()
writer.put(meta("closed", {"t": 1}), ("INSERT INTO nowhere VALUES (1)", ()))
assert not writer.close(patience=0)
"""


@pytest.mark.parametrize("then", ["", CANNOT_END], ids=["killed", "cannot write its end"])
def test_a_session_that_its_recorder_did_not_close_is_no_copy_that_lacks_a_journal(
    tmp_path: Path, then: str
) -> None:
    path, lone = tmp_path / "s.gpuwatch", tmp_path / "lone.gpuwatch"
    script = LEFT.format(path=sys.path, then=then)
    subprocess.run([sys.executable, "-c", script, path], check=True)
    shutil.copy(path, lone)
    with SessionReader(path) as whole, SessionReader(lone) as copied:
        assert "closed" not in whole.meta() and "closed" not in copied.meta()
        assert (whole.notice, copied.notice) == (None, CUT)
    SessionStore.reopen(path).close()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["lone.gpuwatch", "s.gpuwatch"]


def test_new_columns_can_be_added_to_a_session(tmp_path: Path) -> None:
    from gpuwatch.telemetry.base import Channel

    path = tmp_path / "s.gpuwatch"
    create(path).close()
    store = SessionStore.reopen(path)
    extra = Channel("gpu0", "hw.gpu.power", Method.MEASURED, "NVML")
    store.add_channels(2, [(extra, "W", "gauge")])
    writer = SessionWriter(store, 3, base_ns=0)
    writer.start()
    writer.tick(0, 0, [0.5, None, 300.0])
    writer.put(meta("result", {"code": 0, "t": 1}))
    assert writer.close()
    with SessionReader(path) as reader:
        assert rows_of(reader, [2]) == [(0, 300.0)]
