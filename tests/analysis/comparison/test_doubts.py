"""What a summary says where its figures are easily taken for something else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.core.metrics import Method
from gpuwatch.report import json as as_json
from gpuwatch.report.document.efficiency import efficiency_rows
from gpuwatch.report.document.sessions import document
from gpuwatch.report.text import as_text
from tests.analysis.sessions import BATCH, COUNT, CPU, STEPS, Make, calibration, step_line

CORES = ("cpu", "cpu", "AMD EPYC", None, {"core.logical.count": 2})
WORKLOAD: tuple[str, str, str, None, dict[str, Any]] = (
    "workload", "workload", "sleep.py", None, {},
)  # fmt: skip
CPU_TIME = ("workload", "process.cpu.time")
OWN_PROGRAM = {"workload": {"name": "sleep.py", "kind": "command"}}


def on_cpu(used: float, **extra: Any) -> dict[str, Any]:
    """A program of one's own on a busy CPU: ``used`` CPU seconds a second, 4 TFLOP/s counted."""
    return {
        "devices": (CORES, WORKLOAD),
        "run": {"device": "cpu", "dtype": "float32"},
        "gauges": {("cpu", "hw.cpu.utilization"): 1.0},
        "counters": {CPU_TIME: used},
        "extra": {
            "ceilings": calibration("cpu", None, bandwidth=1e13, float32=1e15),
            **OWN_PROGRAM,
            **extra,
        },
    }


def test_a_program_that_sleeps_among_busy_ones_is_not_called_busy(make: Make) -> None:
    found = make(**on_cpu(0.006)).efficiency.roofline.verdict
    assert found.bound == "host" and found.hint is None
    assert "the program's processes used 0.3 % of the cores' time" in found.text
    busy = make(**on_cpu(1.9)).efficiency.roofline.verdict
    assert busy.bound == "neither" and "used 95 % of the cores' time" in busy.text
    assert busy.hint is not None and "--profile 4" in busy.hint


def test_less_cpu_time_than_a_tick_is_a_bound_and_never_zero(make: Make) -> None:
    found = make(**on_cpu(0.0))
    time = found.metrics["process.cpu.time"]
    assert time.method is Method.BOUND and time.max == pytest.approx(0.03)
    assert "at most" in found.efficiency.roofline.verdict.text
    text = as_text(document(compare([found]), ""), 80)
    assert "≤30.0 ms" in text
    other = make(**on_cpu(1.0))
    (row,) = [each for each in compare([other, found]).rows if each.name == "process.cpu.time"]
    assert row.ratios == (1, None)


def test_shares_of_different_ceilings_have_no_ratio(make: Make) -> None:
    one = {"ceilings": calibration(bandwidth=3e12, bfloat16=6e14)}
    other = {"ceilings": calibration(bandwidth=3e12, bfloat16=8e14)}
    compared = compare([make(extra=one), make(extra=other, step_seconds=0.25)])
    rows = {row.name: row for row in compared.rows}
    assert rows["FLOP/s, % of measured product"].ratios == (1, None)
    assert rows["algorithmic bytes/s, % of measured copy"].ratios[1] == pytest.approx(2)


def test_a_doubtful_calibration_is_told_beside_the_share_in_text_and_json(make: Make) -> None:
    doubted = calibration(bandwidth=3e12, bfloat16=5e12)
    doubted["warnings"] = ["other programs took 64 % of the processors' time"]
    found = make(extra={"ceilings": doubted})
    rows = dict(efficiency_rows(found))
    assert "(doubtful: " in rows["FLOP/s"] and "64 %" in rows["FLOP/s"]
    assert rows["verdict"].startswith("compute-bound, if the measured bfloat16 product was not")
    told = json.loads(as_json.dumps(as_json.summary(found)))
    assert "64 %" in told["efficiency"]["flop_rate"]["shares"][0]["ceiling"]["doubt"]
    assert "64 %" in told["roofline"]["ceilings"]["bfloat16"]["doubt"]


def test_steps_that_cover_a_part_of_the_window_are_told_with_both_times(make: Make) -> None:
    steps = [step_line(step, 0.1) for step in range(1, STEPS + 1)]
    found = make(steps=steps)
    (note,) = [each for each in found.notes if "own times" in each]
    assert "own times are 2.00 s of the 9.60 s" in note and "evaluations" not in note
    extra = {"hook": {"processes": 1}, "profile": {"tool": "torch.profiler", "steps": 3}}
    profiled = make(steps=steps, extra=extra)
    (note,) = [each for each in profiled.notes if "own times" in each]
    assert "own times, without the 3 profiled steps, are 2.00 s" in note
    assert "the step time is over the former, throughput, FLOP/s" in note
    assert found.steps.samples_per_second == pytest.approx(STEPS * BATCH / 9.6)
    arrived = {"step_ends": "arrived"}
    other = make(steps=steps, extra=arrived)
    (note,) = [each for each in other.notes if "own times" in each]
    assert "FLOP/s, bytes/s are over the former, sampled figures over the latter" in note
    assert other.steps.samples_per_second == pytest.approx(STEPS * BATCH / 2.0)
    assert not [each for each in make().notes if "own times" in each]
    # 2 TFLOP a step over the window, as executed FLOP are: neither over the steps' own time.
    assert found.efficiency.flop_rate.value == pytest.approx(STEPS * 2e12 / 9.6)
    counters = {"tool": "ncu", "steps": 2, "flop_per_step": 2e12}
    counters |= {"dram_read_bytes_per_step": 1e10, "dram_write_bytes_per_step": 0}
    executed = make(steps=steps, extra={"counters": counters})
    point = executed.efficiency.roofline.points[0]
    assert point.bytes_kind == "executed" and point.rate == pytest.approx(STEPS * 2e12 / 9.6)


@pytest.mark.parametrize(
    ("device", "reason", "hint"),
    [
        ("cpu", "the run was on the CPU", "--device cuda"),
        ("cuda", "ncu ended with code 1", "gpuwatch doctor"),
        ("cuda", "ncu is not installed in this environment: install Nsight Compute", "install"),
    ],
)
def test_counters_that_were_asked_for_and_failed_are_a_note_with_reason_and_mend(
    make: Make, device: str, reason: str, hint: str
) -> None:
    extra = {"counters": {"tool": "ncu", "reason": reason}}
    found = make(run={"device": device}, extra=extra)
    (note,) = [each for each in found.notes if "--counters" in each]
    assert reason in note and hint in note


def test_counters_that_never_came_are_told(make: Make) -> None:
    asked = {"workload": {"name": "x", "kind": "workload", "parameters": {"counters": True}}}
    found = make(extra=asked)
    assert any("the run ended before they were read" in each for each in found.notes)


def test_without_a_data_type_the_mend_is_a_run_line_and_not_calibration(make: Make) -> None:
    known = {"ceilings": calibration("cpu", None, bandwidth=1e13, float32=1e15)}
    run = make(devices=(CPU,), run={"device": "cpu", "dtype": None}, extra=known)
    found = run.efficiency
    assert "`dtype`" in (found.roofline.verdict.hint or "")
    assert "calibrate" not in dict(efficiency_rows(make(devices=(CPU,),
        run={"device": "cpu", "dtype": None}, extra=known)))["verdict"]  # fmt: skip
    assert "a CPU's peak is not known" in (found.mfu.reason or "")


def test_how_flop_were_counted_is_no_reason_for_bytes_that_were_not(make: Make) -> None:
    count = {**COUNT, "bytes_per_step": None, "method": "by hand"}
    found = make(count=count).efficiency
    assert found.bytes_rate.reason == "the workload reported no bytes per step"
    nothing = {"flop_per_step": None, "bytes_per_step": None, "method": "no formula for it"}
    assert make(count=nothing).efficiency.flop_rate.reason == ("no formula for it")


def test_from_which_lines_losses_are_casts_no_doubt_on_steps_that_the_hook_timed(
    make: Make,
) -> None:
    told = "the loss is from lines with `loss` and a number"
    lines = [("progress-lines", told)]
    plain = make(events=lines)
    timed = make(events=lines, extra={"timing": {"cost": 0.001}})
    assert plain.notes.count(told) == timed.notes.count(told) == 1
    assert told in timed.how_timed and told not in plain.how_timed
