"""The simulation behind the tables of docs/statistics.md, with few studies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from benchmarks import disturbances, power
from benchmarks.disturbances import (
    BLOCKS,
    EFFECTS,
    PATTERNS,
    RULES,
    Cell,
    Runs,
    cells_of,
    covers,
    designs,
    every,
    google,
    hyperfine,
    night,
    of_rules,
    of_several,
    of_two,
    one_in_seven_blocks,
    pyperf,
    right_kinds,
    simulate,
    verdicts,
    worst,
)
from gpuwatch.analysis.results import Kind
from gpuwatch.analysis.statistics.intervals import mean_of

STUDIES = 200
NAMES = [pattern.name for pattern in PATTERNS]


def runs(studies: int = 5, blocks: int = 7, environments: int = 2) -> Runs:
    return Runs(np.random.default_rng(1), studies, blocks, environments)


def test_the_tables_have_every_pattern_in_every_size() -> None:
    found = {design: cells_of(design, 2, 1) for design in designs()}
    head = 2
    several = sum(pattern.several for pattern in PATTERNS)
    for table, rows in ((of_two, len(NAMES)), (of_several, several), (of_rules, len(NAMES))):
        lines = table(found, intervals=False).splitlines()
        assert len(lines) == rows + head
        assert len({line.count("|") for line in lines}) == 1
    assert len(worst(found).splitlines()) == 1 + len(EFFECTS)


def test_no_pattern_is_there_twice() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 20


def test_without_disturbance_little_is_wrong_and_an_effect_is_found() -> None:
    cells = cells_of((NAMES.index("normal noise"), 20, 2), STUDIES, 1)
    assert min(cells[0.0].covered) >= 0.9 * STUDIES
    assert cells[0.0].wrong <= 0.1 * STUDIES
    assert cells[0.0].right + cells[0.0].wrong >= 0.95 * STUDIES
    assert cells[0.02].right == STUDIES
    assert all(count == STUDIES for count in cells[0.02].rules.values())


def test_slow_steps_make_slower_what_has_the_same_median() -> None:
    at = next(
        at for at, pattern in enumerate(PATTERNS) if pattern.name.startswith("every 4th step")
    )
    found = simulate(PATTERNS[at], runs())
    for (verdict,) in verdicts(found, 0.0):
        assert verdict.total is not None
        assert verdict.total.estimate == pytest.approx(0.2, abs=0.02)
        assert verdict.estimate == pytest.approx(0.0, abs=0.02)
        assert (verdict.kind, verdict.typical) == (Kind.SLOWER, Kind.SAME)


def test_an_interval_covers_what_the_one_at_95_per_cent_holds() -> None:
    found = simulate(PATTERNS[0], runs(studies=40))
    ratios = found.typical[:, :, 1] - found.typical[:, :, 0]
    for row, distances, (verdict,) in zip(
        ratios, found.distances[:, :, 1], verdicts(found, 0.0), strict=True
    ):
        mean = mean_of(row, distances)
        assert mean is not None
        low, high = mean.bounds(0.95)
        inner = (high - low) / 1000
        assert covers(verdict, low + inner)
        assert covers(verdict, high - inner)
        assert not covers(verdict, low - inner)
        assert not covers(verdict, high + inner)


def test_the_kinds_that_are_right() -> None:
    one, two = math.log(1.01), math.log(1.02)
    assert right_kinds((0.0, 0.0)) == {Kind.SAME}
    assert right_kinds((one, one)) == set()
    assert right_kinds((0.0, two)) == {Kind.SLOWER}
    assert right_kinds((one / 2, one / 2)) == {Kind.SAME, Kind.SMALL}


def test_the_disturbances_are_as_they_are_called() -> None:
    third = every(3)(runs(blocks=9)) > 0
    assert (third.sum(axis=1) == 6).all()
    assert (np.diff(np.flatnonzero(third[0])) == 3).all()
    assert ((night(runs()) > 0).sum(axis=1) == 7).all()
    for blocks, outlying in ((5, 1), (7, 1), (20, 2)):
        assert ((one_in_seven_blocks(runs(blocks=blocks)) > 0).sum(axis=1) == outlying).all()


def test_the_other_tools_rules_are_scipys_and_their_own_ranges() -> None:
    rng = np.random.default_rng(3)
    first, second = rng.normal(1, 0.1, (200, 7)), rng.normal(1.1, 0.2, (200, 7))
    t, u, ranges = pyperf(first, second), google(first, second), hyperfine(first, second)
    for at in range(len(first)):
        one, two = first[at], second[at]
        assert bool(t[at]) == (stats.ttest_ind(one, two).pvalue <= 0.05)
        assert bool(u[at]) == (stats.mannwhitneyu(one, two).pvalue < 0.05)
        low, high = sorted((one, two), key=np.mean)
        apart = low.mean() + low.std(ddof=1) < high.mean() - high.std(ddof=1)
        assert bool(ranges[at]) == apart
    assert 0 < np.count_nonzero(ranges) < len(first)
    for rule in RULES.values():
        assert (rule(first, first + 1) == 1).all()
        assert (rule(first + 1, first) == -1).all()


def test_bold_is_what_its_interval_excludes() -> None:
    few = {0.0: Cell(2000, wrong=60, covered=[1900, 1890])}
    many = {0.0: Cell(2000, wrong=140, covered=[1900, 1860])}
    cells = [few, many]
    assert disturbances._shares(cells, disturbances.COVERAGE, False) == "94.5 / **93.0**"
    assert disturbances._shares(cells, disturbances.wrong(0.0), False) == "3.0 / **7.0**"
    told = disturbances._shares(cells, disturbances.wrong(0.0), True)
    assert told == "3.0 (2.3 to 3.8) / **7.0 (6.0 to 8.2)**"


@pytest.mark.parametrize("blocks", BLOCKS)
def test_the_tables_of_power_count_each_verdict_once(blocks: int) -> None:
    found = power.simulated((0.003, blocks), 20, 0.01, 1)
    for counts in found.values():
        assert sum(counts[name] for name in ("SAME", "SMALL", "SLOWER", "FASTER")) <= 20
    assert found[0.05]["SLOWER"] == found[0.05]["zero excluded"] == 20
