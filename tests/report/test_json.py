"""JSON of a study: faithful, strict, and documented key by key."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.results import Kind, StudyResult
from gpuwatch.analysis.summary.listing import ListedSession, ListedStudy
from gpuwatch.analysis.summary.summary import SlowStep
from gpuwatch.report import json as as_json
from gpuwatch.report.json import study

DOCUMENT = Path(__file__).parents[2] / "docs" / "json.md"
LEAVES = (
    {"estimate", "low", "high", "level"},
    {"scope", "key", "values"},
    {"table", "family", "name", "kernels", "launches", "flop", "shares", "per_step"},
    {"name", "kind", "arguments", "parameters"},
    {"name", "kind", "arguments", "parameters", "label", "program"},
    {"code", "text", "hint"},
)
"""Keys of objects that the document describes once."""
OPEN = {
    "sessions[]",
    "plan.settings",
    "plan.parts[].sweep",
    "plan.parts[].environments[]",
    "plan.order[].parameters",
    "step.phases",
    "step.slowest.phases",
    "questions[].contrasts[].verdict.total",
}
"""Described elsewhere, or of any keys."""


def read(result: StudyResult) -> Any:
    text = as_json.dumps(study(result))
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


def keys(value: Any, path: str = "") -> Iterator[str]:
    """``questions[].cells[].label`` and so on."""
    if path in OPEN:
        return
    if isinstance(value, dict) and not any(set(value) == leaf for leaf in LEAVES):
        for key, each in value.items():
            name = f"{path}.{key}" if path else key
            yield name
            yield from keys(each, name)
    elif isinstance(value, list):
        for each in value:
            yield from keys(each, f"{path}[]")


def documented(command: str) -> set[str]:
    """The paths in the first columns of the tables of a command."""
    text = DOCUMENT.read_text()
    begin = text.index(f"## `gpuwatch {command} --format json`")
    found, prefix = set(), ""
    for line in text[begin : text.index("\n## ", begin + 3)].split("\n"):
        if heading := re.match(r"### `(.+)`$", line):
            prefix = f"{heading[1]}."
        if line.startswith("| `"):
            first, *others = re.findall(r"`([^`]+)`", line.split("|")[1])
            before = first.rpartition(".")[0]
            found.add(prefix + first)
            for other in others:
                short = other.startswith(".") and before
                found.add(prefix + (before + other if short else other))
    return found


def test_every_key_is_documented_and_every_documented_key_is_there(two_cases: StudyResult) -> None:
    assert set(keys(read(two_cases))) == documented("compare SESSION...")


@pytest.mark.parametrize("of", ["session", "timing", "step"])
def test_every_key_of_a_run_is_documented_and_there(result: StudyResult, of: str) -> None:
    session = result.sessions[0]
    steps = replace(session.steps, slowest=SlowStep(1, 0.259, {"data": 0.202}))
    found = as_json.summary(replace(session, steps=steps))[of]
    told = documented("show SESSION")
    assert set(keys(found, of)) == {key for key in told if key.startswith(f"{of}.")}


def test_every_key_of_a_list_is_documented_and_there() -> None:
    session = ListedSession(path=Path("a"), study="s", status="finished")
    study = ListedStudy(path=Path("s"), study="s")
    assert {*session.document(), *study.document()} == documented("sessions")


def test_it_holds_all_that_a_comparison_holds(result: StudyResult) -> None:
    plain = as_json.comparison(compare(result.sessions))
    found = read(result)
    assert set(plain) <= set(found) and found["schema"] == plain["schema"] == 2
    judged = ("step time, typical", "step time, steady mean", "throughput, steady mean")
    rows = [row["values"] for row in found["rows"] if row["name"] not in judged]
    assert rows == [row["values"] for row in plain["rows"] if row["name"] != "throughput"]
    assert len(found["rows"]) > len(rows)
    assert found["sessions"] == json.loads(as_json.dumps(plain["sessions"]))


def test_sessions_are_named_and_not_repeated(result: StudyResult) -> None:
    found = read(result)
    ids = [session["session"]["id"] for session in found["sessions"]]
    (question,) = found["questions"]
    named = [run["session"] for cell in question["cells"] for run in cell["runs"]]
    assert sorted(named) == sorted(ids) and len(set(ids)) == 24
    assert [run["session"] for run in found["plan"]["order"]] == ids
    assert found["sweeps"][0]["points"][1]["sessions"] == [
        run["session"] for run in question["cells"][0]["runs"]
    ]


def test_a_verdict_is_its_text_and_keeps_every_digit(result: StudyResult) -> None:
    (question,) = read(result)["questions"]
    first, second = question["contrasts"]
    assert (first["verdict"]["kind"], second["verdict"]["kind"]) == ("same", "slower")
    verdict = result.questions[0].contrasts[1].verdict
    assert verdict.change is not None
    assert second["verdict"]["change"]["estimate"] == verdict.change.estimate
    assert second["ratios"] == list(result.questions[0].contrasts[1].ratios)


def test_ratios_are_against_a_judged_run_of_the_baseline_of_the_same_question(
    two_cases: StudyResult,
) -> None:
    found = read(two_cases)
    sessions = [each["session"]["id"] for each in found["sessions"]]
    (row,) = [row for row in found["rows"] if row["name"] == "step time, median"]
    for question in found["questions"]:
        base = sessions.index(question["cells"][0]["runs"][1]["session"])
        other = sessions.index(question["cells"][2]["runs"][4]["session"])
        assert row["ratios"][base] == 1
        assert row["ratios"][other] == pytest.approx(row["values"][other] / row["values"][base])
    assert found["baseline"] == found["questions"][0]["cells"][0]["runs"][1]["session"]


def test_an_invalid_verdict_leaves_ratios_of_single_runs_alone(
    pair: StudyResult, result: StudyResult
) -> None:
    """They describe the two."""
    question = pair.questions[0]
    (contrast,) = question.contrasts
    verdict = replace(contrast.verdict, kind=Kind.INVALID, reasons=("batch size 64 against 128",))
    invalid = replace(question, contrasts=(replace(contrast, verdict=verdict),))
    found = read(replace(pair, questions=(invalid,)))
    assert found["rows"] == read(pair)["rows"]
    asked = tuple(
        replace(each, contrasts=tuple(replace(of, verdict=verdict) for of in each.contrasts))
        for each in result.questions
    )
    of_study = read(replace(result, questions=asked))
    assert all(ratio is None for row in of_study["rows"] for ratio in row["ratios"])


def test_numbers_that_are_not_finite_are_null(result: StudyResult) -> None:
    floor = replace(result.noise[0], noise=float("nan"))
    assert read(replace(result, noise=(floor,)))["noise"][0]["noise"] is None


def test_twenty_four_sessions_stay_under_a_megabyte(result: StudyResult) -> None:
    assert len(as_json.dumps(study(result))) < 1_000_000
