"""Side by side: values, ratios, differences, and what must be said about them."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.comparison_row import with_ratios
from gpuwatch.analysis.comparison.side_by_side import Comparison, compare
from gpuwatch.analysis.hardware.efficiency import Efficiency
from gpuwatch.analysis.results import ComparisonRow
from gpuwatch.analysis.summary.identity import headings
from gpuwatch.analysis.summary.missing import missing
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import CATALOGUE, Method
from gpuwatch.report import json as as_json
from gpuwatch.report.csv import of_sessions
from gpuwatch.report.document.differing import of_sessions as of_sessions_that_differ
from gpuwatch.report.document.quantities import quantity_table
from gpuwatch.report.document.sessions import document
from gpuwatch.report.markdown import written
from gpuwatch.report.text import as_text
from tests.analysis import sessions

HOSTILE = "x\x1b[31m|<b>[red]=1+1"


def session(
    path: Path,
    *,
    step_seconds: float,
    torch: str = "2.6",
    workload: str = "mnist-cnn",
    label: str = "bare",
    code: int = 0,
) -> Summary:
    """Ten timed steps after two slow ones of warm-up, a GPU at 50 %, energy 100 J a second."""
    steps = [
        sessions.step_line(
            step,
            1.5 if step <= 2 else step_seconds,
            1.5 * min(2, step) + step_seconds * max(0, step - 2),
            warmup=step <= 2,
            loss=2.0 / step,
        )
        for step in range(1, 13)
    ]
    return sessions.summary(
        path,
        step_seconds=step_seconds,
        devices=[("gpu0", "gpu", "H100", "GPU-1", {})],
        gauges={("gpu0", "hw.gpu.utilization"): 0.5, ("gpu0", "hw.gpu.power"): None},
        counters={("gpu0", "hw.gpu.energy"): 100.0},
        count={"flop_per_step": 1e9, "flop_forward_per_sample": 5e6},
        facts={"torch": torch},
        steps=steps,
        label=label,
        extra={
            "workload": {"name": workload, "kind": "workload", "parameters": {"batch": 64}},
            "startup": {"import_seconds": 1.5, "first_step_seconds": 0.4},
            "result": {"code": code, "signal": None, "t": 60 * sessions.SECOND},
        },
    )


@pytest.fixture
def pair(tmp_path: Path) -> tuple[Summary, Summary]:
    return (
        session(tmp_path / "a.gpuwatch", step_seconds=1.0),
        session(tmp_path / "b.gpuwatch", step_seconds=2.0, torch="2.7", label="bare#2"),
    )


def row(compared: Comparison, group: str, name: str) -> Any:
    (found,) = [row for row in compared.rows if (row.group, row.name) == (group, name)]
    return found


def test_a_summary_counts_timed_steps_alone(pair: tuple[Summary, Summary]) -> None:
    first, _ = pair
    assert (first.steps.count, first.steps.warmup_count) == (10, 2)
    assert first.steps.median_seconds == 1.0
    assert first.steps.samples_per_second == pytest.approx(64)
    assert (first.window.kind, first.window.seconds) == ("timed steps", pytest.approx(10))
    assert first.timing.import_seconds == 1.5
    assert first.timing.real_seconds is None


def test_counters_count_from_the_start_of_the_window(pair: tuple[Summary, Summary]) -> None:
    energy = pair[0].metrics["hw.gpu.energy"]
    assert energy.max == pytest.approx(100 * 10, rel=0.06)


def test_what_a_counter_added_is_of_the_window_and_not_of_the_samples_in_it(tmp_path: Path) -> None:
    # 7.7 s of steps: the samples inside them cover 7.5 s or less.
    found = session(tmp_path / "a.gpuwatch", step_seconds=0.77)
    assert found.window.seconds == pytest.approx(7.7)
    assert found.metrics["hw.gpu.energy"].max == pytest.approx(770)


def test_every_metric_of_the_catalogue_is_there_or_says_why(pair: tuple[Summary, Summary]) -> None:
    for name, statistic in pair[0].metrics.items():
        known = statistic.method is not Method.UNAVAILABLE
        assert known == (statistic.mean is not None), name
        assert known == (statistic.reason is None), name
    assert list(pair[0].metrics) == list(CATALOGUE)
    assert pair[0].metrics["hw.gpu.power"].reason == "not supported"


def test_ratios_are_against_the_first(pair: tuple[Summary, Summary]) -> None:
    compared = compare(pair)
    assert row(compared, "steps", "step time, median").ratios == (1.0, 2.0)
    assert row(compared, "steps", "throughput").ratios == (1.0, pytest.approx(0.5))
    swapped = compare(pair[::-1])
    assert row(swapped, "steps", "step time, median").ratios == (1.0, 0.5)
    flop = row(compared, "mean", "gpuwatch.flop.rate")
    assert flop.values == (pytest.approx(1e9), pytest.approx(5e8))
    assert set(flop.methods) == {Method.COUNTED}


def test_a_run_that_failed_is_no_baseline_and_has_no_ratio(tmp_path: Path) -> None:
    failed = session(tmp_path / "a.gpuwatch", step_seconds=1.0, code=3)
    good = session(tmp_path / "b.gpuwatch", step_seconds=2.0, label="b")
    better = session(tmp_path / "c.gpuwatch", step_seconds=1.0, label="c")
    compared = compare([failed, good, better])
    assert compared.baseline == 1
    assert row(compared, "steps", "step time, median").ratios == (None, 1.0, 0.5)
    assert as_json.comparison(compared)["baseline"] == good.id
    assert compare([failed]).baseline is None


@pytest.mark.parametrize(
    ("values", "unit", "told"),
    [
        ((0.0, 0.9), "1", "90 %\t+90.0 pp"),
        ((0.9, 0.0), "1", "0 %\t-90.0 pp"),
        ((0.0, 0.0), "1", "0 %"),
        ((0.0, 2.0), "s", "2.00 s"),
    ],
)
def test_a_share_has_points_from_nothing_and_to_it(
    pair: tuple[Summary, Summary], values: tuple[float, float], unit: str, told: str
) -> None:
    methods = (Method.MEASURED, Method.MEASURED)
    of = with_ratios(ComparisonRow("efficiency", "x", unit, values, methods), pair)
    (cells,) = quantity_table([of], ["a", "b"], 0, brief=True).rows
    assert cells[2] == told


def test_what_is_of_another_part_of_the_run_has_no_ratio(tmp_path: Path) -> None:
    timed = session(tmp_path / "a.gpuwatch", step_seconds=1.0)
    whole = session(tmp_path / "b.gpuwatch", step_seconds=0.01, label="b")
    assert (timed.window.kind, whole.window.kind) == ("timed steps", "whole run")
    compared = compare([timed, whole])
    assert row(compared, "mean", "hw.gpu.utilization").ratios == (1.0, None)
    assert row(compared, "steps", "step time, median").ratios[1] == pytest.approx(0.01)
    assert row(compared, "mean", "gpuwatch.flop.rate").ratios[1] == pytest.approx(100)


def test_a_reason_that_holds_for_some_names_them(tmp_path: Path) -> None:
    found = session(tmp_path / "a.gpuwatch", step_seconds=1.0)
    other = session(tmp_path / "b.gpuwatch", step_seconds=1.0, label="b")
    silent = replace(other, steps=replace(other.steps, reason="no timed step was reported"))
    assert "step time" in missing([found, silent])["no timed step was reported (b)"]
    assert "GPU power" in missing([found, silent])["not supported"]


def test_differences_of_the_fingerprint_are_named(pair: tuple[Summary, Summary]) -> None:
    (difference,) = compare(pair).differences
    assert (difference.scope, difference.key) == ("workload", "torch")
    assert difference.values == ("2.6", "2.7")


def test_a_failure_is_said(tmp_path: Path) -> None:
    failed = session(tmp_path / "a.gpuwatch", step_seconds=1.0, code=3)
    assert any("exit code 3" in note for note in compare([failed]).notes)


def test_runs_of_one_name_are_told_apart_by_their_ids(tmp_path: Path) -> None:
    first = session(tmp_path / "a.gpuwatch", step_seconds=1.0)
    compared = compare([replace(first, id="abcdef12"), replace(first, id="123456ab")])
    above = headings(compared.sessions)
    assert above[0].endswith("abcdef") and above[0] != above[1]


def test_runs_of_a_sweep_are_named_by_their_own_values(tmp_path: Path) -> None:
    one = session(tmp_path / "a.gpuwatch", step_seconds=1.0)

    def run(**given: object) -> Summary:
        return replace(one, workload={**one.workload, "parameters": {"steps": 30, **given}})

    precise, plain = run(dtype="bfloat16", profile=0), run()
    assert headings([precise, plain]) == ["dtype bfloat16", "dtype default"]
    docker = replace(one, environment={"label": "docker", "kind": "docker"})
    above = headings([precise, plain, docker])
    assert above == ["bare, dtype bfloat16", "bare, dtype default", "docker"]
    again = headings([replace(precise, id="abcdef12"), replace(precise, id="123456ab"), plain])
    assert again == ["dtype bfloat16 abcdef", "dtype bfloat16 123456", "dtype default"]


def test_the_json_is_strict_and_versioned(pair: tuple[Summary, Summary]) -> None:
    text = as_json.dumps(as_json.comparison(compare(pair)))
    found = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert found["schema"] == 2 and found["sessions"][0]["schema"] == 2
    assert found["sessions"][0]["flop"] == {
        "forward_per_sample": 5e6,
        "per_step": 1e9,
        "recomputed_per_step": None,
        "uncounted_operators": None,
        "method": None,
        "forward_per_step": None,
        "backward_per_step": None,
        "operators": None,
    }


def test_the_csv_has_a_row_for_each_session_and_quantity(pair: tuple[Summary, Summary]) -> None:
    compared = compare(pair)
    rows = list(csv.DictReader(io.StringIO(of_sessions(compared))))
    assert len(rows) == 2 * len(compared.rows)
    medians = [float(r["value"]) for r in rows if r["name"] == "step time, median"]
    assert medians == [1.0, 2.0]


def test_hostile_names_stay_harmless(tmp_path: Path) -> None:
    summary = session(tmp_path / "a.gpuwatch", step_seconds=1.0, label=HOSTILE, workload=HOSTILE)
    compared = compare([summary, summary])
    for text in (as_text(document(compared, ""), 80), written(document(compared, HOSTILE))):
        assert "\x1b" not in text
    assert "<b>" not in written(document(compared, HOSTILE)).replace("\\<b\\>", "")
    assert "\x1b" not in of_sessions(compared)


def test_phases_of_a_programs_own_names_follow_the_common_ones(tmp_path: Path) -> None:
    found = [
        sessions.summary(tmp_path / f"{name}.gpuwatch", phases=phases)
        for name, phases in (
            ("a", {"checkpoint": 0.1, "forward": 0.3}),
            ("b", {"forward": 0.2, HOSTILE: 0.1}),
        )
    ]
    rows = [row for row in compare(found).rows if row.group == "phases, mean"]
    assert [row.name for row in rows[:2]] == ["forward", "checkpoint"]
    assert rows[1].values == (pytest.approx(0.1), None)
    assert len(rows) == 3 and "\x1b" not in rows[2].name


def test_energies_that_differ_by_less_than_their_errors_have_no_ratio(tmp_path: Path) -> None:
    def energies(error: float) -> tuple[Any, Any, str]:
        compared = compare([one, replace(two, efficiency=_of_error(two.efficiency, error))])
        step, total = (row(compared, *name) for name in names)
        table = quantity_table([step, total], ["a", "b"], 0)
        return step.ratios, total.ratios, " ".join(cells[2] for cells in table.rows[1::2])

    names = [("efficiency", "energy per step"), ("over the window", "hw.gpu.energy")]
    one = session(tmp_path / "a.gpuwatch", step_seconds=1.0)
    two = session(tmp_path / "b.gpuwatch", step_seconds=1.1)
    step, total, told = energies(0.0)
    assert step[1] == total[1] == pytest.approx(1.1, rel=0.02) and "within" not in told
    step, total, told = energies(0.2)
    assert step == total == (1.0, None)
    assert told.count("within ±2") == 2, "each value says why it has no change"


def test_totals_of_runs_with_other_numbers_of_steps_have_no_ratio_and_that_is_said(
    tmp_path: Path,
) -> None:
    def told(steps: int) -> tuple[Comparison, str]:
        fewer = replace(one, steps=replace(one.steps, count=steps, p95_seconds=9.0))
        compared = compare([one, fewer])
        section = of_sessions_that_differ(compared, ["a", "b"])
        return compared, " ".join(map(str, section.items))

    one = session(tmp_path / "a.gpuwatch", step_seconds=1.0)
    one = replace(one, efficiency=_of_error(one.efficiency, 0.0))
    count = one.steps.count or 0
    timing = replace(one.timing, real_seconds=30.0)
    one = replace(one, timing=timing, steps=replace(one.steps, count=10 * count))
    names = [("start-up and time", "elapsed"), ("over the window", "hw.gpu.energy")]
    for steps, ratio, said in ((10 * count - 1, 1.0, False), (5 * count, None, True)):
        compared, text = told(steps)
        assert {row(compared, *name).ratios[1] for name in names} == {ratio}
        assert ("totals, such as elapsed, have no change" in text) is said


def _of_error(efficiency: Efficiency, error: float) -> Efficiency:
    energy = efficiency.energy
    gpu, per_step = (replace(each, error=error) for each in (energy.gpu, energy.gpu_per_step))
    return replace(efficiency, energy=replace(energy, gpu=gpu, gpu_per_step=per_step))
