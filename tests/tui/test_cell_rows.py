"""The medians of cells side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.results import StudyResult
from gpuwatch.tui.cell_rows import sections
from tests.report import results


def _heading(result: StudyResult) -> str:
    rows = [line for each in sections(result, 100, 0) for line in each.heading]
    return "\n".join("".join(text for text, _ in row.spans()) for row in rows)


def test_ratios_within_blocks_are_told_from_those_of_the_medians(tmp_path: Path) -> None:
    result = results.study_result(tmp_path, blocks=2)
    assert "× within blocks" in _heading(result)
    (question,) = result.questions
    unpaired = tuple(
        replace(each, verdict=replace(each.verdict, paired=False)) for each in question.contrasts
    )
    alone = replace(result, questions=(replace(question, contrasts=unpaired),))
    assert "within blocks" not in _heading(alone) and "medians over" in _heading(alone)
