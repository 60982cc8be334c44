"""When a recording of the machine is committed, and what a reader sees of it."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from time import monotonic_ns
from types import SimpleNamespace

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.writing.statements import Row, meta
from gpuwatch.session.writing.store import Durability, SessionStore
from gpuwatch.session.writing.writer import SessionWriter
from tests.session.samples import times_of
from tests.waiting import until

SECOND = 1_000_000_000
WRITER = "gpuwatch.session.writing.writer"


class Store(SessionStore):
    """A store whose commits can be waited for."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        super().__init__(path, connection)
        self.commits: list[list[Row]] = []

    def write(self, rows: object) -> None:
        listed = list(rows)  # type: ignore[call-overload]
        super().write(listed)
        self.commits.append(listed)

    def until(self, commits: int) -> None:
        until(lambda: len(self.commits) >= commits)


def made(tmp_path: Path, safety: Durability = Durability.NEARLY) -> Store:
    store = Store.create(tmp_path / "s.gpuwatch", (), safety=safety)
    assert isinstance(store, Store)
    store.commits.clear()
    return store


@contextlib.contextmanager
def unwritable(store: Store) -> Iterator[None]:
    """Somebody else writes its file."""
    with contextlib.closing(
        sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    ) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


def ticks(path: Path) -> list[int]:
    with SessionReader(path) as reader:
        return times_of(reader)


def test_a_sample_of_the_machine_is_committed_at_once(tmp_path: Path) -> None:
    store = made(tmp_path)
    writer = SessionWriter(store, 0, base_ns=0, pump_seconds=None)
    writer.start()
    for n in range(2):
        writer.tick(n, n * SECOND, [])
        store.until(n + 1)
        assert ticks(store.path) == [each * SECOND for each in range(n + 1)]
    assert writer.close()


def test_samples_in_quick_succession_share_a_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{WRITER}._LONGEST_SECONDS", 1e4)
    store = made(tmp_path)
    writer = SessionWriter(store, 0, base_ns=0, pump_seconds=None)
    writer.start()
    writer.tick(0, 0, [])
    store.until(1)
    for n in range(1, 19):
        writer.tick(n, n, [])
    writer.tick(19, SECOND, [])
    store.until(2)
    assert writer.close()
    assert [len(rows) for rows in store.commits[:2]] == [1, 19]
    assert ticks(store.path) == [*range(19), SECOND]


@pytest.mark.parametrize(
    ("interval_ms", "first"), [(100, 10), (500, 2), (660, 2), (800, 1), (1000, 1), (3000, 1)]
)
def test_a_commit_comes_with_the_sample_that_is_nearest_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interval_ms: int, first: int
) -> None:
    monkeypatch.setattr(f"{WRITER}._LONGEST_SECONDS", 1e4)
    store = made(tmp_path)
    writer = SessionWriter(store, 0, base_ns=0, pump_seconds=None, commit_seconds=1.0)
    writer.start()
    for n in range(2 * first + 1):
        writer.tick(n, n * interval_ms * SECOND // 1000, [])
        store.until(1 + n // first)
    assert [len(rows) for rows in store.commits] == [1, first, first]
    assert writer.close()


def test_rows_that_no_sample_comes_with_are_written_too(tmp_path: Path) -> None:
    store = made(tmp_path)
    rows = [meta("seen", 1)]

    def pump() -> None:
        while rows:
            writer.put(rows.pop())

    writer = SessionWriter(store, 0, base_ns=0, pump=pump, pump_seconds=None)
    writer.start()
    store.until(1)
    with SessionReader(store.path) as reader:
        assert reader.meta()["seen"] == 1
    assert writer.close()


def test_a_commit_that_fails_is_tried_again_without_another_sample(tmp_path: Path) -> None:
    store = made(tmp_path)
    writer = SessionWriter(store, 0, base_ns=0, pump_seconds=None)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    writer.tick(0, 0, [])
    assert not writer.commit()
    writer.start()
    other.execute("ROLLBACK")
    other.close()
    store.until(1)
    assert ticks(store.path) == [0]
    assert writer.close()


def test_a_file_that_can_be_written_again_only_at_the_very_end_tells_of_it(tmp_path: Path) -> None:
    store, locked = made(tmp_path), contextlib.ExitStack()
    writer = SessionWriter(
        store, 0, base_ns=0, pump_seconds=None, on_trouble=lambda _: locked.close()
    )
    locked.enter_context(unwritable(store))
    writer.put(meta("run_state", "running"))
    writer.start()
    assert writer.close()
    with SessionReader(store.path) as reader:
        (told,) = reader.events()
    assert "the file could not be written for" in told.text


def test_what_is_replaced_takes_no_room_while_the_file_cannot_be_written(tmp_path: Path) -> None:
    store = made(tmp_path)
    writer = SessionWriter(store, 0, base_ns=0)
    with unwritable(store):
        writer.tick(0, 0, [])
        writer.put(*(meta("cursor", n) for n in range(250_000)), meta("run_state", "running"))
        assert not writer.commit()
        writer.put(meta("cursor", "newest"))
        assert not writer.commit()
    assert writer.commit()
    assert len(store.commits[0]) == 3
    with SessionReader(store.path) as reader:
        assert reader.meta() == {"cursor": "newest", "run_state": "running"}
        assert reader.last_sample() == 0
    store.close()


@pytest.mark.parametrize(
    ("line", "count", "most"), [("x" * 65_536, 2_000, 1_024), ("x", 200_100, 200_000)]
)
def test_a_flood_that_cannot_be_written_costs_its_oldest_lines_and_no_sample(
    tmp_path: Path, line: str, count: int, most: int
) -> None:
    store = made(tmp_path)
    writer = SessionWriter(store, 0, base_ns=0)
    sql = "INSERT INTO log VALUES (?, ?, ?, ?)"
    with unwritable(store):
        writer.tick(0, 0, [])
        writer.put(*((sql, (n, 0, "stdout", line)) for n in range(count)))
        assert not writer.commit() and not writer.commit()
    assert writer.commit() and writer.commit()
    store.close()
    numbers = [values[0] for sql, values in store.commits[0] if sql.startswith("INSERT INTO log")]
    assert 0.99 * most <= len(numbers) <= most
    assert numbers == list(range(count - len(numbers), count))
    with SessionReader(store.path) as reader:
        assert reader.last_sample() == 0
        (told,) = reader.events()
    assert f"{count - len(numbers)} rows did not fit into memory and are lost" in told.text


def test_of_what_is_to_be_done_after_a_commit_only_the_newest_waits_for_it(tmp_path: Path) -> None:
    store = made(tmp_path)
    taken: list[int] = []
    called: list[int] = []

    def pump() -> Callable[[], None]:
        taken.append(len(taken))
        writer.put(meta("cursor", taken[-1]))
        return partial(called.append, taken[-1])

    writer = SessionWriter(store, 0, base_ns=0, pump=pump, pump_seconds=0.01)
    with unwritable(store):
        writer.start()
        until(lambda: len(taken) > 5)
        assert not called
    assert writer.close()
    assert called[0] >= 5 and called[-1] == taken[-1]


@pytest.mark.parametrize(
    ("safety", "synchronous"),
    [(Durability.MACHINE, 2), (Durability.NEARLY, 1), (Durability.RECORDER, 0)],
)
def test_a_store_waits_for_the_disk_as_far_as_it_is_asked_to(
    tmp_path: Path, safety: Durability, synchronous: int
) -> None:
    store = made(tmp_path, safety)
    ((found,),) = store._connection.execute("PRAGMA synchronous")
    store.close()
    assert found == synchronous


def test_what_is_read_at_once_is_of_one_moment_and_holds_nobody_up_afterwards(
    tmp_path: Path,
) -> None:
    store = made(tmp_path)
    with SessionReader(store.path) as reader:
        with reader.at_once():
            assert "later" not in reader.meta()
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                store.write([meta("later", 1)])
            assert "later" not in reader.meta()
        with pytest.raises(ZeroDivisionError), reader.at_once():
            reader.meta()
            raise ZeroDivisionError
        store.write([meta("later", 1)])
        assert reader.meta()["later"] == 1
    store.close()


def test_a_pump_is_called_often_at_the_start_then_seldom_at_once_when_asked_and_soon_in_a_hurry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    class Wake(threading.Event):
        """Short waits pass at once; a long one lasts until the writer is told to look."""

        def wait(self, timeout: float | None = None) -> bool:
            assert timeout is not None
            waits.append(timeout)
            return super().wait(None if timeout > 1 else 0.001)

    clock = SimpleNamespace(monotonic=lambda: sum(waits), monotonic_ns=monotonic_ns)
    monkeypatch.setattr(f"{WRITER}.time", clock)
    called: list[int] = []
    writer = SessionWriter(
        made(tmp_path), 0, base_ns=0, pump_seconds=60.0, pump=lambda: called.append(len(waits))
    )
    writer._wake = Wake()
    writer.start()
    until(lambda: waits[-1:] == [60])
    assert waits == [0.05, *[0.1] * (len(waits) - 2), 60]
    assert sum(waits) - 60 == pytest.approx(2, abs=0.2)
    assert called == [*range(1, len(waits))]
    writer.look()
    until(lambda: waits[-2:] == [60, 60])
    writer.hurry = True
    writer.look()
    until(lambda: waits[-2:] == [0.1, 0.1])
    assert writer.close()


def test_the_end_of_a_recording_is_one_commit(tmp_path: Path) -> None:
    store = made(tmp_path)
    writer = SessionWriter(store, 0, base_ns=0, pump_seconds=100.0, commit_seconds=100.0)
    writer.tick(0, SECOND, [])
    writer.start()
    store.until(1)
    writer.tick(1, 2 * SECOND, [])
    assert writer.close()
    assert len(store.commits) == 2
