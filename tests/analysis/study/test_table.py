"""The table of a question: which runs its figures are of, and what is only a bound."""

from __future__ import annotations

import math
import statistics
from pathlib import Path

import pytest

from gpuwatch.analysis.results import ComparisonRow
from gpuwatch.analysis.statistics.intervals import interval
from gpuwatch.analysis.study.read import read_study
from gpuwatch.core.metrics import Method
from tests.analysis.recorded_studies import BARE, DOCKER, FAILED, blocks_of, recorded

EFFECTS = {"bare": 1.0, "docker=image": 1.0}
PAIR = blocks_of(5, BARE, DOCKER)
STOPPED = {"code": None, "signal": 15, "stopped": "SIGTERM"}
REAL = {at: 10.0 + at for at in range(1, 13)}
"""Seconds of each run of the plan: odd numbers are bare's, even ones docker's."""


def with_real(options: dict[int, dict[str, object]] | None = None) -> dict[int, dict[str, object]]:
    given = options or {}
    return {at: {"real": seconds, **given.get(at, {})} for at, seconds in REAL.items()}


def table(folder: Path, options: dict[int, dict[str, object]]) -> dict[str, ComparisonRow]:
    recorded(folder, [PAIR], EFFECTS, options=options)
    (found,) = read_study(folder).questions
    return {f"{row.group}: {row.name}": row for row in found.table}


@pytest.mark.parametrize("result", [STOPPED, FAILED])
def test_a_run_without_a_step_time_is_in_no_mean_range_or_ratio(
    tmp_path: Path, result: dict[str, object]
) -> None:
    cut_short = {"result": {**result, "real_seconds": 0.5}}
    rows = table(tmp_path, with_real({5: cut_short}))
    real = rows["start-up and time: elapsed"]
    bare = [REAL[at] for at in (3, 7, 9, 11)]
    assert (real.values[0], real.lows[0], real.highs[0]) == (
        pytest.approx(statistics.geometric_mean(bare)), min(bare), max(bare),
    )  # fmt: skip
    docker = statistics.geometric_mean(REAL[at + 1] for at in (3, 5, 7, 9, 11))
    assert real.ratios == (1.0, pytest.approx(docker / statistics.geometric_mean(bare)))
    pairs = [(REAL[at + 1], REAL[at]) for at in (3, 7, 9, 11)]
    assert real.changes == (None, interval([math.log(other / base) for other, base in pairs]))
    assert real.known == real.runs == (4, 5)


def test_a_cell_that_was_always_stopped_is_shown_without_ratios(tmp_path: Path) -> None:
    options = {at: {"result": {**STOPPED, "real_seconds": 0.5}} for at in (4, 6, 8, 10, 12)}
    real = table(tmp_path, with_real(options))["start-up and time: elapsed"]
    assert real.values[1] == 0.5 and real.ratios[1] is None


def test_seconds_that_are_at_least_so_much_make_a_bound_without_a_ratio(tmp_path: Path) -> None:
    part = {"user_seconds": 3.0}
    options = {at: {"result": {**part, "cpu_is_bound": at == 4}} for at in range(1, 13)}
    user = table(tmp_path, options)["start-up and time: CPU time, user"]
    assert (user.bound(0), user.bound(1)) == (None, "at least")
    assert user.methods == (Method.MEASURED, Method.BOUND)
    assert (user.lows[1], user.highs[1]) == (3.0, None)
    assert user.ratios == (1.0, None)


def test_a_median_with_a_figure_that_is_at_most_so_much_is_at_most_so_much(tmp_path: Path) -> None:
    grows = {("cpu", "process.cpu.time"): 0.5}
    still = {("cpu", "process.cpu.time"): 0.0}
    options = {at: {"counters": still if at == 3 else grows} for at in range(1, 13)}
    used = table(tmp_path, options)["over the window: process.cpu.time"]
    assert (used.bound(0), used.bound(1)) == ("at most", None)
    assert used.methods == (Method.BOUND, Method.MEASURED)
    assert used.lows[0] is None and used.highs[0] == pytest.approx(5.0, rel=0.05)
    assert used.ratios == (None, None)


def test_a_figure_that_some_runs_lack_says_of_how_many_it_is(tmp_path: Path) -> None:
    options = with_real()
    for at in (3, 5, 7):
        options[at] = {"real": None}
    real = table(tmp_path, options)["start-up and time: elapsed"]
    assert (real.known, real.runs) == ((2, 5), (5, 5))


def test_the_step_time_stands_there_once_as_the_verdicts_take_it(tmp_path: Path) -> None:
    rows = table(tmp_path, with_real())
    times = [name for name in rows if name.startswith("steps: step time")]
    assert times == [
        "steps: step time, typical",
        "steps: step time, steady mean",
        "steps: step time, 95th percentile",
    ]


def test_values_that_are_the_same_in_every_run_have_a_ratio_and_no_interval(tmp_path: Path) -> None:
    rows = table(tmp_path, {at: {"real": 10.0} for at in range(1, 13)})
    real = rows["start-up and time: elapsed"]
    assert (real.ratios, real.changes) == ((1.0, 1.0), (None, None))


def test_of_pairs_no_energy_is_left_out_for_its_error_which_is_in_their_scatter(
    tmp_path: Path,
) -> None:
    gauges = {("gpu0", "hw.gpu.power"): [400.0, 800.0]}
    rows = table(tmp_path, {at: {"gauges": gauges} for at in range(1, 13)})
    energy, step = rows["efficiency: energy per step"], rows["steps: step time, steady mean"]
    change, of_step = energy.changes[1], step.changes[1]
    assert change is not None and of_step is not None and energy.ratios[1] is not None
    assert change.estimate == pytest.approx(of_step.estimate, abs=0.01)
