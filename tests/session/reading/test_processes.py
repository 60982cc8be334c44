"""Which processes ran at a moment: found in the minute before it, in old files and in new ones."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.writing.statements import Row

from ..conftest import SECOND, create

GIB = 1024**3


def process(t: float, pid: int, *, owned: int | None = 1, running: int = 1) -> Row:
    return (
        "INSERT INTO process (t, pid, started, name, user, place, owned, running) "
        "VALUES (?, ?, 0, 'python train.py', 'alice', NULL, ?, ?)",
        (int(t * SECOND), pid, owned, running),
    )


def use(t: float, pid: int, cores: float | None, resident: int = GIB) -> Row:
    sql = "INSERT INTO process_use (t, pid, cores, resident) VALUES (?, ?, ?, ?)"
    return sql, (int(t * SECOND), pid, cores, resident)


def on_gpu(t: float, pid: int, *, owned: int | None = 0, running: int = 1) -> Row:
    return (
        "INSERT INTO gpu_process (t, device, pid, name, owned, bytes, running, kind, share) "
        "VALUES (?, 'gpu0', ?, 'python', ?, ?, ?, 'compute', 0.5)",
        (int(t * SECOND), pid, owned, GIB, running),
    )


def written(path: Path, *rows: Row) -> Path:
    store = create(path)
    store.write(rows)
    store.close()
    return path


def test_the_newest_row_of_a_process_counts_and_one_that_left_is_known_to_have(
    tmp_path: Path,
) -> None:
    rows = [process(1, 10), use(1, 10, None), use(3, 10, 0.9), process(1, 11), use(1, 11, 0.1)]
    path = written(tmp_path / "s.gpuwatch", *rows, process(5, 11, running=0))
    with SessionReader(path) as reader:
        running = {row.pid: (row.running, row.cores) for row in reader.processes().all}
    assert running == {10: (True, 0.9), 11: (False, 0.1)}


def test_what_ran_at_an_earlier_moment_is_what_was_written_by_then(tmp_path: Path) -> None:
    rows = [process(1, 10), use(1, 10, 0.1), use(5, 10, 0.9), process(8, 11), on_gpu(9, 12)]
    path = written(tmp_path / "s.gpuwatch", *rows, process(20, 10, running=0))
    with SessionReader(path) as reader:
        past = PastReader(reader, 6 * SECOND)
        assert [(row.pid, row.cores, row.running) for row in past.processes().all] == [
            (10, 0.9, True)
        ]
        assert past.processes().on_gpus == ()
        assert {row.pid for row in reader.processes(10 * SECOND).all} == {10, 11}
        assert [row.pid for row in reader.processes(10 * SECOND).on_gpus] == [12]
        assert reader.processes(SECOND // 2).all == ()


def test_a_process_that_nobody_restated_for_over_a_minute_is_not_there_any_more(
    tmp_path: Path,
) -> None:
    path = written(tmp_path / "s.gpuwatch", process(1, 10), process(90, 11))
    with SessionReader(path) as reader:
        assert [row.pid for row in reader.processes().all] == [11]


def test_a_day_of_rows_is_not_read_for_the_last_minute(tmp_path: Path) -> None:
    rows = [use(t * 2, pid, t % 7) for t in range(20_000) for pid in range(5)]
    path = written(tmp_path / "s.gpuwatch", *rows, *(process(39_990, pid) for pid in range(5)))
    asked: list[str] = []
    with SessionReader(path) as reader:
        reader.opened.connection.set_trace_callback(asked.append)
        found = reader.processes()
        late = reader.processes(20_000 * SECOND)
    assert len(found.all) == 5 and all(row.cores is not None for row in found.all)
    assert late.all == () and len(asked) < 100


def test_how_long_a_stranger_was_on_a_gpu_is_counted_over_all_its_visits(tmp_path: Path) -> None:
    visits = [on_gpu(10, 7), on_gpu(12, 7), on_gpu(20, 7, running=0), on_gpu(30, 7)]
    own = [on_gpu(5, 8, owned=0), on_gpu(6, 8, owned=1)]
    path = written(tmp_path / "s.gpuwatch", *visits, *own, process(10, 7, owned=0))
    with SessionReader(path) as reader:
        (stranger,) = reader.presences(0, 40 * SECOND)
    assert (stranger.pid, stranger.ns, stranger.user) == (7, 20 * SECOND, "alice")


def test_rows_that_no_recorder_writes_do_no_harm(tmp_path: Path) -> None:
    path = written(tmp_path / "s.gpuwatch", process(1, 10), use(1, 10, 0.5), on_gpu(1, 7))
    with sqlite3.connect(path) as db:
        for table in ("process", "gpu_process", "process_use"):
            columns = [row[1] for row in db.execute(f"PRAGMA table_info({table})")][1:]
            marks = ", ".join("?" for _ in columns)
            names = ", ".join(columns)
            for junk in ("x", b"\xff", 9e999, -(2**63)):
                sql = f"INSERT INTO {table} ({names}) VALUES ({marks})"
                db.execute(sql, tuple(junk for _ in columns))
    with SessionReader(path) as reader:
        assert {row.pid for row in reader.processes(2 * SECOND).all} >= {10}
        reader.processes()
        reader.presences(0, SECOND)
