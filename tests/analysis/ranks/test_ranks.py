"""The ranks of a run: their figures, the slow ones, and what goes with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.ranks.own_time import cells_of
from gpuwatch.analysis.ranks.ranks import (
    NO_PHASES,
    NO_STEPS,
    Ranks,
    figures_of,
    ranks_of,
    recorded_ranks,
    tokens_per_second,
)
from gpuwatch.analysis.ranks.wording import sentences, short
from gpuwatch.analysis.samples.source import Source
from gpuwatch.session.reading.reader import SessionReader
from tests.tui import sessions

from ...rank_steps import BACKWARD, DATA, OWN, SECOND, rank_rows, rank_steps, written


def compared(ranks: int = 2, **options: Any) -> Ranks:
    found = ranks_of(rank_rows(ranks), rank_steps(ranks, **options))
    assert found is not None
    return found


def recorded(
    folder: Path,
    ranks: int,
    sampled: Mapping[tuple[str, str], float] | None = None,
    cores: Mapping[int, float] | None = None,
    **options: Any,
) -> Ranks:
    of_ranks = written(rank_rows(ranks), rank_steps(ranks, **options), cores)
    script = sessions.Script(
        gpus=ranks, ranks=of_ranks, sampled=dict(sampled or {}), throttled=True
    )
    with SessionReader(sessions.write(folder / "s.gpuwatch", script)) as reader:
        rows, steps = reader.ranks(), reader.all_rank_steps()
        found = recorded_ranks(reader, Source(reader), rows, steps)
    assert found is not None
    return found


def named(found: Ranks) -> list[int]:
    return [each.excess.rank for each in found.stragglers]


def test_figures_of_a_rank_leave_its_warm_up_out() -> None:
    rows = [
        replace(row, phases={**row.phases, "forward": 99.0}) if row.warmup else row
        for row in rank_steps(2, noise=0.0, tokens=512.0)
    ]
    first, second = figures_of(rank_rows(2), rows)
    assert first.steps == second.steps == sum(r.count for r in rows if not r.warmup) // 2
    assert first.step_seconds == pytest.approx(OWN + BACKWARD, rel=0.05)
    assert first.own_seconds == pytest.approx(OWN, rel=0.05)
    assert first.data_share == pytest.approx(DATA / (OWN + BACKWARD), rel=0.05)
    assert first.samples_per_second == pytest.approx(32 / first.step_seconds)
    assert tokens_per_second((first, second)) == pytest.approx(2 * 512 / first.step_seconds)


def test_own_time_of_the_sampled_steps_stands_for_that_of_the_others(tmp_path: Path) -> None:
    whole = rank_steps(2, noise=0.0, slow=1, by=0.2)
    some = [
        replace(row, phases={name: each / 4 for name, each in row.phases.items()}, sampled=5)
        if number % 6 > 1
        else replace(row, phases={}, sampled=0)
        for number, row in enumerate(whole)
    ]
    for first, second in zip(
        figures_of(rank_rows(2), whole), figures_of(rank_rows(2), some), strict=True
    ):
        assert second.own_seconds == pytest.approx(first.own_seconds, rel=0.02)
        assert second.phases == pytest.approx(first.phases, rel=0.02)
    cells, of_whole = cells_of(some), cells_of(whole)
    assert cells is not None and of_whole is not None
    assert cells.per_step.mean(axis=1) == pytest.approx(of_whole.per_step.mean(axis=1), rel=0.02)


def test_a_run_of_one_rank_has_figures_and_no_comparison() -> None:
    steps = rank_steps(1, tokens=512.0)
    assert ranks_of(rank_rows(1), steps) is None
    assert tokens_per_second(figures_of(rank_rows(1), steps)) is not None


def test_tokens_per_second_are_unknown_if_one_rank_does_not_tell() -> None:
    rows = [replace(r, tokens=None if r.rank else 9.0) for r in rank_steps(2)]
    assert tokens_per_second(figures_of(rank_rows(2), rows)) is None


@pytest.mark.parametrize("ranks", [2, 3, 8])
@pytest.mark.parametrize("by", [0.05, 0.10, 0.30])
def test_a_slow_rank_is_named(ranks: int, by: float) -> None:
    found = compared(ranks, slow=1, by=by)
    assert named(found) == [1] and found.slowest == 1
    excess = found.stragglers[0].excess
    assert excess.low <= excess.seconds <= excess.high and excess.since is None
    assert excess.relative == pytest.approx(by, abs=0.01)
    if ranks == 8:
        assert found.imbalance == pytest.approx(by, abs=0.01)


@pytest.mark.parametrize("ranks", [2, 8])
def test_no_rank_is_named_where_none_is_slow(ranks: int) -> None:
    found = [compared(ranks, seed=seed) for seed in range(20)]
    assert [named(each) for each in found] == [[]] * 20
    assert all(each.reason is None and len(each.excesses) == ranks for each in found)


def test_a_rank_that_becomes_slower_is_named_with_the_moment() -> None:
    found = compared(4, slow=2, by=0.3, since=60.0, seconds=125.0)
    (straggler,) = found.stragglers
    assert straggler.excess.rank == 2 and straggler.excess.since is not None
    assert straggler.excess.since / SECOND == pytest.approx(60, abs=8)
    assert straggler.excess.relative == pytest.approx(0.3, abs=0.03)
    assert "+30 %" in sentences(found)[0] and "since 1:0" in sentences(found)[0]


def test_single_stalls_of_a_rank_do_not_name_it() -> None:
    rows = [
        replace(row, phases={**row.phases, "other": row.phases["other"] + 3.0}, seconds=5.0)
        if row.rank == 0 and row.n % 40 == 1
        else row
        for row in rank_steps(2, 300.0)
    ]
    found = ranks_of(rank_rows(2), rows)
    assert found is not None and found.stragglers == ()


def test_rows_of_ranks_need_not_end_together() -> None:
    rows = [replace(r, t=r.t + r.rank * 700_000_000) for r in rank_steps(4, slow=3, by=0.1)]
    found = ranks_of(rank_rows(4), sorted(rows, key=lambda row: row.t))
    assert found is not None and named(found) == [3]


@pytest.mark.parametrize(
    ("seconds", "change", "why"),
    [
        (90.0, {"phases": {}}, NO_PHASES),
        (90.0, {"phases": {"data": 0.1, "forward": 1.0}}, NO_PHASES),
        (90.0, {"warmup": True}, NO_STEPS),
        (18.0, {}, "4 stretches of about two seconds"),
    ],
)
def test_what_is_not_known_is_said(seconds: float, change: dict[str, Any], why: str) -> None:
    rows = [replace(row, **change) for row in rank_steps(2, seconds, slow=1, by=0.3)]
    found = ranks_of(rank_rows(2), rows)
    assert found is not None and found.stragglers == () and found.reason is not None
    assert why in found.reason
    assert sentences(found)[0].startswith("can't tell whether a rank is slower")
    assert short(found) == "2 ranks"


def test_ranks_of_a_sharded_model_cannot_be_told_apart() -> None:
    rows = [replace(row, sharded=True) for row in rank_rows(2)]
    found = ranks_of(rows, rank_steps(2, slow=1, by=0.3))
    assert found is not None and found.stragglers == () and found.heat is None
    assert found.slowest is None and [each.own_seconds for each in found.figures] == [None, None]
    assert "wait for each other in forward" in sentences(found)[0]


@pytest.mark.parametrize(
    ("cpu_nodes", "gpu_nodes", "told"),
    [
        ([(0,), (0,)], [0, 1], True),
        ([(0,), (0, 1)], [0, 1], False),
        ([(1,), (0,)], [0, 1], False),
        ([(), (0,)], [0, 1], False),
        ([(0,), (0,)], [None, 1], False),
    ],
)
def test_a_slow_rank_far_from_its_gpu_is_told(
    cpu_nodes: list[tuple[int, ...]], gpu_nodes: list[int | None], told: bool
) -> None:
    rows = [
        replace(row, cpu_nodes=nodes, gpu_node=node)
        for row, nodes, node in zip(rank_rows(2), cpu_nodes, gpu_nodes, strict=True)
    ]
    found = ranks_of(rows, rank_steps(2, slow=1, by=0.3))
    assert found is not None
    text = "NUMA: its GPU is on node 1, its CPUs on 0; others have both on one"
    assert (text in sentences(found)[0]) is told


def test_impossible_rows_are_unknown() -> None:
    for value in (1e308, -1.0, 0.0):
        rows = [replace(row, seconds=value) for row in rank_steps(2)]
        found = ranks_of(rank_rows(2), rows)
        assert found is not None and found.reason is not None
    backwards = ranks_of(rank_rows(2), rank_steps(2)[::-1])
    assert backwards is not None and backwards.reason is not None
    far = [replace(row, t=row.t << 29) for row in rank_steps(2)]
    assert ranks_of(rank_rows(2), far) is not None


def test_data_wait_goes_with_a_rank_that_waits_for_data(tmp_path: Path) -> None:
    found = recorded(tmp_path, 2, slow=1, by=0.3, phase="data")
    assert [reason.name for reason in found.stragglers[0].goes_with] == ["data wait"]
    assert short(found) == "2 ranks · slowest 1, +30 %, data wait"
    text = sentences(found)[0]
    assert text.startswith("rank 1 is slower than rank 0: own time +30 %")
    assert "Goes with: data wait +11" in text


@pytest.mark.parametrize(
    ("values", "name", "text"),
    [
        ({"hw.gpu.clock.sm": 1.2e9}, "SM clock", "SM clock 1.20 GHz, others 1.98 GHz"),
        (
            {"hw.gpu.throttle.thermal": 1.0},
            "clocks held down by temperature",
            "clocks held down by temperature 100 % of the time, others 0 % of the time",
        ),
        ({"hw.gpu.temperature": 85.0}, "temperature", "temperature 85 °C, others 62 °C"),
        ({"hw.gpu.pcie.receive": 9e9}, "PCIe received", "PCIe received 9.00 GB/s"),
    ],
)
def test_a_metric_of_its_gpu_goes_with_a_slow_rank(
    tmp_path: Path, values: dict[str, float], name: str, text: str
) -> None:
    usual = {("gpu0", "hw.gpu.temperature"): 61.0, ("gpu1", "hw.gpu.temperature"): 62.0}
    usual |= {("gpu3", "hw.gpu.temperature"): 62.0}
    sampled = {("gpu2", metric): value for metric, value in values.items()}
    usual |= {("gpu2", "hw.gpu.temperature"): 62.0}
    everywhere = {(f"gpu{i}", "hw.gpu.clock.sm"): 1.98e9 for i in range(4)}
    everywhere |= {(f"gpu{i}", "hw.gpu.pcie.transmit"): 1e9 for i in range(4)}
    everywhere |= {(f"gpu{i}", "hw.gpu.pcie.receive"): 3e9 for i in range(4)}
    everywhere |= {(f"gpu{i}", "hw.gpu.throttle.power"): 0.0 for i in range(4)}
    found = recorded(tmp_path, 4, {**everywhere, **usual, **sampled}, slow=2, by=0.2)
    assert named(found) == [2]
    assert [reason.name for reason in found.stragglers[0].goes_with] == ["forward", name]
    assert text in sentences(found)[0]
    assert short(found) == f"4 ranks · slowest 2, +20 %, {name}"


def test_the_cpu_of_its_process_goes_with_a_slow_rank(tmp_path: Path) -> None:
    found = recorded(tmp_path, 2, cores={0: 0.98, 1: 0.41}, slow=1, by=0.2)
    texts = [reason.text for reason in found.stragglers[0].goes_with]
    assert "CPU of its process 0.41 cores, others 0.98" in texts


def test_ranks_on_one_device_are_not_told_apart_by_it() -> None:
    found = ranks_of(rank_rows(2, ["cpu", "cpu"]), rank_steps(2, slow=0, by=0.2))
    assert found is not None
    assert [reason.name for reason in found.stragglers[0].goes_with] == ["forward"]
    assert "no sampled metric differs" in sentences(found)[0]
