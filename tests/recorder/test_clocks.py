"""What is told of the machine's clocks."""

from __future__ import annotations

import time

import pytest

from gpuwatch.recorder.clocks import Clocks, Reading, read

S = 1_000_000_000
START = Reading(100 * S, 500 * S, 1_760_000_000 * S)


def told(monotonic: float, boot: float, wall: float) -> list[tuple[object, object]]:
    """Kinds and texts after the clocks went on by so many seconds each."""
    now = Reading(
        START.monotonic + int(monotonic * S), START.boot + int(boot * S), START.wall + int(wall * S)
    )
    rows = Clocks(START).look(int(monotonic * S), now)
    return [(values[1], values[3]) for _, values in rows]


def test_a_clock_that_is_kept_right_is_not_told() -> None:
    assert told(0.5, 0.5, 0.5) == []
    assert told(3600, 3600, 3600.9) == []


def test_sleep_is_no_step_of_the_wall_clock() -> None:
    assert told(0.5, 3600.5, 3600.5) == [
        ("suspended", "the machine slept for 60 min: times here do not count that")
    ]


def test_a_clock_that_was_set_while_the_machine_slept_is_both() -> None:
    (slept, stepped) = told(0.5, 30.5, 7230.5)
    assert slept[0] == "suspended" and "for 30 s" in str(slept[1])
    assert stepped[0] == "clock-stepped" and "forwards by 2.0 h" in str(stepped[1])


def test_a_step_is_told_once() -> None:
    clocks = Clocks(START)
    back = Reading(START.monotonic + S, START.boot + S, START.wall - 9 * S)
    (row,) = clocks.look(S, back)
    assert "backwards by 10 s" in str(row[1][3])
    on = Reading(START.monotonic + 2 * S, START.boot + 2 * S, START.wall - 8 * S)
    assert clocks.look(2 * S, on) == []


@pytest.mark.parametrize("clock", ["clock_gettime_ns", "time_ns"])
def test_a_recorder_that_stood_still_between_two_clocks_makes_no_sleep_up(
    monkeypatch: pytest.MonkeyPatch, clock: str
) -> None:
    before = read()
    asked, stops = getattr(time, clock), [1.1]

    def after_a_stop(*which: int) -> int:
        if stops:
            time.sleep(stops.pop())
        found: int = asked(*which)
        return found

    monkeypatch.setattr(time, clock, after_a_stop)
    now = read()
    assert Clocks(before).look(now.monotonic, now) == []
