"""Phases, samples and evaluations of loops that advance their own clock."""

from __future__ import annotations

from typing import Any

import pytest

from tests.hook.test_programs import Start, Told, start  # noqa: F401 (a fixture)

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

STEP = {"backward": 20, "optimizer": 5}


FORWARD = 2 * 6 * 8 * 4
"""FLOP of a forward pass of the model; its backward pass has as many."""


def timed(told: Told) -> list[dict[str, Any]]:
    return [line for line in told.of("step") if not line.get("warmup")]


def milliseconds(told: Told) -> dict[str, float]:
    """Of each phase in the timed steps, and of them all (``step``), by step."""
    lines = timed(told)
    steps = sum(line["count"] for line in lines)
    names = {name for line in lines for name in line["phases"]}
    found = {name: sum(line["phases"].get(name, 0.0) for line in lines) for name in names}
    found["step"] = sum(sum(line["seconds"]) for line in lines)
    return {name: round(1e3 * total / steps, 6) for name, total in found.items() if total}


def evaluated(told: Told) -> float:
    """Milliseconds of evaluation in all, in any step."""
    return 1e3 * sum(line["phases"].get("evaluation", 0.0) for line in told.of("step"))


@pytest.mark.parametrize(
    ("loop", "expected"),
    [
        ("no_loader", {"forward": 13, "other": 7, **STEP}),
        ("loader", {"data": 8, "forward": 13, "other": 1, **STEP}),
        ("accumulation", {"forward": 40, "backward": 80, "optimizer": 5}),
        ("closure", {"forward": 10, "other": 9, **STEP}),
        ("teacher", {"forward": 13, "other": 10, **STEP}),
        ("wrapped", {"forward": 13, **STEP}),
        ("trained_in_eval_mode", {"data": 8, "forward": 13, **STEP}),
        ("recurrent", {"forward": 13, "optimizer": 5}),
        ("two_optimizers", {"forward": 23, "backward": 40, "optimizer": 10}),
    ],
)
def test_each_phase_has_its_time(
    start: Start,  # noqa: F811
    loop: str,
    expected: dict[str, float],
) -> None:
    (told,) = start.unchanged("phases.py", loop).told
    assert told.of("problem") == []
    assert milliseconds(told) == {**expected, "step": sum(expected.values())}


@pytest.mark.parametrize(
    ("loop", "steps"),
    [
        ("unequal", 12 * 4),
        ("in_turns", 20 + 11 + 4 * 19),
        ("taught", 4 + 39),
        ("federated", 5 + 4 + 16 * 4),
        ("of_layers", 3 * 12),
    ],
)
def test_another_optimizer_leads_only_after_many_steps_of_its_own(
    start: Start,  # noqa: F811
    loop: str,
    steps: int,
) -> None:
    (told,) = start.unchanged("phases.py", loop).told
    assert told.steps == steps
    assert sum(line["count"] for line in timed(told)) > 0.6 * steps


def test_where_the_hook_costs_much_steps_are_passed_over_and_all_are_timed(
    start: Start,  # noqa: F811
) -> None:
    (told,) = start.unchanged("phases.py", "loader", "costly").told
    lines = timed(told)
    steps = sum(line["count"] for line in lines)
    sampled = sum(line.get("sampled", line["count"]) for line in lines)
    assert (told.steps, told.samples) == (240, 960)
    assert 0 < sampled < steps
    each = {"data": 0.008, "forward": 0.013, "backward": 0.02, "optimizer": 0.005}
    for name, seconds in each.items():
        total = sum(line["phases"].get(name, 0) for line in lines)
        assert total == pytest.approx(sampled * seconds)
    assert {round(one, 9) for line in lines for one in line["seconds"]} == {0.047}
    timing = told.of("timing")[-1]
    assert timing["steps_by"] == {"host": 240}
    assert 100 < timing["steps_passed"] <= 240 - sampled
    assert timing["cost"] < 7 / 47, "one callback of each, seven of some, and of the first fifty"


def test_a_batch_fetched_ahead_does_not_end_the_forward_pass(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", "prefetch").told
    full = [line for line in timed(told) if line["step"] < 12]
    assert sum(line["phases"]["forward"] for line in full) == pytest.approx(
        0.010 * sum(line["count"] for line in full)
    )


@pytest.mark.parametrize(
    ("loop", "took"),
    [
        ("evaluation", 2 * (8 * 2 + 10 + 4)),
        ("careless_evaluation", 2 * (8 * 2 + 10 + 4)),
        ("forgotten_mode", 2 * (8 * 2 + 10 + 4)),
        ("evaluation_without_loader", 2 * 10),
    ],
)
def test_an_evaluation_between_steps_that_are_passed_over_is_seen(
    start: Start,  # noqa: F811
    loop: str,
    took: float,
) -> None:
    (told,) = start.unchanged("phases.py", loop, "costly").told
    data = 0 if loop == "evaluation_without_loader" else 8
    assert told.steps == 240
    assert {round(1e3 * one, 6) for line in timed(told) for one in line["seconds"]} == {
        data + 13 + 20 + 5
    }
    between = 240 // 4 if loop == "evaluation_without_loader" else 79
    assert evaluated(told) == pytest.approx(between * took)
    assert told.of("timing")[-1]["steps_passed"] > 20


@pytest.mark.parametrize(
    ("loop", "samples"), [("last_is_smaller", 20 * 45), ("last_is_smaller_and_evaluated", 20 * 95)]
)
def test_samples_of_steps_that_are_passed_over_are_those_of_the_others(
    start: Start,  # noqa: F811
    loop: str,
    samples: int,
) -> None:
    (told,) = start.unchanged("phases.py", loop, "costly").told
    assert told.steps == 240
    assert told.samples == samples
    assert told.of("timing")[-1]["steps_passed"] > 60


def test_steps_are_not_told_as_the_others_where_accumulation_changes(
    start: Start,  # noqa: F811
) -> None:
    (told,) = start.unchanged("phases.py", "accumulation_changes", "costly").told
    assert told.of("problem") == []
    assert told.of("timing")[-1]["steps_passed"] > 40
    for line in timed(told):
        assert line["samples"] == sum(12 if one < 0.1 else 48 for one in line["seconds"])


@pytest.mark.parametrize("loop", ["two_optimizers", "taught", "closure", "prefetch"])
def test_all_steps_are_told_where_most_are_passed_over(start: Start, loop: str) -> None:  # noqa: F811
    plain, costly = (
        start.unchanged("phases.py", loop, *more).told[0] for more in ((), ("costly",))
    )
    assert costly.of("timing")[-1]["steps_passed"] > 40
    steps = [{one for line in timed(told) for one in line["seconds"]} for told in (plain, costly)]
    without_batch = {0.035} if loop == "prefetch" else set()  # the last step fetches none
    assert steps[1] <= steps[0] | without_batch
    kinds = [{line.get("samples", 0) / line["count"] for line in timed(t)} for t in (plain, costly)]
    assert kinds[1] == kinds[0]


@pytest.mark.parametrize("loop", ["evaluation", "careless_evaluation"])
def test_an_evaluation_is_outside_of_the_steps(start: Start, loop: str) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", loop).told
    assert (told.steps, told.samples) == (12, 48)
    assert milliseconds(told)["step"] == 8 + 13 + 20 + 5
    assert milliseconds(told)["forward"] == 13
    # The last one ends with the program, after the last step.
    assert evaluated(told) == pytest.approx(3 * 2 * (8 * 2 + 10 + 4))


@pytest.mark.parametrize(
    ("loop", "expected"),
    [("taught", 10 + 13 + 20 + 5), ("fetched_without_gradients", 8 + 13 + 20 + 5)],
)
def test_what_every_step_does_is_a_part_of_it(
    start: Start,  # noqa: F811
    loop: str,
    expected: int,
) -> None:
    (told,) = start.unchanged("phases.py", loop).told
    last = timed(told)[-1]
    assert last["seconds"] == pytest.approx([expected / 1e3] * last["count"])
    assert last["samples"] == (6 if loop == "taught" else 4) * last["count"]


@pytest.mark.parametrize("more", [(), ("costly",)])
def test_the_workers_of_the_training_are_not_started_in_an_evaluation(
    start: Start,  # noqa: F811
    more: tuple[str, ...],
) -> None:
    (told,) = start.unchanged("phases.py", "evaluation_and_workers", *more).told
    between = told.steps // 3 - 1
    assert evaluated(told) == pytest.approx(between * 3 * 10)
    epochs = [round(1e3 * one) for line in timed(told) for one in line["seconds"]]
    assert set(epochs) == {38, 30 + 38} and epochs.count(68) <= between


def test_an_evaluation_without_a_loader(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", "evaluation_without_loader").told
    assert milliseconds(told)["step"] == 13 + 20 + 5
    assert evaluated(told) == pytest.approx(3 * 2 * 10)


def test_a_phase_that_was_not_seen_has_a_reason(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", "functions").told
    assert milliseconds(told) == {"optimizer": 5, "other": 10, "step": 15}
    assert {name for line in timed(told) for name in line["phases"]} == {
        *("backward", "optimizer", "other")
    }
    unseen = told.of("run")[-1]["unseen_phases"]
    assert sorted(unseen) == ["data", "forward"] and "its time is in other" in unseen["forward"]


@pytest.mark.parametrize(
    ("loop", "samples"),
    [
        ("no_loader", 6),
        ("loader", 4),
        ("accumulation", 24),
        ("closure", 6),
        ("mode_is_set_late", 4),
        ("two_loaders", 12),
        ("not_batched", 6),
        ("one_item", 1),
        ("time_first", 4),
        ("recurrent", None),
        ("two_optimizers", 6),
        ("line_search", 6),
        ("functions", None),
        ("episodes", None),
        ("two_views", None),
        ("one_image", None),
        ("gradients_of_samples", None),
        ("real_and_made", None),
    ],
)
def test_samples_of_a_step(start: Start, loop: str, samples: int | None) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", loop).told
    lines = timed(told)
    assert lines
    assert {
        None if "samples" not in line else line["samples"] / line["count"] for line in lines
    } == {samples}


def test_samples_of_batches_that_come_again_are_not_known(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", "repeated_batches").told
    lines = told.of("step")
    assert sum(line["samples"] for line in lines if "samples" in line) == 2 * 12
    assert sum(line["count"] for line in lines if "samples" not in line) == 12 - 2


def test_steps_of_more_passes_are_more_work(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", "line_search").told
    count = told.of("count")[-1]
    assert count["flop_per_step"] in (2 * FORWARD, 4 * FORWARD)
    for line in timed(told):
        flop = line.get("flop", line["count"] * count["flop_per_step"])
        numbers = range(line["step"] - line["count"] + 1, line["step"] + 1)
        assert flop == sum(2 * FORWARD * (1 + number % 2) for number in numbers)
    assert "at_least" not in count


def test_steps_of_more_calls_are_more_work(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", "episodes").told
    count, once = told.of("count")[-1], 2 * FORWARD / 6
    for line in timed(told):
        flop = line.get("flop", line["count"] * count["flop_per_step"])
        numbers = range(line["step"] - line["count"], line["step"])
        assert flop == sum(once * (2 + number % 2) for number in numbers)
    assert "at_least" not in count


def test_work_that_varies_is_counted_again(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("phases.py", "layer_drop").told
    count = told.of("count")[-1]
    second = 3 * 2 * 6 * 4 * 4
    assert set(count["counted_flop"]) == {2 * FORWARD, 2 * FORWARD + second}
    counted = count["counted_flop"]
    assert len(counted) > 3
    assert count["flop_per_step"] == pytest.approx(sum(counted) / len(counted))
