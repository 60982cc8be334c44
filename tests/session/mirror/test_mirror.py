"""A copy that follows a session file batch by batch holds the same in the end, and its cursor says
at any time what it holds."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuwatch.core.errors import NewerSchema
from gpuwatch.core.metrics import Method
from gpuwatch.places.frames import LONGEST_LINE, BatchFrame, encode
from gpuwatch.recorder.output.kept_log import MOST_LOG_LINES, KeptLog
from gpuwatch.session import schema
from gpuwatch.session.mirror.apply import LARGEST, Copy
from gpuwatch.session.mirror.changes import MOST_ROWS, Changes
from gpuwatch.session.mirror.content import digest_of
from gpuwatch.session.mirror.cursor import cursor_of, parse
from gpuwatch.session.mirror.tables import BadRows, Batch
from gpuwatch.session.reading.open import open_session
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.statements import (
    device_row,
    device_used,
    event,
    fact,
    insert,
    meta,
    step,
    without_facts,
    without_meta,
)
from gpuwatch.session.writing.store import SessionStore
from gpuwatch.session.writing.writer import OpenMinute, SessionWriter
from gpuwatch.telemetry.base import Channel, Device
from tests.session.conftest import CHANNELS, SECOND, create
from tests.session.samples import rows_of

TICK = insert("tick", len(CHANNELS), "n", "t")


class Pair:
    """A session file, and its copy."""

    def __init__(self, folder: Path) -> None:
        for name in ("there", "here"):
            (folder / name).mkdir()
        self.there, self.here = folder / "there/s.gpuwatch", folder / "here/s.gpuwatch"
        self.store = create(self.there)
        self.connect()

    def connect(self) -> None:
        """Begin a connection: the other side knows what the copy holds, and nothing else."""
        self.copy = Copy(self.here)
        cursor = self.copy.cursor
        document = None if cursor is None else parse(cursor.document())
        self.changes = Changes(self.there, document)

    def cut(self) -> None:
        self.changes.close()
        self.copy.close()
        self.connect()

    def carry(self, *, last: bool = False) -> list[Batch]:
        """Carry all that is new; returns the batches."""
        batches = []
        while (batch := self.changes.read(last=last)) is not None:
            self.copy.take(batch)
            batches.append(batch)
        self.assert_cursor()
        return batches

    def assert_cursor(self) -> None:
        opened = open_session(self.here, lambda _: False)
        assert cursor_of(opened.connection) == self.copy.cursor == self.changes.cursor
        opened.close()

    def assert_same(self) -> None:
        assert digest_of(self.there) == digest_of(self.here)

    def close(self) -> None:
        self.changes.close()
        self.copy.close()
        self.store.close()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    pair = Pair(tmp_path)
    yield pair
    pair.close()


def test_what_did_not_change_is_not_carried(pair: Pair) -> None:
    pair.store.write([meta("run_state", {"state": "running"}), (TICK, (0, 5, 0.25, None))])
    (first,) = pair.carry()
    assert first.new and set(first.rows) == {"tick"} and len(first.channels) == 2
    assert pair.carry() == []
    pair.store.write([meta("run_state", {"state": "paused"})])
    (second,) = pair.carry()
    assert second.put == {"meta": [("run_state", '{"state": "paused"}')]} and not second.rows
    pair.assert_same()


def test_rows_that_are_replaced_or_removed_are_so_in_the_copy(pair: Pair) -> None:
    gpu = Device("gpu0", "gpu", "H100", "GPU-1", {"memory": 1})
    pair.store.write(
        [
            *(meta("ceilings", {"x": 1}), fact("process", "a", 1), fact("host", "b", 2)),
            *(device_row(gpu, None), (TICK, (3, 5, 0.25, None))),
        ]
    )
    pair.carry()
    pair.store.write(
        [
            *(without_meta("ceilings"), without_facts("process"), device_used("gpu0", True)),
            (TICK, (3, 9, 0.5, 1)),
        ]
    )
    (batch,) = pair.carry()
    assert batch.gone == {"fact": [("process", "a")], "meta": [("ceilings",)]}
    assert batch.rows == {"tick": [(3, 9, 0.5, 1)]} and set(batch.put) == {"device"}
    pair.assert_same()


@pytest.mark.parametrize("cut", [False, True])
def test_a_minute_takes_the_place_of_its_ticks(pair: Pair, cut: bool) -> None:
    writer = SessionWriter(pair.store, len(CHANNELS), base_ns=0)
    for n in range(150):
        writer.tick(n, n * SECOND, [n / 100, None])
        if n in (20, 70, 110, 149):
            writer.commit()
            if n != 110:
                batches = pair.carry()
            if cut:
                pair.cut()
    assert [row[0] for row in batches[-1].rows["minute"]] == [1]
    assert [row[0] for row in batches[-1].rows["tick"]] == list(range(120, 150))
    with SessionReader(pair.here) as here, SessionReader(pair.there) as there:
        assert rows_of(here, [0, 1]) == rows_of(there, [0, 1])
    pair.assert_same()


def test_a_recorder_that_takes_over_goes_on_in_the_open_minute(pair: Pair) -> None:
    writer = SessionWriter(pair.store, len(CHANNELS), base_ns=0)
    for n in range(12):
        writer.tick(n, n * SECOND, [n / 100, None])
    writer.commit()
    pair.carry()
    pair.cut()
    again = SessionWriter(pair.store, len(CHANNELS), base_ns=0)
    for tick in pair.store.open_ticks():
        again.restore(*tick)
    for n in range(12, 65):
        again.tick(n, n * SECOND, [n / 100, None])
    again.commit()
    pair.carry()
    pair.assert_same()
    with SessionReader(pair.here) as here:
        assert rows_of(here, [0]) == [(n * SECOND, n / 100) for n in range(65)]


def test_a_column_that_comes_later_comes_before_its_values(pair: Pair) -> None:
    pair.store.write([(TICK, (0, 5, 0.25, None))])
    pair.carry()
    late = [(Channel("gpu0", f"late.{n}", Method.MEASURED, "nvml"), "1", "gauge") for n in range(2)]
    pair.store.add_channels(2, late)
    pair.store.write([(insert("tick", 4, "n", "t"), (1, 6, 0.5, 1, 2, 3.5))])
    (batch,) = pair.carry()
    assert [row[0] for row in batch.channels] == [2, 3]
    pair.assert_same()
    pair.cut()
    pair.store.add_channels(4, [(Channel("gpu1", "x", Method.BOUND, "y"), "1", "gauge")])
    assert len(pair.carry()) == 1
    pair.assert_same()
    with SessionReader(pair.here) as reader:
        assert [channel.metric for channel in reader.channels()][2:] == ["late.0", "late.1", "x"]


def test_a_long_log_is_shortened_in_the_copy_too(pair: Pair, long_recording: None) -> None:
    log, chance = KeptLog(), random.Random(4)
    removed: list[tuple[int, int]] = []
    for n in range(0, MOST_LOG_LINES + 60_000, 20_000):
        pair.store.write(
            [row for i in range(n, n + 20_000) for row in log.add(i, "stdout", f"line {i}")]
        )
        if chance.random() < 0.3:
            pair.cut()
        removed += [piece for batch in pair.carry() for piece in batch.removed]
    removed += [piece for batch in pair.carry(last=True) for piece in batch.removed]
    assert removed and removed[0][0] == 2_000
    pair.assert_same()
    with sqlite3.connect(pair.here) as db:
        ((count, first),) = db.execute("SELECT count(*), min(n) FROM log WHERE n >= 2000")
    assert count <= MOST_LOG_LINES and first > 2_000


def test_much_at_once_comes_in_pieces_and_the_result_last(pair: Pair) -> None:
    lines = [step(n, n, 1, 0, 1.0, b"\0" * 8, None, None, None, None, None, 1e9, None)
             for n in range(2 * MOST_ROWS)]  # fmt: skip
    pair.store.write([*lines, event(1, "xid", "é" * 100), meta("result", {"code": 0})])
    batches = pair.carry()
    assert len(batches) >= 3
    assert all(sum(map(len, batch.rows.values())) <= MOST_ROWS for batch in batches)
    assert ["result" in batch.meta for batch in batches] == [False] * (len(batches) - 1) + [True]
    pair.assert_same()


def test_long_rows_come_one_by_one(pair: Pair) -> None:
    blob = bytes(4 << 20)
    lines = [step(n, n, 1, 0, 1.0, blob, None, None, None, None, None, None, None)
             for n in range(8)]  # fmt: skip
    pair.store.write([meta("profile", "x" * (2 << 20)), meta("counters", "y" * (2 << 20)), *lines])
    batches = pair.carry()
    assert batches[0].new and "session" in batches[0].meta
    lengths = [len(encode(BatchFrame(1, batch))) for batch in batches]
    assert max(lengths) < LONGEST_LINE // 2
    pair.assert_same()


def test_random_histories_with_cuts_end_the_same(pair: Pair) -> None:
    chance = random.Random(7)
    tick = columns = 0
    minute = OpenMinute(2)
    for _ in range(150):
        rows = []
        for _ in range(chance.randrange(4)):
            kind = chance.randrange(5)
            if kind == 0:
                values = [chance.choice((None, 1, 0.5)) for _ in range(2 + columns)]
                tick += chance.randrange(3)
                rows += minute.add(tick, tick * 9 * SECOND, values)
                row = tick, tick * 9 * SECOND, *values
                rows.append((insert("tick", 2 + columns, "n", "t"), row))
            elif kind == 1:
                rows.append(meta(chance.choice("abcd"), chance.random()))
            elif kind == 2:
                rows.append(without_meta(chance.choice("abcd")))
            elif kind == 3:
                rows.append(event(1, "xid", "text\0\n\u4e16"))
            else:
                rows.append(fact(chance.choice("xy"), chance.choice("abc"), chance.random()))
        pair.store.write(rows)
        if chance.random() < 0.1:
            channel = Channel("gpu0", f"late.{columns}", Method.MEASURED, "nvml")
            pair.store.add_channels(2 + columns, [(channel, "1", "gauge")])
            columns += 1
            minute = OpenMinute(2 + columns)
            for each in pair.store.open_ticks():
                minute.add(*each)
        if chance.random() < 0.2:
            pair.cut()
        if chance.random() < 0.6:
            pair.carry()
    pair.carry(last=True)
    pair.assert_same()


def test_a_reader_that_holds_the_copy_for_a_while_delays_it_only(pair: Pair) -> None:
    pair.carry()
    reader = sqlite3.connect(pair.here, check_same_thread=False)
    reader.execute("BEGIN")
    reader.execute("SELECT * FROM meta").fetchone()
    release = threading.Timer(1.5, reader.rollback)
    release.start()
    pair.store.write([event(1, "xid", "79")])
    assert len(pair.carry()) == 1
    release.join()
    reader.close()
    pair.assert_same()


def test_a_recorder_that_commits_meanwhile_is_not_disturbed(pair: Pair) -> None:
    for n in range(200):
        pair.store.write([event(n, "xid", "79")])
        if n % 10 == 0:
            pair.carry()
    pair.carry()
    pair.assert_same()


def test_another_session_of_the_same_name_begins_anew(pair: Pair) -> None:
    pair.store.write([event(1, "xid", "79")])
    pair.carry()
    pair.store.close()
    pair.there.rename(pair.there.with_name("old"))
    pair.store = create(pair.there)
    pair.store.write([meta("session", {"id": "def"})])
    assert pair.changes.replaced
    pair.cut()
    (batch,) = pair.carry()
    assert batch.new and batch.session == "def"
    assert sorted(os.listdir(pair.here.parent)) == [
        *("s.gpuwatch", "s.gpuwatch-journal", "s.gpuwatch.lost-1")
    ]
    pair.assert_same()


def test_a_file_of_another_schema_is_left_alone(pair: Pair) -> None:
    pair.changes.close()
    pair.store.write([(f"PRAGMA user_version={schema.VERSION + 1}", ())])
    with pytest.raises(NewerSchema):
        Changes(pair.there, None)


def test_a_copy_that_is_no_session_is_set_aside(pair: Pair) -> None:
    pair.copy.close()
    pair.here.write_bytes(b"something else")
    pair.cut()
    assert pair.copy.cursor is None
    pair.carry()
    pair.assert_same()
    assert pair.here.with_name("s.gpuwatch.lost-1").read_bytes() == b"something else"


def test_a_copy_has_at_most_two_gibibytes(pair: Pair) -> None:
    pair.carry()
    os.truncate(pair.here, LARGEST + 1)  # a hole: it takes no room
    pair.store.write([event(1, "xid", "79")])
    batch = pair.changes.read()
    assert batch is not None
    with pytest.raises(BadRows, match="larger than 2 GiB"):
        pair.copy.take(batch)


@pytest.mark.parametrize(
    "batch",
    [
        Batch("s", "abc", rows={"event": [(1, 1, "xid", None, "a"), (1, 1, "xid", None, "b")]}),
        Batch("s", "abc", rows={"event": [(1 << 63, 1, "xid", None, "a")]}),
        Batch("s", "abc", rows={"event": [(None, 1, "xid", None, "a")]}),
        Batch("s", "abc", rows={"event": [(1, 1, "xid", None, "\ud800")]}),
        Batch("s", "abc", rows={"event": [(1, 1, "xid", None, "x" * (8 << 20))]}),
        Batch("s", "abc", rows={"event": [(1, 1, "xid", None)]}),
        Batch("s", "abc", rows={"event": [(1, 1.5, "xid", None, "a")]}),
        Batch("s", "abc", rows={"event": []}),
        Batch("s", "abc", rows={"sqlite_master": [(1, 1, "xid", None, "a")]}),
        Batch("s", "abc", rows={"tick": [(1, 1, "text", None)]}),
        Batch("s", "abc", rows={"tick": [(1, 1, 1)]}),
        Batch("s", "abc", rows={"tick": [(1, True, 1, 1)]}),
        Batch("s", "abc", rows={"meta": [("a", "1")]}),
        Batch("s", "abc", put={"tick": [(1, 1, 1, 1)]}),
        Batch("s", "abc", put={"meta": [("handle", "{}")]}),
        Batch("s", "abc", put={"meta": [("recorder", "{}")]}),
        Batch("s", "abc", put={"meta": [("session", '{"id": "other"}')]}),
        Batch("s", "abc", put={"meta": [(str(n), "1") for n in range(1_001)]}),
        Batch("s", "abc", gone={"meta": [("session",)]}),
        Batch("s", "abc", gone={"meta": [("a", "b")]}),
        Batch("s", "abc", gone={"meta": [(None,)]}),
        Batch("s", "abc", removed=[(0, 1 << 63)]),
        Batch("s", "abc", channels=[(7, "a", "b", "1", "gauge", "measured", "c", None)]),
        Batch("s", "abc", channels=[(2, "a", "b", "1", "gauge", "guessed", "c", None)]),
        Batch("s", "other", rows={"event": [(1, 1, "xid", None, "a")]}),
        Batch("s", "x" * 65, new=True),
        Batch("s", "abc", new=True, put={"meta": [("session", '{"id": "abc"}')]}),
    ],
)
def test_what_no_recorder_writes_is_refused_and_leaves_the_copy_as_it_is(
    pair: Pair, batch: Batch
) -> None:
    pair.carry()
    before = digest_of(pair.here)
    with pytest.raises(BadRows):
        pair.copy.take(batch)
    assert digest_of(pair.here) == before
    pair.store.write([event(1, "xid", "79")])
    pair.carry()
    pair.assert_same()


def test_the_store_of_a_copy_is_a_recorders(pair: Pair) -> None:
    pair.carry()
    SessionStore.reopen(pair.here).close(whole=False)
    assert pair.here.stat().st_mode & 0o777 == 0o600
    assert pair.here.with_name("s.gpuwatch-journal").stat().st_size == 0
