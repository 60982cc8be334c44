"""Step lines of several processes are told apart from those of one."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake
from gpuwatch.session.writing.statements import Row


def lines(*bodies: dict[str, Any]) -> bytes:
    return "".join(f":::GPUWATCH {json.dumps(body)}\n" for body in bodies).encode()


def step(number: int, **more: Any) -> dict[str, Any]:
    return {"event": "step", "step": number, **more}


def events(rows: list[Row]) -> list[str]:
    return [row[1][3] for row in rows if "INTO event" in row[0]]


def told(*bodies: dict[str, Any]) -> list[str]:
    return events(Intake(0).take([Output(10, "stdout", lines(*bodies))]))


RUN = {"event": "run", "workload": "mine"}


@pytest.mark.parametrize(
    ("bodies", "evidence"),
    [
        ([step(1), step(1), step(2), step(2)], "step 1 came after step 1"),
        ([step(1), step(2), step(3), step(1)], "step 1 came after step 3"),
        ([step(1, warmup=True), step(1), step(1, warmup=True)], "step 1 came after step 1"),
        # Two ranks that report by time: the numbers rise, and yet steps come twice.
        ([step(37, count=37), step(39, count=39)], "steps 1 to 39 came after step 37"),
        ([RUN, step(1), RUN], "there is a second `run` line"),
        ([step(1, writer=0), step(2, writer=1)], "writers 0 and 1"),
        ([step(1, writer=0), step(1, writer=0)], "step 1 came after step 1"),
        ([{**RUN, "writer": "node-a"}, step(1, writer="node-b")], "writers node-a and node-b"),
    ],
)
def test_several_writers_are_told_once_with_what_shows_them(
    bodies: list[dict[str, Any]], evidence: str
) -> None:
    (text,) = told(*bodies, *bodies)
    assert evidence in text
    assert "let only rank 0 print" in text


@pytest.mark.parametrize(
    "bodies",
    [
        [RUN, step(1, warmup=True), step(2, warmup=True), step(1), step(2)],
        [step(500), step(501)],
        [step(10, count=10), step(20, count=10), step(21)],
        [step(10), step(20), step(30)],
        [step(0), step(1)],
        # A loop that counts anew in each epoch says that one process prints all lines.
        [{**RUN, "writer": 7}, step(1, writer=7), step(2, writer=7), step(1, writer=7)],
        [step(1, writer=True), step(2, writer=None), step(3, writer="")],
    ],
)
def test_the_lines_of_one_loop_are_no_notice(bodies: list[dict[str, Any]]) -> None:
    assert told(*bodies) == []


def test_the_next_recorder_knows_the_numbers_and_does_not_say_it_twice() -> None:
    first = Intake(0)
    first.take([Output(10, "stdout", lines(RUN, step(1), step(2)))])
    known: dict[str, Any] = {"cursor": json.loads(json.dumps(first.state))}
    second = Intake(0, known)
    rows = second.take([Output(20, "stdout", lines(step(2)))])
    assert len(events(rows)) == 1
    third = Intake(0, {"cursor": second.state, "several_writers": {"text": "so"}})
    assert events(third.take([Output(30, "stdout", lines(step(1), RUN))])) == []
