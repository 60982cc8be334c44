"""A session as it was at an earlier moment."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.reader_at import PastReader
from gpuwatch.session.reading.status import State
from gpuwatch.session.writing import store
from tests.tui.sessions import NS, Script, finished, write


@pytest.fixture
def path(tmp_path: Path) -> Path:
    script = Script(
        seconds=90,
        log=[("stdout", f"line {n}") for n in range(90)],
        events=[(n * 10.0, "throttle", f"event {n}") for n in range(9)],
        meta={**finished(), "error": {"t": 80 * NS, "message": "out of memory"}},
        alive=False,
    )
    return write(tmp_path / "a.gpuwatch", script)


def test_nothing_of_later_is_in_it(path: Path) -> None:
    with SessionReader(path) as reader:
        past = PastReader(reader, 30 * NS)
        channels = [channel.id for channel in reader.channels()]
        assert past.last_sample() == past.samples(channels).t[-1] == 30 * NS
        assert past.steps()[-1].t <= 30 * NS < reader.steps(past.last_step())[0].t
        assert past.log()[-1].t <= 30 * NS and past.last_log() == past.log()[-1].n == 30
        assert [event.text for event in past.events()] == [f"event {n}" for n in range(4)]
        assert past.events_of(["throttle"], 10**9) == past.events()
        assert past.step_count() == sum(row.count for row in past.steps() if not row.warmup)


def test_a_run_that_had_not_ended_was_running_and_had_no_error_yet(path: Path) -> None:
    with SessionReader(path) as reader:
        past = PastReader(reader, 79 * NS)
        meta = past.meta()
        assert "result" not in meta and "closed" not in meta and "error" not in meta
        assert meta["workload"] == reader.meta()["workload"] and "startup" in meta
        assert past.status(meta).state is State.RUNNING and past.status(meta).live
        past.advance(85 * NS)
        assert past.meta()["error"]["message"] == "out of memory"
        past.advance(90 * NS)
        assert past.meta() == reader.meta()
        assert past.status(past.meta()) == reader.status(reader.meta())


def test_going_on_gives_what_came_since(path: Path) -> None:
    with SessionReader(path) as reader:
        past = PastReader(reader, 10 * NS)
        seen = [row.n for row in past.all_steps()]
        for t in range(20, 100, 10):
            past.advance(t * NS)
            seen += [row.n for row in past.all_steps(seen[-1] if seen else -1)]
        assert seen == [row.n for row in reader.all_steps()]


def test_a_channel_is_as_it_was_before_it_changed(path: Path) -> None:
    out = store.SessionStore.reopen(path)
    out.write(
        [
            (
                "INSERT INTO change (t, channel, method, source, reason) VALUES (?, ?, ?, ?, ?)",
                (40 * NS, 0, "unavailable", "test", "the driver lost it"),
            )
        ]
    )
    out.close()
    with SessionReader(path) as reader:
        past = PastReader(reader, 39 * NS)
        assert past.channels()[0].reason is None
        past.advance(41 * NS)
        assert past.channels()[0].reason == "the driver lost it" == reader.channels()[0].reason


def test_before_the_first_row_there_is_nothing(path: Path) -> None:
    with SessionReader(path) as reader:
        past = PastReader(reader, -1)
        assert past.last_sample() is None and past.last_step() == past.last_log() == -1
        assert not any((past.samples([0]).t, past.steps(), past.log(), past.events()))
        assert past.step_count() is None


def test_what_was_counted_of_a_step_is_known_from_the_first_one_on(tmp_path: Path) -> None:
    """The hook counts again later, and the newest count alone is kept."""
    counted = {"t": 60 * NS, "flop_per_step": 1e9}
    path = write(tmp_path / "b.gpuwatch", Script(meta={"count": counted}))
    with SessionReader(path) as reader:
        assert PastReader(reader, 30 * NS).meta()["count"] == counted
        assert "count" not in PastReader(reader, NS).meta()


def test_the_file_stays_open_for_its_reader(path: Path) -> None:
    with SessionReader(path) as reader:
        with PastReader(reader, NS) as past:
            assert past.last_sample() is not None
        assert reader.last_sample() is not None


@pytest.mark.parametrize("t", [-1, 0, 1, 3, 4, 7, 100])
def test_a_row_is_found_by_its_time_through_gaps(tmp_path: Path, t: int) -> None:
    path = write(tmp_path / "a.gpuwatch", Script(seconds=1, steps=False))
    out = store.SessionStore.reopen(path)
    numbers = {2: 1, 5: 3, 2**40: 3, 2**41: 7}
    out.write(
        ("INSERT INTO log VALUES (?, ?, 'stdout', 'x')", (n, at)) for n, at in numbers.items()
    )
    out.close()
    with SessionReader(path) as reader:
        assert reader.row_at("log", t) == max(
            (n for n, at in numbers.items() if at <= t), default=-1
        )
        with pytest.raises(AssertionError, match="no table"):
            reader.row_at("meta", t)
