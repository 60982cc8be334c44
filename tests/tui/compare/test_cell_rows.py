"""Cells side by side with their medians."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.read import read_study
from gpuwatch.core.models import Environment
from gpuwatch.tui.compare import cell_rows
from gpuwatch.tui.compare.sections import answer, sections
from tests.analysis.recorded_studies import BARE, DOCKER, blocks_of, recorded
from tests.analysis.sessions import CPU, GPU
from tests.analysis.summary.test_training import lines
from tests.report import results

LONG = Environment("docker", "docker=registry/image:3")


def _heading(result: StudyResult) -> str:
    rows = [line for each in cell_rows.sections(result, 100, 0) for line in each.heading]
    return "\n".join("".join(text for text, _ in row.spans()) for row in rows)


def _body(result: StudyResult) -> str:
    rows = [line for each in cell_rows.sections(result, 100, 0) for line in each.body]
    return " ".join(" ".join("".join(text for text, _ in row.spans()) for row in rows).split())


def test_what_disturbed_the_runs_and_what_they_trained_is_told(tmp_path: Path) -> None:
    options = {
        "gauges": {("cpu", "hw.cpu.utilization"): 1.0},
        "counters": {("workload", "process.cpu.time"): 1.6},
        "devices": (GPU, CPU, ("workload", "workload", "workload", None, {})),
        "host": {"cpu.core.logical.count": 8},
        "processes": [("gpu0", 7, "other.py", False, 1 << 30)],
        "events": [("gpu-lost", "fallen off the bus")],
        "steps": lines(),
    }
    effects = {BARE.label: 1.0, DOCKER.label: 1.0}
    blocks = [blocks_of(5, BARE, DOCKER)]
    recorded(tmp_path, blocks, effects, options=dict.fromkeys(range(1, 13), options))
    body = _body(read_study(tmp_path))
    for sentence in (
        "other programs used 80 % of the CPU's time in 10 of 10 runs",
        "was on the run's GPUs: other.py (PID 7",
        "gpu0: fallen off the bus",
        "acc@1, last step 62.5 % 62.5 %",
        "loss, last step 0.1 0.1",
    ):
        assert sentence in body


def row_of(result: StudyResult, name: str) -> list[tuple[str, str]]:
    """Text and role of the spans in a quantity's row, without blanks."""
    rows = [list(line.spans()) for each in cell_rows.sections(result, 120, 0) for line in each.body]
    spans = next(spans for spans in rows if spans[0][0].strip() == name)
    return [(text.strip(), role) for text, role in spans if text.strip()]


def test_paired_changes_have_a_column_and_a_colour_if_they_exclude_no_change(
    tmp_path: Path,
) -> None:
    effects = {BARE.label: 1.0, DOCKER.label: 1.1}
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], effects)
    result = read_study(tmp_path)
    assert "paired change, %" in _heading(result)
    spans = row_of(result, "step time, steady")
    (change,) = [each for each in spans if each[0].startswith("+10.")]
    assert "(" in change[0] and change[1] == "key"
    (same,) = [each for each in row_of(result, "timed steps") if each[0].startswith("×")]
    assert same == ("×1.000", "text")


def test_runs_outside_blocks_have_no_column_of_changes(tmp_path: Path) -> None:
    result = results.study_result(tmp_path, blocks=2)
    assert "paired change" not in _heading(result) and "medians over" in _heading(result)


@pytest.mark.parametrize("width", [80, 100, 120, 200])
def test_no_row_is_wider_than_the_screen(tmp_path: Path, width: int) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, DOCKER)], {BARE.label: 1.0, DOCKER.label: 2.5})
    shown = cell_rows.sections(read_study(tmp_path), width, 0)
    rows = [line for section in shown for line in (*section.heading, *section.body)]
    assert max(sum(len(text) for text, _ in row.spans()) for row in rows) <= width


def test_long_labels_are_letters_with_a_legend_above(tmp_path: Path) -> None:
    recorded(tmp_path, [blocks_of(5, BARE, LONG)], {BARE.label: 1.0, LONG.label: 1.1})
    compared = answer(read_study(tmp_path), tmp_path)
    first = sections(compared, 100, 0)[0].body
    texts = ["".join(text for text, _ in row.spans()).rstrip() for row in first]
    assert texts[:2] == [" A bare (baseline)", " B docker=registry/image:3"]
    assert any(text.startswith("   B  ") and "●" in text for text in texts)
    assert "docker=registry/image:3 is slower than bare" in " ".join(texts)
