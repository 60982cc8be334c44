"""What bounds a run, and when that cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuwatch.analysis.hardware.ceilings import Ceiling, Missing
from gpuwatch.analysis.hardware.crosscheck import Clocks
from gpuwatch.analysis.hardware.points import Rates, points_of
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.hardware.roofline import Roofline, roofline_of
from gpuwatch.analysis.samples.rates import pause_share
from gpuwatch.analysis.samples.step_lines import NO_STEPS_YET
from gpuwatch.session.rows import StepRow

CEILINGS = {
    "bandwidth": Ceiling("bandwidth", 1e12, "By/s", "measured", "measured copy", "s"),
    "bfloat16": Ceiling("bfloat16", 1e14, "FLOP/s", "peak", "bfloat16 peak", "s"),
}
"""The ridge is at 100 FLOP per byte."""


SHEETS = {
    "bandwidth": replace(CEILINGS["bandwidth"], kind="sheet", text="data-sheet peak"),
    "bfloat16": replace(CEILINGS["bfloat16"], kind="sheet", text="bfloat16 data-sheet peak"),
}


def of(ceilings: Mapping[str, Ceiling] = CEILINGS, **rates: Any) -> Roofline:
    rates = {"limit": CEILINGS["bfloat16"], **rates}
    return roofline_of(Program("run"), Rates(**rates), ceilings, "bfloat16")


def test_a_point_is_flop_over_bytes() -> None:
    (point,) = points_of("run", Rates(flop=4e12, bytes=8e10))
    assert (point.intensity, point.rate, point.bytes_rate) == (50, 4e12, 8e10)
    assert (point.bytes_kind, point.method.value) == ("algorithmic", "counted")


def test_the_most_trustworthy_bytes_come_first() -> None:
    rates = Rates(
        flop=4e12, bytes=8e10, measured_bytes=4e10, executed_flop=2e12, executed_bytes=1e10
    )
    points = points_of("run", rates)
    assert [point.bytes_kind for point in points] == ["executed", "measured", "algorithmic"]
    assert [point.intensity for point in points] == [200, 100, 50]
    assert [point.method.value for point in points] == ["measured", "counted", "counted"]


def test_half_of_the_copy_rate_is_memory_bound() -> None:
    found = of(flop=1e12, measured_bytes=6e11)
    assert found.verdict.bound == "memory"
    told = "bandwidth at 60 % of the measured copy, compute at 1.0 % of the bfloat16 peak"
    assert found.verdict.text == f"memory-bound: {told}"


def test_half_of_the_compute_ceiling_is_compute_bound() -> None:
    assert of(flop=6e13, measured_bytes=2e11).verdict.bound == "compute"


def test_of_two_high_shares_the_higher_one_names_the_bound() -> None:
    assert of(flop=6e13, measured_bytes=7e11).verdict.bound == "memory"
    assert of(flop=8e13, measured_bytes=7e11).verdict.bound == "compute"


def test_far_below_both_is_host_bound_where_idle_time_shows_it() -> None:
    found = of(flop=1e12, measured_bytes=1e10, busy=0.6).verdict
    assert found.bound == "host"
    assert found.text == (
        "launch- or host-bound: 40 % of the time no kernel ran; neither compute (1.0 % of the "
        "bfloat16 peak) nor bandwidth (1.0 % of the measured copy) is full"
    )
    found = of(flop=1e12, measured_bytes=1e10, busy=0.95, data_share=0.5).verdict
    assert found.bound == "host"
    assert found.text.startswith("input-bound: waiting for data took 50 % of the step; neither")


def test_one_pause_of_most_of_the_time_is_told_in_place_of_a_bound_of_the_steps() -> None:
    rest = 1, False, None, None, None, None, None, {}, (), None, None
    rows = [StepRow(t, t, t, *rest) for t in (10, 11, 12, 13, 93, 94, 95)]
    pause = pause_share(rows)
    assert pause == pytest.approx(8 / 8.5) and pause_share(rows[:2]) is None
    found = of(flop=1e12, measured_bytes=1e10, busy=0.1, pause=pause).verdict
    assert found.text.startswith("one pause between steps took 94 % of the time: 90 % of the time")


BY_POWER = "by power {} % of the time"


def test_far_below_both_without_idle_time_is_not_called_host_bound() -> None:
    rates = {"flop": 1.2e13, "measured_bytes": 3.8e11, "busy": 0.905}
    inefficient = of(SHEETS, **rates).verdict
    assert inefficient.bound == "neither" and inefficient.text == (
        "neither compute (12 %) nor bandwidth (38 %) is full: its kernels use neither well; "
        "9.5 % of the time no kernel ran"
    )
    capped = of(
        SHEETS, **rates, clocks=Clocks(1.0, BY_POWER.format(100), 1.87e9, 1.98e9, None)
    ).verdict
    assert capped.text == inefficient.text.replace(
        " is full", " is full, clocks held down by power 100 %"
    )
    often = of(
        SHEETS, **rates, clocks=Clocks(0.87, BY_POWER.format(87), 1.87e9, 1.98e9, None)
    ).verdict
    assert "is full, clocks held down by power 87 %: its kernels" in often.text
    seldom = of(
        SHEETS, **rates, clocks=Clocks(0.2, BY_POWER.format(20), 1.87e9, 1.98e9, None)
    ).verdict
    assert seldom.text == f"{inefficient.text}; the clocks were held down by power 20 % of the time"
    clocks = Clocks(
        1.0,
        "by power 100 % of the time",
        1.87e9,
        1.98e9,
        None,
        by_power=1.0,
        power=697.2,
        power_limit=700.0,
    )
    limited = of(SHEETS, **rates, clocks=clocks).verdict
    assert limited.bound == "power" and limited.text == (
        "power-limited: 697 of 700 W, clocks held down all the time; neither compute (12 %) nor "
        "bandwidth (38 %) is full"
    )
    uncounted = of(SHEETS, busy=0.99, clocks=clocks).verdict
    assert uncounted.bound == "power" and uncounted.text == (
        "power-limited: 697 of 700 W, clocks held down all the time; no FLOP/s are known: the "
        "workload reported no FLOP per step"
    )
    assert of(SHEETS, clocks=replace(clocks, by_power=0.4)).verdict.bound == "unknown"
    bandwidth = SHEETS["bandwidth"].value
    for share, bound in ((0.3, "power"), (0.7, "memory"), (1.2, "unknown")):
        full = of(SHEETS, busy=0.99, measured_bytes=share * bandwidth, clocks=clocks).verdict
        assert full.bound == bound
    unlimited = of({"bandwidth": SHEETS["bandwidth"]}, **rates, clocks=clocks).verdict
    assert unlimited.bound == "power" and "held down" not in unlimited.text.partition(";")[2]
    small = of(flop=1e12, measured_bytes=1e10, busy=0.99, sm_activity=0.1).verdict
    assert small.bound == "neither" and "its kernels do not fill the GPU" in small.text
    assert "the idle time is unknown" in of(flop=1e12, measured_bytes=1e10).verdict.text


def test_sm_activity_shows_idle_time_where_utilization_is_not_known() -> None:
    found = of(flop=1e12, measured_bytes=1e10, sm_activity=0.3).verdict
    assert (
        found.bound == "host" and "70 % of the time the multiprocessors were without" in found.text
    )


def test_algorithmic_bytes_over_the_ceiling_are_cache_reuse_and_show_no_bound() -> None:
    found = of(flop=1e12, bytes=2e12).verdict
    assert found.bound == "unknown"
    assert "at least 50 % of these bytes came from caches" in found.text
    assert of(flop=6e13, bytes=2e12).verdict.bound == "compute"
    assert "if caches save little" in of(flop=1e12, bytes=8e11).verdict.text


def test_without_ceilings_nothing_is_said_and_the_mend_is_named() -> None:
    found = roofline_of(Program("run"), Rates(flop=1e12, bytes=1e10), {}, "bfloat16").verdict
    assert found.bound == "unknown" and "gpuwatch calibrate" in (found.hint or "")
    assert "compute (bfloat16) and the bandwidth ceilings are not known" in found.text
    other = roofline_of(Program("run"), Rates(flop=1e12, bytes=1e10), CEILINGS, None).verdict
    assert "no data type is known of its products" in other.text
    assert "`dtype`" in (other.hint or "") and "calibrate" not in (other.hint or "")
    neither = roofline_of(Program("run"), Rates(flop=1e12, bytes=1e10), {}, None)
    assert "; ".join(neither.hints).count("gpuwatch calibrate") == 1


def test_half_of_the_time_idle_names_the_bound_whatever_the_ceilings_are() -> None:
    rates = Rates(flop=1e12, bytes=1e10, busy=0.4, data_share=0.6)
    found = roofline_of(Program("run"), rates, {}, "bfloat16").verdict
    assert found.bound == "host" and "gpuwatch calibrate" in (found.hint or "")
    assert found.text.startswith(
        "input-bound: waiting for data took 60 % of the step; 60 % of the time no kernel ran; the"
    )
    on_cpu = Rates(data_share=0.89, on_gpu=False, cores_busy=0.1)
    found = roofline_of(Program("run"), on_cpu, {}, None).verdict
    assert found.text.startswith("input-bound: waiting for data took 89 % of the step; ")
    idle = Rates(flop=1e12, bytes=1e10, busy=0.4, data_share=0.3)
    found = roofline_of(Program("run"), idle, {}, "bfloat16").verdict
    assert found.text.startswith("launch- or host-bound: 60 % of the time no kernel ran; the ")
    slept = Rates(flop=1e9, bytes=1e9, on_gpu=False, waits=0.949)
    found = roofline_of(Program("run"), slept, {}, "float32").verdict
    assert found.text.startswith("host-bound: the program waited at least 94 % of the time; the ")
    whole = Rates(busy=0.1)  # of a run without steps, start-up included
    assert roofline_of(Program("run"), whole, CEILINGS, None).verdict.bound == "unknown"
    full = Rates(measured_bytes=9.5e11, data_share=0.5)
    assert roofline_of(Program("run"), full, CEILINGS, None).verdict.bound == "memory"
    less = Rates(flop=1e12, bytes=1e10, busy=0.6, data_share=0.4)
    assert roofline_of(Program("run"), less, {}, "bfloat16").verdict.bound == "unknown"


def test_pipes_that_work_all_the_time_bound_a_run_of_an_unknown_data_type() -> None:
    def text(share: float) -> str:
        rates = Rates(flop=1e12, bytes=1e10, busy=1.0, pipe=(share, "tensor"))
        return roofline_of(Program("run"), rates, CEILINGS, None).verdict.text

    assert text(0.92) == "compute-bound: the tensor pipes worked 92 % of the time"
    assert text(0.79).startswith("cannot tell")


def test_ceilings_that_could_not_be_chosen_are_told_with_what_helps() -> None:
    program = Program("run", no_ceilings=Missing("2 calibrations are stored", "`versions` helps"))
    found = roofline_of(program, Rates(flop=1e12, bytes=1e10), {}, "bfloat16")
    assert found.verdict.text.endswith("ceilings are not known: 2 calibrations are stored")
    assert found.verdict.hint == found.missing == "`versions` helps"


def test_one_known_ceiling_is_enough_where_the_run_is_near_it() -> None:
    alone = {"bandwidth": CEILINGS["bandwidth"]}
    rates = Rates(flop=1e12, measured_bytes=9e11)
    assert roofline_of(Program("run"), rates, alone, "bfloat16").verdict.bound == "memory"


def test_on_a_cpu_idle_cores_show_it() -> None:
    found = of(flop=1e12, bytes=1e10, on_gpu=False, cores_busy=0.5).verdict
    assert found.bound == "host" and "50 % of the cores' time was idle" in found.text
    found = of(flop=1e12, bytes=1e10, on_gpu=False, busy=0.5, cores_busy=0.6).verdict
    assert "the workload's threads ran 50 % of the time" in found.text


def test_what_the_program_used_of_the_cores_tells_where_its_threads_are_not_known() -> None:
    found = of(flop=1e12, bytes=1e10, on_gpu=False, own_cores=0.003, cores_busy=1.0).verdict
    assert found.bound == "host" and "idle" not in found.text
    assert (
        "the program's processes used 0.3 % of the cores' time, all programs together 100 %"
        in found.text
    )
    most = of(flop=1e12, bytes=1e10, on_gpu=False, own_cores=0.01, own_at_most=True).verdict
    assert "used at most 1.0 % of the cores' time" in most.text


def test_busy_cores_do_not_say_that_the_program_itself_was_busy() -> None:
    found = of(flop=1e12, bytes=1e10, on_gpu=False, cores_busy=1.0).verdict
    assert found.bound == "neither" and "the share of the program itself is unknown" in found.text


def test_kernels_tell_more_where_no_ceiling_is_near() -> None:
    found = of(flop=1e12, bytes=1e10, busy=1.0, kernels="K shows them").verdict
    assert (found.bound, found.hint) == ("neither", "K shows them")


def measured(**doubts: str) -> dict[str, Ceiling]:
    return {
        name: replace(each, kind="measured", doubt=doubts.get(name))
        for name, each in CEILINGS.items()
    }


def test_a_run_over_a_measured_ceiling_shows_the_ceiling_wrong_and_no_bound() -> None:
    rates = Rates(flop=1.86e14, bytes=1e11)
    found = roofline_of(Program("run"), rates, measured(), "bfloat16").verdict
    assert found.bound == "unknown" and "measured too low" in found.text
    assert "gpuwatch calibrate" in (found.hint or "")
    near = roofline_of(Program("run"), Rates(flop=1.04e14, bytes=1e11), measured(), "bfloat16")
    assert near.verdict.text.startswith("compute-bound: 104 %")


def test_a_doubtful_ceiling_makes_the_verdict_conditional() -> None:
    doubted = measured(bfloat16="other programs took 64 %")
    found = roofline_of(Program("run"), Rates(flop=6e13, bytes=1e11), doubted, "bfloat16").verdict
    assert found.bound == "compute"
    assert found.text.startswith("compute-bound, if the bfloat16 peak was not measured too low")
    assert "gpuwatch calibrate" in (found.hint or "")
    low = roofline_of(Program("run"), Rates(flop=1e13, bytes=1e11), doubted, "bfloat16").verdict
    assert "10 % of the doubtful bfloat16 peak" in low.text


@pytest.mark.parametrize(
    ("program", "told", "hint"),
    [
        (Program("a", "import"), "an imported profile has no roofline", "gpuwatch kernels"),
        (Program("a", "machine"), "the machine alone has no roofline", "gpuwatch run WORKLOAD"),
        (Program("a", "command", steps=False, timed=False), "reported no steps", "`step`"),
        (
            Program("a", "command", steps=False, timed=False, no_steps=NO_STEPS_YET),
            "no steps yet",
            None,
        ),
        (
            Program("a", "command", steps=False, timed=False, no_steps="it was off; next: on"),
            "it was off",
            "on",
        ),
        (Program("a", "command", timed=False), "no step after its warm-up", "`step`"),
        (Program("a", "command"), "the workload reported no FLOP per step", "`count`"),
        (Program("a", count={"method": "no formula"}), "no FLOP/s are known: no formula", None),
        (Program("a", count={"flop_per_step": 1.0}), "times are not known or give no", None),
    ],
)
def test_a_run_without_a_point_says_why_and_what_mends_it(
    program: Program, told: str, hint: str | None
) -> None:
    found = roofline_of(program, Rates(), {}, None)
    assert told in (found.reason or "") and told in found.verdict.text
    assert found.verdict.hint is None if hint is None else hint in (found.verdict.hint or "")
    assert "next" not in found.verdict.text


def test_a_copy_has_no_point_for_its_steps_have_no_flop() -> None:
    found = roofline_of(Program("copy"), Rates(flop=0.0, bytes=4e12), measured(), None)
    assert "its steps have no FLOP" in (found.reason or "") and found.verdict.bound == "unknown"
    found = roofline_of(Program("copy"), Rates(flop=0.0, measured_bytes=9e11), SHEETS, None)
    told = "bandwidth at 90 % of the data-sheet peak; its steps have no FLOP, like those of a copy"
    assert (found.verdict.bound, found.verdict.text) == ("memory", f"memory-bound: {told}")
    for slow in (4e11, 2e12, None):
        found = roofline_of(Program("copy"), Rates(measured_bytes=slow), SHEETS, None)
        assert found.verdict.bound == "unknown"


def test_cores_that_other_programs_hold_are_not_called_idle() -> None:
    found = of(flop=1e12, bytes=1e10, on_gpu=False, busy=0.4, cores_busy=0.98).verdict
    assert found.bound == "host" and "idle" not in found.text
    assert "busy 98 % of the time, the workload's threads ran 40 % of the time" in found.text


def test_without_work_there_is_no_point_and_a_reason() -> None:
    found = of(bytes=1e10)
    assert found.points == () and "no FLOP/s are known" in (found.reason or "")
    assert found.verdict.bound == "unknown"
    assert "no bytes are known" in (of(flop=1e10).reason or "")


@given(
    st.floats(1e3, 1e18), st.floats(1e3, 1e18), st.floats(0, 1) | st.none(),
    st.floats(0, 1) | st.none(), st.booleans(),
)  # fmt: skip
def test_a_bound_is_named_only_with_the_share_that_shows_it(
    flop: float, size: float, busy: float | None, data: float | None, on_gpu: bool
) -> None:
    rates = {"flop": flop, "busy": busy, "data_share": data, "on_gpu": on_gpu}
    verdict = of(measured_bytes=size, **rates).verdict
    if size / 1e12 > 1.05 or flop / 1e14 > 1.05:
        assert verdict.bound == "unknown"
    elif verdict.bound == "unknown":
        assert flop / 1e14 > 1
    elif verdict.bound == "memory":
        assert size / 1e12 >= 0.5
    elif verdict.bound == "compute":
        assert flop / 1e14 >= 0.5
    else:
        assert max(size / 1e12, flop / 1e14) < 0.5
        shown = (busy is not None and 1 - busy >= 0.25) or (data is not None and data >= 0.25)
        assert (verdict.bound == "host") == shown
