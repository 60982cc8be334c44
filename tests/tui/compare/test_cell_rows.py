"""The medians of cells side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.read import read_study
from gpuwatch.tui.compare.cell_rows import sections
from tests.analysis.recorded_studies import BARE, DOCKER, blocks_of, recorded
from tests.analysis.sessions import CPU, GPU
from tests.analysis.summary.test_training import lines
from tests.report import results


def _heading(result: StudyResult) -> str:
    rows = [line for each in sections(result, 100, 0) for line in each.heading]
    return "\n".join("".join(text for text, _ in row.spans()) for row in rows)


def _body(result: StudyResult) -> str:
    rows = [line for each in sections(result, 100, 0) for line in each.body]
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
    for told in (
        "other programs used 80 % of the CPU's time in 10 of 10 runs",
        "was on the run's GPUs: other.py (PID 7",
        "gpu0: fallen off the bus",
        "acc@1, last step 62.5 % 62.5 %",
        "loss, last step 0.1 0.1",
    ):
        assert told in body


def test_ratios_within_blocks_are_told_from_those_of_the_medians(tmp_path: Path) -> None:
    result = results.study_result(tmp_path, blocks=2)
    assert "× within blocks" in _heading(result)
    (question,) = result.questions
    unpaired = tuple(
        replace(each, verdict=replace(each.verdict, paired=False)) for each in question.contrasts
    )
    alone = replace(result, questions=(replace(question, contrasts=unpaired),))
    assert "within blocks" not in _heading(alone) and "medians over" in _heading(alone)
