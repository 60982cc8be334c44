"""What lists and screens take from the summary in a study's folder."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.results import Kind
from gpuwatch.analysis.statistics.intervals import Interval
from gpuwatch.report.json import dumps, study
from gpuwatch.session.study.study_folder import SUMMARY_JSON
from gpuwatch.session.study.summary import LARGEST, contrasts, sayings
from tests.report.results import study_result


def test_what_the_writer_writes_is_found(tmp_path: Path) -> None:
    result = study_result(tmp_path)
    (tmp_path / SUMMARY_JSON).write_text(dumps(study(result)))
    written = [
        (question.label, question.cells[c.baseline].label, question.cells[c.other].label, c)
        for question in result.questions
        for c in question.contrasts
    ]
    found = contrasts(tmp_path)
    assert len(found) == len(written) == 2
    for one, (case, baseline, other, contrast) in zip(found, written, strict=True):
        verdict = contrast.verdict
        assert (one.case, one.baseline, one.other) == (case, baseline, other)
        assert (one.kind, one.pairs) == (verdict.kind.value, verdict.pairs)
        assert one.estimate == pytest.approx(verdict.estimate)
        assert verdict.change is not None
        assert (one.low, one.high) == pytest.approx((verdict.change.low, verdict.change.high))
    said = sayings(tmp_path)
    assert [each.kind for each in said[: len(written)]] == [
        c.verdict.kind.value for *_, c in written
    ]
    assert all(each.text for each in said)
    (*_, last) = found
    assert last.kind in ("same", "small", "slower", "faster")
    words = f"{last.kind.upper()} {100 * (last.estimate or 0):+.1f} % {last.other}"
    assert said[len(written) - 1].short == words


def test_the_value_that_decides_is_found(tmp_path: Path) -> None:
    result = study_result(tmp_path)
    question = result.questions[0]
    verdict = question.contrasts[0].verdict
    total = replace(verdict, kind=Kind.SLOWER, change=Interval(0.2, 0.19, 0.21, 0.975))
    decided = replace(
        verdict,
        kind=Kind.SLOWER,
        typical=Kind.SAME,
        total=replace(total, estimate=0.2),
        by_total=True,
    )
    contrast = replace(question.contrasts[0], verdict=decided)
    question = replace(question, contrasts=(contrast,))
    text = dumps(study(replace(result, questions=(question,))))
    (tmp_path / SUMMARY_JSON).write_text(text)
    (found,) = contrasts(tmp_path)
    assert (found.kind, found.by_total, found.estimate) == ("slower", True, 0.2)
    assert (found.low, found.high) == (0.19, 0.21)
    assert sayings(tmp_path)[0].short == f"SLOWER +20.0 % {found.other}, steady mean"


@pytest.mark.parametrize(
    ("estimate", "short"),
    [
        (0.031, "FASTER +3.1 % SAME b +0.0 %"),
        (-1e-7, "FASTER +0.0 % SAME b +0.0 %"),
        (1e308, "FASTER SAME b +0.0 %"),
        (None, "FASTER SAME b +0.0 %"),
    ],
)
def test_a_verdict_in_short_begins_with_what_it_is_whatever_the_label(
    tmp_path: Path, estimate: float | None, short: str
) -> None:
    verdict = {"kind": "faster", "estimate": estimate}
    contrast = {"baseline": 0, "other": 1, "verdict": verdict, "sentence": "told"}
    cells = [{"label": "bare"}, {"label": "x\rSAME b +0.0 %"}]
    question = {"label": "gcn", "cells": cells, "contrasts": [contrast]}
    for questions, case in (([question], ""), ([question, question], "gcn: ")):
        (tmp_path / SUMMARY_JSON).write_text(json.dumps({"questions": questions}))
        assert sayings(tmp_path)[0].short == short.replace("SAME", f"{case}SAME")


@pytest.mark.parametrize(
    ("found", "short"),
    [
        (("can't tell", -0.096, 0.49), "CAN'T TELL -10 to +49 % b"),
        (("can't tell", -0.003, 0.12), "CAN'T TELL +0 to +12 % b"),
        (("can't tell", -0.003, 0.02), "CAN'T TELL -0.3 to +2.0 % b"),
        (("described", -0.096, 0.49), "NO VERDICT b"),
    ],
)
def test_what_is_not_decided_is_in_short_no_change(
    tmp_path: Path, found: tuple[str, float, float], short: str
) -> None:
    kind, low, high = found
    change = {"estimate": 0.2, "low": low, "high": high, "level": 0.95}
    verdict = {"kind": kind, "estimate": 0.2, "change": change}
    contrast = {"baseline": 0, "other": 1, "verdict": verdict, "sentence": "told"}
    question = {"label": "gcn", "cells": [{"label": "a"}, {"label": "b"}], "contrasts": [contrast]}
    (tmp_path / SUMMARY_JSON).write_text(json.dumps({"questions": [question]}))
    assert sayings(tmp_path)[0].short == short


@pytest.mark.parametrize(
    ("typical", "short"),
    [
        ("same", "CAN'T TELL -3.0 to +2.0 % b, steady mean"),
        ("can't tell", "CAN'T TELL -0.1 to +0.3 % b"),
    ],
)
def test_the_interval_in_short_is_of_what_is_open(tmp_path: Path, typical: str, short: str) -> None:
    change, wide = (
        {"estimate": 0.0, "low": low, "high": high}
        for low, high in ((-0.001, 0.003), (-0.03, 0.02))
    )
    verdict = {
        "kind": "can't tell",
        "typical": typical,
        "change": change,
        "total": {"change": wide},
    }
    contrast = {"baseline": 0, "other": 1, "verdict": verdict, "sentence": "told"}
    question = {"cells": [{"label": "a"}, {"label": "b"}], "contrasts": [contrast]}
    (tmp_path / SUMMARY_JSON).write_text(json.dumps({"questions": [question]}))
    assert sayings(tmp_path)[0].short == short


def test_a_summary_that_is_too_large_says_nothing(tmp_path: Path) -> None:
    text = dumps(study(study_result(tmp_path)))
    with (tmp_path / SUMMARY_JSON).open("w") as file:
        file.write(text)
        file.truncate(LARGEST + 1)
    assert contrasts(tmp_path) == () == sayings(tmp_path)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{\n  "questions": ',
        '{\n  "questions": 3}',
        '{\n  "questions": [1, null, {"cells": 3, "contrasts": {}}]}',
        '{\n  "questions": [{"cells": [{}], "contrasts": [{"baseline": 0, "other": 9}]}]}',
        '{\n  "questions": [{"cells": [1], "contrasts": [{"baseline": true, "verdict": []}]}]}',
        '{\n  "questions": ' + "[" * 100_000,
        '{\n  "questions": [{"cells": [{"label": "a"}, {"label": "b"}], "contrasts": '
        '[{"baseline": 0, "other": 1, "verdict": {"kind": "splendid"}}]}]}',
    ],
)
def test_a_summary_from_elsewhere_says_nothing_and_raises_nothing(
    tmp_path: Path, text: str
) -> None:
    (tmp_path / SUMMARY_JSON).write_text(text)
    assert contrasts(tmp_path) == () == sayings(tmp_path)


def test_wrong_types_in_a_verdict_are_unknown_and_texts_are_cut(tmp_path: Path) -> None:
    wrong = {"kind": "same", "change": [], "estimate": "1e9", "pairs": float("1e300")}
    cells = [{"label": "bare"}, {"label": "x" * 10_000}]
    contrast = {"baseline": 0, "other": 1, "verdict": wrong, "sentence": "y\x1b[2J" * 1000}
    document = {"questions": [{"cells": cells, "contrasts": [contrast]}]}
    (tmp_path / SUMMARY_JSON).write_text(dumps(document))
    (found,) = contrasts(tmp_path)
    assert (found.estimate, found.low, found.high) == (None, None, None)
    assert len(found.other) == 200 and found.pairs == 1_000_000
    (said,) = sayings(tmp_path)
    assert said.kind == "same" and len(said.text) <= 400 and said.text.isprintable()


def test_a_summary_that_is_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / SUMMARY_JSON)
    assert contrasts(tmp_path) == () == sayings(tmp_path)


def test_a_summary_that_is_a_folder_is_not_left_open(tmp_path: Path) -> None:
    (tmp_path / SUMMARY_JSON).mkdir()
    assert contrasts(tmp_path) == () == sayings(tmp_path)
    held = [os.path.realpath(f"/proc/self/fd/{name}") for name in os.listdir("/proc/self/fd")]
    assert str(tmp_path / SUMMARY_JSON) not in held
