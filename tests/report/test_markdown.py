"""The report for a pull request: verdict first, folded details, small, and harmless."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.results import StudyResult
from gpuwatch.report.markdown import LONGEST, as_markdown

from . import results


def test_the_verdict_and_a_small_table_stand_before_the_details(result: StudyResult) -> None:
    before, _, details = as_markdown(result).partition("<details>")
    assert before.startswith("# docker and apptainer against bare, resnet50\n")
    assert "**SAME** docker and bare: no difference of 1 % or more" in before
    assert "## What differs" in before and "| step time, typical |" in before
    assert details.count("<details>") + 1 == details.count("</details>")
    assert "<summary>every run</summary>" in details


def test_the_origin_stands_below_the_verdict_and_above_the_table(result: StudyResult) -> None:
    after = as_markdown(result).partition("**SAME**")[2].partition("\n##")[0]
    when, what = after.strip().split("\n")[-2:]
    assert when.startswith("2026-09-21 14:14 UTC, ") and "NVIDIA H100" in when
    assert what == "resnet50 --batch-size 64; 7 of 7 blocks done, margin 1 %"


def test_three_environments_and_seven_blocks_fit_a_pull_request(two_cases: StudyResult) -> None:
    assert len(as_markdown(two_cases).encode()) < LONGEST


def test_what_has_no_room_is_named_and_the_rest_is_whole(result: StudyResult) -> None:
    notes = tuple(f"note {n}: {'x' * 900}" for n in range(200))
    question = result.questions[0]
    many = tuple(replace(question, label=f"case {n}") for n in range(20))
    text = as_markdown(replace(result, questions=many, notes=notes))
    assert len(text.encode()) <= LONGEST
    assert text.count("<details>") == text.count("</details>")
    last = text.strip().split("\n")[-1]
    assert last.startswith("Left out for its length: ") and "summary.json" in last


def test_text_from_outside_is_no_markup(hostile: StudyResult) -> None:
    text = as_markdown(hostile)
    assert "\x1b" not in text and "\u202e" not in text
    fences = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    assert len(fences) == 1 and "`" not in fences[0]
    outside = re.sub(r"```text\n.*?```", "", text, flags=re.DOTALL)
    for tag in re.findall(r"(?<!\\)<[^>]*>", outside):
        assert tag in ("<details>", "</details>", "<summary>", "</summary>", "<br>"), tag
    assert "(javascript:b)" not in outside.replace("\\[a\\](javascript:b)", "")
    rows = [line for line in outside.split("\n") if line.startswith("| resnet50")]
    assert all(len(re.findall(r"(?<!\\)\|", row)) == 8 for row in rows)


def test_the_figures_of_a_single_run_have_a_head_and_a_hostile_one_is_no_markup(
    tmp_path: Path,
) -> None:
    one = results.one_run_each(tmp_path, ("bare",))
    assert "| figure | value | how it was obtained |" in as_markdown(one)
    text = as_markdown(replace(one, title=results.HOSTILE))
    assert "<script" not in text.replace("\\<script", "")


def test_the_roofline_is_named_and_not_embedded(result: StudyResult, pair: StudyResult) -> None:
    for each in (result, pair):
        told = as_markdown(each, roofline="roofline.svg")
        assert "Roofline of the runs: roofline.svg, beside this file." in told and "![" not in told
    assert "Roofline" not in as_markdown(result)
