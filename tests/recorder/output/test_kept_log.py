"""What is kept of a log: never more than its limits, always its start and its end."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.recorder.output.kept_log import (
    HEAD_BYTES,
    HEAD_LINES,
    LEAST_BYTES,
    LEAST_LINES,
    MOST_BYTES_PER_SECOND,
    MOST_LINES_PER_SECOND,
    MOST_LOG_BYTES,
    MOST_LOG_LINES,
    KeptLog,
)
from gpuwatch.session.writing.statements import Row
from gpuwatch.session.writing.store import SessionStore

SECOND = 1_000_000_000
UNREADABLE = "\ufffd"
"""What a byte that is no UTF-8 becomes."""


class Log:
    """The table of a session, without its file."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self._db = sqlite3.connect(":memory:")
        self._db.execute("CREATE TABLE log (n INTEGER PRIMARY KEY, t, stream, text)")

    def write(self, rows: Sequence[Row]) -> None:
        for sql, values in rows:
            if " log " in sql:
                self._db.execute(sql, values)
            else:
                self.events.append(str(values))

    def lengths(self) -> list[tuple[int, int]]:
        return SessionStore(Path("in-memory"), self._db).log_lengths()


@pytest.fixture
def log() -> Log:
    return Log()


@pytest.mark.usefixtures("long_recording")
@pytest.mark.parametrize("text", ["x" * 10, "x" * 1_000, "x" * 65_536, UNREADABLE * 65_536])
def test_a_log_of_any_line_length_stays_within_its_bytes(log: Log, text: str) -> None:
    kept, length = KeptLog(), len(text.encode())
    lines = 3 * (MOST_LOG_BYTES + HEAD_BYTES) // (length + 32)
    for n in range(min(lines, 2 * MOST_LOG_LINES)):
        log.write(kept.add(n * SECOND, "stdout", text))
    found = log.lengths()
    assert {size for _, size in found} == {length}
    assert sum(size + 32 for _, size in found) <= MOST_LOG_BYTES + HEAD_BYTES
    assert len(found) <= HEAD_LINES + MOST_LOG_LINES
    numbers = [n for n, _ in found]
    (gap,) = [at for at, n in enumerate(numbers[1:], 1) if n != numbers[at - 1] + 1]
    assert gap == min(HEAD_LINES, HEAD_BYTES // (length + 32))
    assert numbers[0] == 0 and numbers[-1] == n
    assert len([each for each in log.events if "log is long" in each]) == 1


@pytest.mark.usefixtures("long_recording")
@pytest.mark.parametrize("text", ["x" * 100, "x" * 65_536, UNREADABLE * 65_536])
@pytest.mark.parametrize("before", [0, 50, 3_000, 500_000])
def test_another_recorder_goes_on_as_the_first_would_have(log: Log, text: str, before: int) -> None:
    first, length = KeptLog(), len(text.encode())
    before = min(before, 4 * MOST_LOG_BYTES // length)
    for n in range(before):
        log.write(first.add(n * SECOND, "stdout", text))
    lengths = log.lengths()
    second = KeptLog(lengths, lengths[-1][0] if lengths else -1)
    for n in range(before, before + 20_000 if length < 1000 else before + 600):
        rows = first.add(n * SECOND, "stdout", text)
        assert second.add(n * SECOND, "stdout", text) == rows


@pytest.mark.parametrize("line", ["x" * 10, "x" * 60_000, UNREADABLE * 20_000])
def test_what_waits_for_a_commit_is_limited_whatever_a_flood_brings(line: str) -> None:
    kept, length = KeptLog(), len(line.encode())
    rows = []
    for _ in range(100):
        count = (4 << 20) // length
        rows += kept.take([(5, "stdout", line)] * count)
    texts = [str(values[3]) for sql, values in rows if sql.startswith("INSERT INTO log")]
    told = [text for text in texts if text.startswith("[gpuwatch: ")]
    left_out = sum(int(text.split()[1].replace(",", "")) for text in told)
    assert len(texts) <= MOST_LINES_PER_SECOND + (LEAST_LINES + 1) * len(told)
    assert sum(len(text.encode()) for text in texts) <= MOST_BYTES_PER_SECOND + (
        LEAST_BYTES + 100
    ) * len(told)
    assert left_out + len(texts) - len(told) == 100 * ((4 << 20) // length)
    last = kept.take([(6, "stdout", line)] * count + [(6, "stderr", "last word")])
    assert last[-1][1][3] == "last word"
    again = kept.take([(SECOND + 5, "stdout", line)] * 10)
    assert len([sql for sql, _ in again if sql.startswith("INSERT INTO log")]) == 10


def test_lost_output_makes_no_line_of_two_halves() -> None:
    intake = Intake(0)
    one = b':::GPUWATCH {"event": "step", "step": 1'
    two = b'2, "samples": 64, "seconds": 0.1}\n:::GPUWATCH {"event": "step", "step": 13}\n'
    rows = intake.take([Output(1, "stdout", one), Output(2, "stdout", b"", lost=1 << 20)])
    rows += intake.take([Output(3, "stdout", two)])
    steps = [values for sql, values in rows if sql.startswith("INSERT INTO step ")]
    assert [values[1] for values in steps] == [13]
    log = [values[3] for sql, values in rows if sql.startswith("INSERT INTO log")]
    assert log == [one.decode(), two.decode().splitlines()[0]]


def test_lost_output_is_told_at_every_tenfold_and_at_the_end() -> None:
    intake = Intake(0)
    rows = [row for n in range(5_000) for row in intake.take([Output(n, "stdout", b"", lost=1000)])]
    rows += intake.finish(6_000)
    told = [int(str(values[-1]).split()[0]) for _, values in rows]
    assert told == [1_000, 10_000, 100_000, 1_000_000, 5_000_000]
