"""A few figures of runs whose sessions are gone: written small, and read as data."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from gpuwatch.places.kubernetes import in_pod
from gpuwatch.session import in_part, placement
from gpuwatch.session.in_part import InPart, Refused, RunInPart, message, parse
from gpuwatch.session.placement import JobState, Placement
from gpuwatch.session.reading.status import State, status
from tests.conftest import Cli

RUN = RunInPart(1, "finished", 12.5, 100, 0.0102, 6274.5, 1073741824.0)
MESSAGE = '{"gpuwatch":1,"more":0,"runs":[[1,"finished",12.5,100,0.0102,6274.5,1073741824.0]]}'


def row(index: int) -> dict[str, object]:
    figures = (1.23456789, 1000, 0.010212345, 6274.56789, 1073741824.0)
    return dict(zip(in_part.KEYS, (index, "finished", *figures), strict=True))


def test_what_is_said_is_read_again() -> None:
    assert parse(MESSAGE) == InPart((RUN,))
    assert in_part.of_document(in_part.document(InPart((RUN,), 3))) == InPart((RUN,), 3)
    told = "finished after 0:12, 100 steps, median 10.2 ms, 6,274 samples/s"
    assert RUN.text == f"{told}, peak GPU memory 1.00 GiB"
    assert RunInPart(1, "failed", None, None, None, None, None).text == "failed"


def test_a_message_is_small_and_says_what_had_no_room() -> None:
    text = message([row(index) for index in range(1, 501)])
    found = parse(text)
    assert len(text) <= in_part.MOST_BYTES == in_pod._MESSAGE_BYTES < 4096
    assert len(found.runs) > 50 and len(found.runs) + found.more == 500
    assert [run.run for run in found.runs] == list(range(1, len(found.runs) + 1))
    assert found.runs[0].step_median_seconds == 0.0102123


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "not JSON"),
        ("Traceback (most recent call last)", "not JSON"),
        ("[" * 3000, "not JSON"),
        ("[]", "did not write it"),
        ('{"runs": []}', "did not write it"),
        ('{"gpuwatch": 2, "more": 0, "runs": []}', "another version"),
        ('{"gpuwatch": 1, "more": 0}', "no runs"),
        ('{"gpuwatch": 1, "more": -1, "runs": []}', "no runs"),
        (MESSAGE.replace("12.5,", ""), "7 values"),
        (MESSAGE.replace("[1,", "[true,"), "no number"),
        (MESSAGE.replace("[1,", "[-1,"), "no number"),
        (MESSAGE.replace("finished", "\\u001b[2J"), "no status"),
        (MESSAGE.replace(",100,", ",1e2,"), "number of steps"),
        (MESSAGE.replace("12.5", '"12.5"'), "figure"),
        (MESSAGE.replace("12.5", "-1"), "figure"),
        (MESSAGE.replace("12.5", "NaN"), "figure"),
        (MESSAGE.replace("12.5", "1" * 400), "figure"),
        (MESSAGE.replace("]]", '],[1,"lost",null,null,null,null,null]]'), "twice"),
        (MESSAGE + " " * 4000, "bytes"),
    ],
)
def test_anything_else_is_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why):
        parse(text)


def test_a_placement_holds_it(tmp_path: Path) -> None:
    known = Placement(
        "kubernetes", "0" * 16, JobState.IN_PART, written=time.time(), in_part=InPart((RUN,))
    )
    placement.write(tmp_path, known)
    assert placement.read(tmp_path) == known
    document = json.loads((tmp_path / placement.PLACEMENT).read_text())
    document["in_part"]["runs"][0][2] = "x"
    (tmp_path / placement.PLACEMENT).write_text(json.dumps(document))
    found = placement.read(tmp_path)
    assert found is not None and found.in_part is None


def test_the_figures_are_those_of_the_list(cli: Cli) -> None:
    step = ':::GPUWATCH {"event": "step", "step": 1, "seconds": 0.25, "samples": 8}'
    script = f"echo '{step}'; exit 3"
    cli("--record", "--", "sh", "-c", script, code=1)
    (listed,) = json.loads(cli.read("sessions", "--format", "json").stdout)["sessions"]
    (run,) = parse(cli("in-part", Path(listed["path"]).parent).stdout).runs
    assert (run.run, run.status, run.steps, run.step_median_seconds) == (1, "failed", 1, 0.25)
    assert run.samples_per_second == listed["samples_per_second"] == 32
    assert "is not a study" in cli("in-part", cli.home, code=2).stderr


def test_a_session_without_an_end_reads_as_fetched_in_part(tmp_path: Path) -> None:
    known = Placement(
        "kubernetes", "0" * 16, JobState.IN_PART, fetched=True, in_part=InPart((RUN,))
    )
    placement.write(tmp_path, known)
    found = status({}, tmp_path / "01-bare.gpuwatch")
    assert found.state is State.IN_PART and found.exit_code is None and RUN.text in found.text
    for other in ("02-bare.gpuwatch", "bare.gpuwatch", "-.gpuwatch"):
        assert status({}, tmp_path / other).state is State.LOST
    ended = {"result": {"code": 0}}
    assert status(ended, tmp_path / "01-bare.gpuwatch").state is State.FINISHED
