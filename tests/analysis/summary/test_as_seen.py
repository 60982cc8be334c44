"""What the hook told of the steps, and what it could not see, in the summary of a session."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.samples import source
from gpuwatch.analysis.samples.step_lines import SOME
from gpuwatch.analysis.study.notes import doubts
from gpuwatch.analysis.study.read import read, read_sessions
from gpuwatch.analysis.summary.load import disturbances
from gpuwatch.analysis.summary.summary import SlowStep
from gpuwatch.report.document.sessions import short
from gpuwatch.report.text import as_text
from tests.analysis.sessions import CPU, Make, record, step_line, summary

STEPS = [
    step_line(
        number,
        end=5 + number * 0.5 + 4 * (number > 10),
        phases={"forward": 0.2, "other": 0.3, "evaluation": 4.0 * (number == 11)},
    )
    for number in range(1, 21)
]
"""Twenty steps, and an evaluation of four seconds between two of them."""


def test_an_evaluation_is_in_no_step_and_both_rates_are_told(make: Make) -> None:
    told = make(steps=STEPS)
    steps = told.steps
    assert steps.samples_per_second == pytest.approx(128)
    assert steps.samples_per_second_overall == pytest.approx(20 * 64 / 14)
    assert steps.evaluation_seconds == pytest.approx(4)
    assert dict(steps.phases) == pytest.approx({"forward": 0.2, "other": 0.3})
    assert told.efficiency.flop_rate.value == pytest.approx(
        told.count["flop_per_step"] / 0.5, rel=1e-6
    )
    assert any(
        note.startswith("evaluations until training goes on took 4.00 s, with what")
        for note in told.notes
    )


def test_the_work_of_a_step_is_the_mean_where_steps_differ(make: Make) -> None:
    told = make(steps=[{**each, "flop": 1e9} for each in STEPS[:5]] + STEPS[5:])
    of_one = make(steps=STEPS).count["flop_per_step"]
    assert told.count["flop_per_step"] == pytest.approx((5 * 1e9 + 15 * of_one) / 20)
    assert told.efficiency.flop_rate.value * 0.5 == pytest.approx(told.count["flop_per_step"])
    partial = [{**each, "flop": 1e9, "partial": [each["step"]]} for each in STEPS]
    assert make(steps=partial).count["flop_per_step"] == of_one
    none = make(steps=[{**each, "flop": 0.0} for each in STEPS])
    assert none.count["flop_per_step"] == 0
    some = [{**each, "flop": 1e9} for each in STEPS[:3]] + STEPS[3:]
    assert make(steps=some, count={"flop_per_step": None}).count["flop_per_step"] is None


@pytest.mark.parametrize(
    ("counted", "note"),
    [([], None), ([1e9, 2e9, 3e9], "FLOP of the most usual kind are the mean of 3 counted steps")],
)
def test_where_kinds_of_steps_differ_no_note_says_that_all_are_as_the_counted_one(
    make: Make, counted: list[float], note: str | None
) -> None:
    count = {"flop_per_step": 2e9, "counted_flop": counted}
    steps = [{**each, "flop": 1e9} for each in STEPS]
    notes = make(steps=steps, count=count, extra={"timing": {"cost": 0.001}}).notes
    assert not any("in every step" in each for each in notes)
    assert note is None or any(note in each for each in notes)


def test_an_evaluation_is_in_no_step_whose_time_only_the_ends_tell(make: Make) -> None:
    steps = [{key: value for key, value in step.items() if key != "seconds"} for step in STEPS]
    told = make(steps=steps, step_seconds=1.0).steps
    assert told.max_seconds == pytest.approx(0.5)
    assert told.samples_per_second == pytest.approx(128)


def test_of_some_of_the_steps_no_energy_of_a_step_follows(make: Make) -> None:
    steps = [{**step, "step": 10 * number} for number, step in enumerate(STEPS, 1)]
    gauges = {("gpu0", "hw.gpu.power"): 300.0}
    found = make(steps=steps, gauges=gauges).efficiency.energy
    assert found.gpu.value is not None
    assert (found.gpu_per_step.value, found.gpu_per_step.reason) == (None, SOME)


def test_a_step_that_counts_among_the_timed_ones_leaves_their_energy(make: Make) -> None:
    """The hook counts the work of a step after the first timed ones; that step is none."""
    steps = [{**step, "warmup": step["step"] in (1, 5)} for step in STEPS]
    gauges = {("gpu0", "hw.gpu.power"): 300.0}
    found = make(steps=steps, gauges=gauges).efficiency.energy
    assert found.gpu_per_step.value == pytest.approx(found.gpu.value / 18)  # type: ignore[operator]


def test_without_any_energy_that_is_the_reason(make: Make) -> None:
    steps = [{**step, "step": 10 * number} for number, step in enumerate(STEPS, 1)]
    found = make(steps=steps, devices=(CPU,)).efficiency.energy
    assert found.gpu.value is None and found.gpu_per_step.reason == found.gpu.reason


def test_an_evaluation_in_the_first_line_is_told_alike(make: Make) -> None:
    first = {**STEPS[0], "phases": {"other": 0.5, "evaluation": 2.0}}
    told = make(steps=[first, *STEPS[1:]])
    assert told.steps.evaluation_seconds == pytest.approx(6)
    assert told.steps.samples_per_second == pytest.approx(128)
    assert told.steps.samples_per_second_overall == pytest.approx(20 * 64 / 16)
    assert any(
        note.startswith("evaluations until training goes on took 6.00 s, with what")
        for note in told.notes
    )


def test_a_phase_that_the_hook_never_saw_is_not_zero(make: Make) -> None:
    hooked = {"hook": {"processes": 1}}
    seen = {"backward": 0.05, "optimizer": 0.05, "other": 0.4}
    steps = [{**each, "phases": {"data": 0.0, "forward": 0.0, **seen}} for each in STEPS]
    told = make(steps=steps, extra=hooked)
    assert dict(told.steps.phases) == pytest.approx(seen)
    note = "phase data and forward: unavailable: could not be told apart from other"
    assert [each for each in told.notes if "phase" in each] == [note]
    printed = make(steps=steps)
    assert printed.steps.phases["data"] == 0, "which the program itself says"
    own = [{**each, "phases": {"data": 0.0, "forward": 0.2}} for each in STEPS]
    printed = make(steps=own, extra=hooked)
    assert printed.steps.phases["data"] == 0, "in lines of its own, whose phases are others"
    unseen = {"unseen_phases": {"forward": "compiled"}}
    newer = make(steps=steps, run=unseen, extra=hooked)
    assert newer.steps.phases["data"] == 0, "a newer hook says what it could not see"


def test_without_an_evaluation_there_is_one_rate(make: Make) -> None:
    steps = make().steps
    assert steps.samples_per_second_overall is steps.evaluation_seconds is None


SAMPLED = [
    {
        **step_line(number, [0.05] * 10, count=10, samples=None, sampled=of),
        "step": number * 10,
        "phases": {"forward": 0.02 * of, "other": 0.04 * of} if of else {},
    }
    for number, of in enumerate((2, 0, 4, 1) * 5, 1)
]
"""200 steps, of which 35 have phases: each of 60 ms, since it takes time to sample it."""


@pytest.mark.parametrize("most_lines", [1, 50_000])
def test_phases_of_sampled_steps_add_up_to_the_mean_step(
    make: Make, monkeypatch: pytest.MonkeyPatch, most_lines: int
) -> None:
    monkeypatch.setattr(source, "MOST_LINES", most_lines)
    told = make(steps=SAMPLED)
    assert (told.steps.count, told.steps.sampled_count) == (200, 35)
    assert dict(told.steps.phases) == pytest.approx({"forward": 0.05 / 3, "other": 0.1 / 3})
    assert told.steps.mean_seconds == pytest.approx(0.05)
    assert (
        "phases are of 35 of 200 steps, drawn at random, as shares of the mean step" in told.notes
    )
    (row,) = (row for row in compare([told]).rows if row.name == "sampled steps")
    assert (row.group, row.values) == ("phases, mean", (35,))


def test_slow_steps_of_which_more_are_drawn_weigh_no_more_than_others(make: Make) -> None:
    lines = []
    for number in range(1, 41):
        slow = number % 20 == 0
        more = {
            "phases": {"data": 0.9, "other": 0.1} if slow else {"data": 0.002, "other": 0.008},
            "sampled": 10 if slow else 1,
        }
        seconds = [0.1 if slow else 0.01] * 100
        lines.append(step_line(number * 100, seconds, 5.0 + number, count=100, **more))
    told = make(steps=lines)
    mean = (38 * 0.01 + 2 * 0.1) / 40
    assert told.steps.mean_seconds == pytest.approx(mean)
    data = (38 * 0.002 + 2 * 0.09) / 40
    assert told.steps.phases["data"] == pytest.approx(data, rel=0.2), "not of 20 slow and 38 others"


@pytest.mark.parametrize(("long", "drawn"), [(4, 0), (4, 1), (4, 4), (20, 8)])
def test_rare_long_steps_stretch_no_phases_of_others(make: Make, long: int, drawn: int) -> None:
    """Half of the steps of 50 ms are drawn, and some of those that wait 750 ms for data."""
    lines = []
    for number in range(1, 41):
        at = number % (40 // long) == 0
        seen = at and number <= 40 // long * drawn
        seconds = [0.05] * 9 + [0.8 if at else 0.05]
        phases = {"data": 0.05 + 0.75 * seen, "other": 0.2}
        more = {"phases": phases, "sampled": 5}
        lines.append(step_line(number * 10, seconds, 5.0 + number, count=10, **more))
    told = make(steps=lines)
    whole = 0.75 * long / 400
    known = whole if drawn > 4 else whole * drawn / long
    assert dict(told.steps.phases) == pytest.approx(
        {"data": 0.01 + known, "other": 0.04 + whole - known}
    )
    unknown = told.steps.undrawn_seconds
    assert unknown == (pytest.approx(whole - known) if drawn < 4 else None)
    assert any("of long steps not drawn" in note for note in told.notes) is (drawn < 4)


def test_a_few_lines_without_a_long_step_do_not_tell_what_is_usual(make: Make) -> None:
    lines = []
    for number in range(1, 41):
        seconds = [0.05] * 9 + [0.05 if number == 1 else 0.8]
        forward = 0.25 + 0.75 * (number % 4 > 0)  # of three of four long ones
        phases = {"data": 0.25} if number == 1 else {"forward": forward}
        phases["other"] = 0.0
        more = {"phases": phases, "sampled": 5}
        lines.append(step_line(number * 10, seconds, 5.0 + number, count=10, **more))
    told = make(steps=lines).steps
    assert told.phases["data"] < 0.02 * told.mean_seconds


def test_one_very_long_step_does_not_tell_what_many_long_ones_did(make: Make) -> None:
    lines = []
    for number in range(1, 41):
        longest = {10: 20.0, 20: 0.3, 30: 0.3, 40: 0.3, 35: 0.3}.get(number, 0.05)
        phases = {"data": 0.05 + (19.95 if number == 10 else 0.0), "other": 0.2}
        more = {"phases": phases, "sampled": 5}
        lines.append(step_line(number * 10, [0.05] * 9 + [longest], 5.0 + number, count=10, **more))
    assert make(steps=lines).steps.undrawn_seconds == pytest.approx(4 * 0.25 / 400)


def test_what_the_hook_took_is_told_and_how_it_timed_the_steps(make: Make) -> None:
    by = {"events": 1000, "host": 0, "mean": 4000}
    timing = {"cost": 0.0021, "steps_by": by, "steps_passed": 3900}
    told = make(extra={"timing": timing}, count={"flop_per_step": 2e9})
    assert any(note.startswith("3,900 steps were only timed") for note in told.notes)
    assert "FLOP were counted in one step, and are taken to be the same in every step" in told.notes
    (cost,) = (note for note in told.notes if note.startswith("hook "))
    assert "0.2 % of the time" in cost
    assert any("time of 4,000 of 5,000 steps is the mean of those" in each for each in told.notes)
    assert not any("host's clock" in each for each in told.notes)


def test_how_steps_were_timed_casts_no_doubt_but_a_hook_that_took_long_does(tmp_path: Path) -> None:
    for cost, doubted in ((0.002, False), (0.35, True)):
        path = tmp_path / f"{cost}.gpuwatch"
        told = summary(path, extra={"timing": {"cost": cost, "steps_passed": 3900}})
        found = doubts(read_sessions([path]))
        assert [e for e in (*told.notes, *disturbances([told])) if e.startswith("hook ")]
        assert any(each.startswith("hook ") for each in found) is doubted
        assert not any("only the time" in each for each in found)
    more = [replace(told, hook_cost=cost) for cost in (0.001, 0.021, 0.029)]
    assert disturbances(more) == (
        "hook 2.1 to 2.9 % of the time in 2 of 3 runs, by its own measure",
    )


@pytest.mark.parametrize(
    ("count", "note"),
    [
        (
            {"flop_per_step": 2e9, "counted_flop": [1e9, 2e9, 3e9]},
            "the work of a step varies: its FLOP are the mean of 3 counted steps, 95 % interval",
        ),
        (
            {"flop_per_step": 2e9, "counted_flop": [1e9, 3e9]},
            "the mean of 2 counted steps, from 1.00 to 3.00 GFLOP",
        ),
        ({"flop_per_step": 2e9, "at_least": True}, "FLOP and FLOP/s are at least those told"),
    ],
)
def test_work_that_varies_is_not_told_as_if_it_did_not(
    make: Make, count: dict[str, object], note: str
) -> None:
    told = make(count=count)
    assert any(note in each for each in told.notes)
    same = make(count={"flop_per_step": 2e9, "counted_flop": [2e9] * 9})
    assert not any("FLOP" in each for each in same.notes)


def test_samples_of_some_steps_alone_are_no_rate(make: Make) -> None:
    steps = [{**step, "samples": 64 if step["step"] % 2 else None} for step in STEPS]
    told = make(steps=steps)
    assert told.steps.samples_per_second is None
    rate = told.metrics["gpuwatch.throughput"]
    assert (rate.mean, rate.reason) == (None, "10 of 20 steps do not tell it")
    assert "throughput: unavailable: 10 of 20 steps do not tell their samples" in told.notes


def test_a_phase_that_was_not_seen_has_its_reason(tmp_path: Path) -> None:
    unseen = {"data": "no loader", "backward": "in a phase of the program's own"}
    told = summary(tmp_path / "a.gpuwatch", steps=STEPS, run={"unseen_phases": unseen})
    assert "phase data: unavailable: no loader" in told.notes
    brief = as_text(short(read(tmp_path / "a.gpuwatch"), [], None, ""), 80)
    assert "forward 40 %, other (with data) 60 %" in brief
    phases = {"data": 0.0, "forward": 0.2, "backward": 0.0, "optimizer": 0.0, "other": 0.3}
    old = [{**step, "phases": phases} for step in STEPS]
    record(tmp_path / "b.gpuwatch", steps=old, extra={"hook": {"processes": 1}})
    brief = as_text(short(read(tmp_path / "b.gpuwatch"), [], None, ""), 80)
    assert "forward 40 %, other (with data) 60 %" in brief
    own = [{**step, "phases": {"data": 0.0, "forward": 0.2}} for step in STEPS]
    record(tmp_path / "c.gpuwatch", steps=own, extra={"hook": {"processes": 1}})
    brief = as_text(short(read(tmp_path / "c.gpuwatch"), [], None, ""), 80)
    assert "forward 40 %, other 60 %" in brief


def test_a_profile_of_the_cpu_is_told_with_how_to_see_it(tmp_path: Path) -> None:
    columns = ["Time (%)", "Total Time (ns)", "Calls", "Name"]
    table = {"columns": columns, "rows": [[75, 300, 3, "aten::mm"], [25, 100, 1, "aten::add_"]]}
    profile = {"tool": "torch.profiler", "steps": 1, "tables": {"cpu_op_sum": table}}
    record(tmp_path / "a.gpuwatch", steps=STEPS, extra={"profile": profile})
    brief = as_text(short(read(tmp_path / "a.gpuwatch"), [], None, ""), 200)
    assert "most time in operators: 75 % GEMM, 25 % elementwise\n" in brief
    assert "next: `gpuwatch kernels" in brief
    record(tmp_path / "b.gpuwatch", steps=STEPS, extra={"profile": profile}, count={})
    brief = as_text(short(read(tmp_path / "b.gpuwatch"), [], None, ""), 200)
    assert "25 % elementwise; all: `gpuwatch kernels" in " ".join(brief.split())


def test_a_step_that_makes_most_of_the_mean_is_told_with_what_took_it(tmp_path: Path) -> None:
    slow = {**STEPS[2], "seconds": 3.0, "phases": {"data": 2.5, "forward": 0.5}}
    record(tmp_path / "a.gpuwatch", steps=[*STEPS[:2], slow, *STEPS[3:]])
    found = read(tmp_path / "a.gpuwatch")
    without = {"forward": pytest.approx(0.4), "other": pytest.approx(0.6), "data": 0.0}
    assert found.summary.steps.slowest == SlowStep(slow["step"], 3.0, slow["phases"], without)
    brief = as_text(short(found, [], None, ""), 200)
    assert f"slowest step: {slow['step']}, 3.00 s, of it data 2.50 s\n" in brief
    assert "forward 34 %, other 46 %, data 20 % (0 % without the slowest step)\n" in brief
    record(tmp_path / "c.gpuwatch", steps=[*STEPS[:2], slow | {"phases": {}}, *STEPS[3:]])
    brief = as_text(short(read(tmp_path / "c.gpuwatch"), [], None, ""), 200)
    assert f"slowest step: {slow['step']}, 3.00 s\n" in brief
    record(tmp_path / "b.gpuwatch", steps=[*STEPS[:2], *[slow | {"step": 3}] * 9, *STEPS[11:]])
    brief = as_text(short(read(tmp_path / "b.gpuwatch"), [], None, ""), 200)
    assert "slowest" not in brief, "several are slow"


def test_why_there_is_no_mfu_is_told_beside_flop_of_a_gpu(tmp_path: Path) -> None:
    record(tmp_path / "a.gpuwatch", run={"dtype": None})
    brief = as_text(short(read(tmp_path / "a.gpuwatch"), [], None, ""), 200)
    assert "MFU unavailable: the workload did not report a data type whose peak is known" in brief


@pytest.mark.parametrize(
    ("seconds", "note"),
    [
        ([0.2] * 40, None),
        ([0.5] * 25 + [0.2] * 15, "steady are only the last 15 of 40 steps, at 200 ms"),
        ([0.2] * 35 + [0.5] * 5, "still changed at step 36 of 40 (from 200 ms to 500 ms)"),
        ([0.5] * 5, None),  # too few to say
    ],
)
def test_a_step_time_that_changed_its_level_is_told(
    tmp_path: Path, seconds: list[float], note: str | None
) -> None:
    seconds = [each + (at * 7 % 5 - 2) / 1000 for at, each in enumerate(seconds)]
    ends = [5 + sum(seconds[: at + 1]) for at in range(len(seconds))]
    steps = [step_line(at, *each) for at, each in enumerate(zip(seconds, ends, strict=True), 1)]
    summary(tmp_path / "a.gpuwatch", steps=steps)
    brief = as_text(short(read(tmp_path / "a.gpuwatch"), [], None, ""), 200)
    assert ("note: " in brief and note in brief) if note else "stead" not in brief


def test_a_profile_that_was_asked_for_in_vain_is_a_note(tmp_path: Path) -> None:
    hook = {"options": ["profile=4"], "text": "no torch"}
    of = {"workload": {"name": "a", "kind": "command"}, "hook": hook}
    notes = summary(tmp_path / "a.gpuwatch", extra=of, label="plain").notes
    assert "the run was not profiled: no torch" in notes


def test_what_the_hook_did_to_a_run_is_a_note_at_it(tmp_path: Path) -> None:
    told = "one step was run uncompiled to count its FLOP: it uses memory otherwise"
    calm = "the program prints step lines itself: they count, and what the hook reports does not"
    path = tmp_path / "a.gpuwatch"
    assert summary(path, events=[("hook", told), ("hook", calm)], label="counted").notes == (told,)
    summary(tmp_path / "b.gpuwatch", label="plain")
    assert f"counted: {told}" in doubts(read_sessions([tmp_path / "b.gpuwatch", path]))
