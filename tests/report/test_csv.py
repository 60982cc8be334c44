"""Tidy CSV: one row for each run and metric, which any spreadsheet can take."""

from __future__ import annotations

import csv
import io
import statistics

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.results import StudyResult
from gpuwatch.report.csv import COLUMNS, as_csv


def rows(result: StudyResult) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(as_csv(result))))


def test_there_is_a_row_for_each_run_and_metric(result: StudyResult) -> None:
    found = rows(result)
    metrics = len(compare(result.sessions).rows) + 2
    assert len(found) == 24 * metrics
    assert list(found[0]) == list(COLUMNS)
    assert len({(row["session"], row["group"], row["metric"]) for row in found}) == len(found)


def test_a_notebook_can_work_out_the_means_from_it(result: StudyResult) -> None:
    values = [
        float(row["value"])
        for row in rows(result)
        if (row["group"], row["metric"]) == ("primary", "step time")
        and (row["environment"], row["warm_up"]) == ("docker", "no")
    ]
    assert len(values) == 7
    assert statistics.geometric_mean(values) == pytest.approx(result.questions[0].cells[1].mean)


def test_a_run_is_told_by_its_place_and_its_parameters(result: StudyResult) -> None:
    first = rows(result)[0]
    assert (first["study"], first["part"]) == ("resnet50-20261121-120000", "resnet50")
    assert (first["workload"], first["parameters"]) == ("resnet50", "batch_size=64")
    assert (first["block"], first["order"], first["warm_up"]) == ("0", "1", "yes")
    assert (first["status"], first["outlier"]) == ("finished", "no")


def test_the_unknown_is_empty_and_never_zero(result: StudyResult) -> None:
    question = result.questions[0]
    unknown = [row for row in rows(result) if row["method"] == "unavailable"]
    assert all(row["value"] == "" for row in unknown)
    assert question.metric == "step time"


def test_no_cell_is_a_formula_or_an_escape(hostile: StudyResult) -> None:
    assert "\x1b" not in as_csv(hostile)
    for row in rows(hostile):
        for name, cell in row.items():
            assert name == "value" or not cell.startswith(("=", "+", "-", "@")), (name, cell)


def test_runs_put_together_by_hand_have_no_block_and_no_order(pair: StudyResult) -> None:
    assert {(row["block"], row["order"], row["part"]) for row in rows(pair)} == {("", "", "")}
