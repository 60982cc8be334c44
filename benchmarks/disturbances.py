"""What verdicts find under disturbances, beside other tools: tables of docs/statistics.md.

    python -m benchmarks.disturbances [--studies 2000] [--seed 1] [--intervals]

Each run of a simulated study is a hundred steps around the level of the run, which the disturbance
moves; gpuwatch's own code judges their median and their mean, in the orders of real plans. The same
studies serve for all true effects. Beside it, unpaired and from the mean of each run, which is what
these tools time:

- pyperf 2.10 (its documentation, "Compare benchmark results", and ``_utils.is_significant``):
  Student's t with pooled variance, two-sided, 5 %.
- hyperfine: it has no test and prints mean and standard deviation. Two environments differ where
  the ranges mean +- standard deviation do not overlap.
- Google Benchmark's ``compare.py``: the Mann-Whitney U test on repetitions, two-sided, 5 %. It
  warns below nine repetitions but tells its p value from two on.
"""

from __future__ import annotations

import argparse
import math
import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from unittest.mock import patch

import numpy as np
from scipy.special import ndtri, stdtrit
from scipy.stats import binomtest, mannwhitneyu, ttest_ind

from gpuwatch.analysis.comparison.verdict import paired
from gpuwatch.analysis.results import Kind, Verdict
from gpuwatch.analysis.statistics.intervals import freedom
from tests.analysis.studies import MARGIN, places

NOISE = 0.003
"""Standard deviation of a run's level, unless the pattern says otherwise."""
STEPS = 100
STEP_NOISE = 0.005
ORDERS = 300
"""Orders of real plans that the studies take in turn."""
EFFECTS = (0.0, 0.01, 0.02, 0.05)
EFFECTS_OF_SEVERAL = (0.0, 0.02)
BLOCKS = (5, 7, 10, 20)
BLOCKS_OF_SEVERAL = (7, 10, 20)
NOMINAL = 0.95
DECIDED = frozenset({Kind.SAME, Kind.SMALL, Kind.SLOWER, Kind.FASTER})


@dataclass(frozen=True)
class Runs:
    """The runs of some studies, in the order in which they ran."""

    rng: np.random.Generator
    studies: int
    blocks: int
    environments: int

    @property
    def count(self) -> int:
        return self.blocks * self.environments

    @property
    def shape(self) -> tuple[int, int]:
        return self.studies, self.count

    @property
    def at(self) -> np.ndarray:
        return np.arange(self.count)

    @property
    def place(self) -> np.ndarray:
        return self.at % self.environments

    def offset(self, most: int) -> np.ndarray:
        """A random whole number below ``most`` for each study, to broadcast over its runs."""
        return self.rng.integers(most, size=(self.studies, 1))

    def noise(self, size: float = NOISE) -> np.ndarray:
        return self.rng.normal(0, size, self.shape)


Levels = Callable[[Runs], np.ndarray]
"""The logarithm of the level of each run: of :attr:`Runs.shape`, or alike in all studies."""
Steps = Callable[[np.random.Generator, int, tuple[int, ...]], np.ndarray]
"""The logarithm of each step of the environment with that number, beside level and noise."""


@dataclass(frozen=True)
class Pattern:
    name: str
    noise: Levels = Runs.noise
    added: Levels = lambda runs: np.zeros(runs.shape)
    steps: Steps | None = None
    spread: float = 1.0
    """Factor for the noise of the other environment."""
    slow_steps: tuple[float, float] = (0.0, 0.0)
    """By how much the other's median and mean step take longer without any true effect, as
    logarithms."""
    several: bool = False
    """Whether it is simulated for three and four environments, too."""


def one_in_seven_blocks(runs: Runs) -> np.ndarray:
    order = runs.rng.random(runs.shape).argsort(axis=1)
    return np.where(order < max(1, runs.blocks // 7), math.log(1.2), 0.0)


def each_with(chance: float, change: float) -> Levels:
    return lambda runs: np.where(runs.rng.random(runs.shape) < chance, math.log1p(change), 0.0)


def every(period: int) -> Levels:
    """From a random run on, each ``period``-th is 5 % slower."""
    return lambda runs: np.where((runs.at + runs.offset(period)) % period, 0.0, math.log(1.05))


def at_place(place: int) -> Levels:
    """3 % on one place of each block; -1: the last."""
    return lambda runs: np.where(runs.place == place % runs.environments, math.log(1.03), 0.0)


def drift(runs: Runs) -> np.ndarray:
    return np.asarray(np.log1p(0.02 * runs.at / (runs.count - 1)))


def warm_up(runs: Runs) -> np.ndarray:
    return np.asarray(0.05 * np.exp(-runs.at / 3))


def random_walk(runs: Runs) -> np.ndarray:
    return runs.noise().cumsum(axis=1)


def autoregressive(runs: Runs, correlation: float = 0.8) -> np.ndarray:
    """Noise of which ``correlation`` is carried over from run to run."""
    found = runs.noise()
    for run in range(1, runs.count):
        new = math.sqrt(1 - correlation**2) * found[:, run]
        found[:, run] = correlation * found[:, run - 1] + new
    return found


def sine(blocks: float) -> Levels:
    """1 % either way, with a random phase."""

    def levels(runs: Runs) -> np.ndarray:
        turns = runs.at / (blocks * runs.environments) + runs.rng.random((runs.studies, 1))
        return np.asarray(0.01 * np.sin(2 * np.pi * turns))

    return levels


def level_change(runs: Runs) -> np.ndarray:
    """3 % from one of the runs in the middle half on."""
    start = runs.count // 4 + runs.offset(runs.count // 2)
    return np.where(runs.at >= start, math.log(1.03), 0.0)


def night(runs: Runs) -> np.ndarray:
    """3 % over half of the study, which may begin in its end."""
    slow = (runs.at + runs.offset(runs.count)) % runs.count < runs.count / 2
    return np.where(slow, math.log(1.03), 0.0)


def two_speeds(rng: np.random.Generator, _: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.where(rng.random(shape) < 0.5, math.log(1.05), 0.0)


def fourth_step(_: np.random.Generator, environment: int, shape: tuple[int, ...]) -> np.ndarray:
    slow = np.arange(STEPS) % 4 == 0
    return np.where(slow, math.log(3 if environment else 2), 0.0)


def tenth_step(_: np.random.Generator, environment: int, shape: tuple[int, ...]) -> np.ndarray:
    slow = (np.arange(STEPS) % 10 == 0) & (environment > 0)
    return np.where(slow, math.log(1.5), 0.0)


PATTERNS = (
    Pattern("normal noise", several=True),
    Pattern(
        "heavy tails: t, 3 degrees",
        noise=lambda runs: NOISE / math.sqrt(3) * runs.rng.standard_t(3, runs.shape),
        several=True,
    ),
    Pattern(
        "heavy tails: Cauchy, quartiles 0.2 % off",
        noise=lambda runs: 0.002 * runs.rng.standard_cauchy(runs.shape),
    ),
    Pattern(
        "skewed: exponential", noise=lambda runs: runs.rng.exponential(NOISE, runs.shape) - NOISE
    ),
    Pattern("one run in seven blocks +20 %", added=one_in_seven_blocks),
    Pattern("each run +20 % with chance 1/7", added=each_with(1 / 7, 0.2), several=True),
    Pattern("runs at two speeds, 2 % apart", added=each_with(0.5, 0.02)),
    Pattern("steps at two speeds, 5 % apart", steps=two_speeds),
    Pattern(
        "every 4th step x2 in A, x3 in B *", steps=fourth_step, slow_steps=(0.0, math.log(1.2))
    ),
    # The median of all steps is, of the nine in ten that do not stall, the one at rank 5/9.
    Pattern(
        "every 10th step x1.5 in B *",
        steps=tenth_step,
        slow_steps=(STEP_NOISE * float(ndtri(5 / 9)), math.log(1.05)),
    ),
    Pattern("first place of a block +3 %", added=at_place(0), several=True),
    Pattern("last place of a block +3 %", added=at_place(-1)),
    Pattern("drift, 2 % over the study", added=drift),
    Pattern("machine warms up: 5 %, then 1/e each 3 runs", added=warm_up),
    Pattern("random walk, 0.3 % a run", added=random_walk, several=True),
    Pattern("AR(1) noise, 0.8 from run to run", noise=autoregressive, several=True),
    Pattern("sine of 1 block, 1 % either way", added=sine(1)),
    Pattern("sine of 2 blocks", added=sine(2), several=True),
    Pattern("sine of 1.37 blocks", added=sine(1.37), several=True),
    Pattern("every 3rd run +5 %", added=every(3), several=True),
    Pattern("every 4th run +5 %", added=every(4), several=True),
    Pattern("+3 % from the middle on", added=level_change),
    Pattern("+3 % over half of the study (night)", added=night),
    Pattern("B three times as noisy", spread=3),
    Pattern("noise 3 %, above the gate", noise=lambda runs: runs.noise(0.03)),
)


@dataclass(frozen=True)
class Studies:
    """Simulated studies without any true effect, in which the others may have slow steps."""

    typical: np.ndarray
    """Logarithm of the median step, (studies, blocks, environments)."""
    total: np.ndarray
    """Logarithm of the mean of all steps, the same."""
    distances: np.ndarray
    """How many places each ran after the baseline, the same."""


@lru_cache
def orders(blocks: int, environments: int) -> np.ndarray:
    return np.array([places(blocks, seed, environments) for seed in range(ORDERS)])


def simulate(pattern: Pattern, runs: Runs) -> Studies:
    kinds = orders(runs.blocks, runs.environments)
    where = kinds[np.arange(runs.studies) % ORDERS]
    flat = where.reshape(runs.studies, -1)
    noise, added = (
        np.take_along_axis(np.broadcast_to(rows, runs.shape), flat, axis=1).reshape(where.shape)
        for rows in (pattern.noise(runs), pattern.added(runs))
    )
    noise[:, :, 1:] *= pattern.spread
    level = noise + added
    steps = [_steps(pattern, runs, environment) for environment in range(runs.environments)]
    typical = level + np.stack([np.median(each, axis=2) for each in steps], axis=2)
    total = level + np.stack([np.log(np.exp(each).mean(axis=2)) for each in steps], axis=2)
    return Studies(typical, total, (where - where[:, :, :1]).astype(float))


def _steps(pattern: Pattern, runs: Runs, environment: int) -> np.ndarray:
    shape = (runs.studies, runs.blocks, STEPS)
    noise = runs.rng.normal(0, STEP_NOISE, shape)
    return noise if pattern.steps is None else noise + pattern.steps(runs.rng, environment, shape)


@dataclass
class Cell:
    """What is said of the studies of one pattern, size and effect."""

    studies: int = 0
    right: int = 0
    """The other that has the effect is judged rightly."""
    wrong: int = 0
    """Any of the others is judged wrongly."""
    beyond: int = 0
    """Of those: SLOWER or FASTER."""
    covered: list[int] = field(default_factory=lambda: [0, 0])
    """Intervals at 95 % that hold the true change: of the median step, of all steps."""
    rules: dict[str, int] = field(default_factory=dict)
    """How many studies other tools call different, at an effect in its direction."""


def verdicts(
    found: Studies, effect: float, margin: float = MARGIN
) -> Iterator[tuple[Verdict, ...]]:
    """gpuwatch's on each study, if the first of the others has a true ``effect``."""
    shift = np.zeros(found.typical.shape[2] - 1)
    shift[0] = math.log1p(effect)
    typical, total = (
        (values[:, :, 1:] - values[:, :, :1] + shift).swapaxes(1, 2)
        for values in (found.typical, found.total)
    )
    distances = found.distances[:, :, 1:].swapaxes(1, 2)
    # How many blocks would decide it takes most of the time, and is not asked.
    with patch("gpuwatch.analysis.comparison.verdict.blocks_to_decide", return_value=None):
        for study in zip(typical, total, distances, strict=True):
            first, second, distance = map(list, study)
            yield paired(first, margin, totals=second, places=distance)


def judge(pattern: Pattern, found: Studies, effect: float) -> Cell:
    """Count what is said of studies in which the first of the others has a true ``effect``."""
    cell = Cell(len(found.typical))
    true = [math.log1p(effect), *[0.0] * (found.typical.shape[2] - 2)]
    truths = [(each + pattern.slow_steps[0], each + pattern.slow_steps[1]) for each in true]
    for each in verdicts(found, effect):
        _count(cell, each, truths)
    times = np.exp(found.total[:, :, 0]), (1 + effect) * np.exp(found.total[:, :, 1])
    for name, rule in RULES.items():
        sign = rule(*times)
        cell.rules[name] = int(np.count_nonzero(sign > 0 if effect else sign))
    return cell


def _count(cell: Cell, verdicts: Sequence[Verdict], truths: Sequence[tuple[float, float]]) -> None:
    wrong = [
        each.kind
        for each, truth in zip(verdicts, truths, strict=True)
        if each.kind in DECIDED - right_kinds(truth)
    ]
    cell.right += verdicts[0].kind in right_kinds(truths[0])
    cell.wrong += bool(wrong)
    cell.beyond += any(kind in (Kind.SLOWER, Kind.FASTER) for kind in wrong)
    for at, truth in enumerate(truths[0]):
        value = verdicts[0].total if at else verdicts[0]
        assert value is not None
        cell.covered[at] += covers(value, truth)


def right_kinds(truth: tuple[float, float]) -> frozenset[Kind]:
    """The verdicts that are right for true log-ratios of median and mean step, not below 0."""
    change, edge = max(truth), math.log1p(MARGIN)
    if math.isclose(change, edge):
        return frozenset()
    if change > edge:
        return frozenset({Kind.SLOWER})
    return frozenset({Kind.SMALL, Kind.SAME} if change else {Kind.SAME})


def covers(verdict: Verdict, truth: float) -> bool:
    """Whether the interval, had it been drawn at 95 % and not at Holm's level, holds ``truth``."""
    change = verdict.change
    assert change is not None
    quantiles = stdtrit(freedom(verdict.pairs, placed=True), [0.5 + change.level / 2, 0.975])
    low, value, high = (math.log1p(each) for each in (change.low, change.estimate, change.high))
    half = (high - low) / 2 * quantiles[1] / quantiles[0]
    return bool(abs(value - truth) <= half)


def pyperf(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """1 where ``second`` (studies, runs) is significantly longer, -1: shorter, 0: neither."""
    found = ttest_ind(second, first, axis=1)
    return np.where(found.pvalue <= 0.05, np.sign(found.statistic), 0)


def hyperfine(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The same for ranges of a standard deviation either way that do not overlap."""
    reach = first.std(axis=1, ddof=1) + second.std(axis=1, ddof=1)
    apart = second.mean(axis=1) - first.mean(axis=1)
    return np.where(np.abs(apart) > reach, np.sign(apart), 0)


def google(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The same for the U test."""
    found = mannwhitneyu(second, first, axis=1, alternative="two-sided")
    return np.where(found.pvalue < 0.05, np.sign(found.statistic - first.shape[1] ** 2 / 2), 0)


RULES = {"pyperf": pyperf, "hyperfine": hyperfine, "Google": google}
Design = tuple[int, int, int]
"""Number of the pattern, blocks, environments."""
Found = dict[Design, dict[float, Cell]]


def designs() -> list[Design]:
    two = [(at, blocks, 2) for at in range(len(PATTERNS)) for blocks in BLOCKS]
    more = [
        (at, blocks, environments)
        for at, pattern in enumerate(PATTERNS)
        if pattern.several
        for environments in (3, 4)
        for blocks in BLOCKS_OF_SEVERAL
    ]
    return two + more


def cells_of(design: Design, studies: int, seed: int) -> dict[float, Cell]:
    """By true effect."""
    at, blocks, environments = design
    runs = Runs(np.random.default_rng([seed, *design]), studies, blocks, environments)
    found = simulate(PATTERNS[at], runs)
    effects = EFFECTS if environments == 2 else EFFECTS_OF_SEVERAL
    return {effect: judge(PATTERNS[at], found, effect) for effect in effects}


@dataclass(frozen=True)
class Column:
    """Which share of the studies of some cells to show."""

    title: str
    effect: float
    count: Callable[[Cell], int]
    least: float = 0.0
    """It is bold where its 95 % interval lies wholly below."""
    most: float = 1.0
    """Or wholly above."""
    places: int = 1


def _title(word: str, effect: float) -> str:
    return f"{word}, {100 * effect:g} %"


# The value whose interval covers less; an effect only shifts it.
COVERAGE = Column("coverage", 0.0, lambda cell: min(cell.covered), least=NOMINAL)


def right(effect: float) -> Column:
    word = "SLOWER" if effect else "SAME"
    return Column(_title(word, effect), effect, lambda cell: cell.right, places=0)


def wrong(effect: float) -> Column:
    # At the margin itself SLOWER may err in 2.5 %, and SAME or SMALL in 5 %.
    most = 0.075 if effect == MARGIN else 0.05
    return Column(_title("wrong", effect), effect, lambda cell: cell.wrong, most=most)


def called(name: str, effect: float) -> Column:
    return Column(_title(name, effect), effect, lambda cell: cell.rules[name], places=0)


VERDICTS = (COVERAGE, right(0.0), wrong(0.0), wrong(0.01), right(0.02), wrong(0.02), right(0.05))
VERDICTS_OF_SEVERAL = (COVERAGE, wrong(0.0), right(0.02), wrong(0.02))


def _blocks(of: Sequence[int]) -> str:
    return f"{' / '.join(map(str, of))} blocks"


def of_two(found: Found, *, intervals: bool) -> str:
    """What gpuwatch says of two environments."""
    rows = []
    for at, pattern in enumerate(PATTERNS):
        cells = [found[at, blocks, 2] for blocks in BLOCKS]
        rows.append([pattern.name, *(_shares(cells, each, intervals) for each in VERDICTS)])
    return _markdown([_blocks(BLOCKS), *(each.title for each in VERDICTS)], rows)


def of_several(found: Found, *, intervals: bool) -> str:
    """The same of three and four."""
    numbers = (3, 4)
    rows = []
    for at, pattern in enumerate(PATTERNS):
        row = [
            _shares([found[at, blocks, number] for blocks in BLOCKS_OF_SEVERAL], each, intervals)
            for number in (numbers if pattern.several else ())
            for each in VERDICTS_OF_SEVERAL
        ]
        rows += [[pattern.name, *row]] if row else []
    titles = [f"{number}: {each.title}" for number in numbers for each in VERDICTS_OF_SEVERAL]
    return _markdown([_blocks(BLOCKS_OF_SEVERAL), *titles], rows)


def of_rules(found: Found, *, intervals: bool) -> str:
    """Whether two environments differ, by gpuwatch and by others."""
    rows = []
    titles = [
        _title(name, effect) for effect in EFFECTS_OF_SEVERAL for name in ("gpuwatch", *RULES)
    ]
    for at, pattern in enumerate(PATTERNS):
        cells = [found[at, blocks, 2] for blocks in BLOCKS_OF_SEVERAL]
        row = []
        for effect in EFFECTS_OF_SEVERAL:
            own = right(effect) if effect or any(pattern.slow_steps) else wrong(effect)
            columns = [replace(own, most=1.0, places=0), *(called(name, effect) for name in RULES)]
            row += [_shares(cells, each, intervals) for each in columns]
        rows.append([pattern.name, *row])
    return _markdown([_blocks(BLOCKS_OF_SEVERAL), *titles], rows)


def _shares(cells: Sequence[dict[float, Cell]], column: Column, intervals: bool) -> str:
    """Per cent of each cell."""
    texts = []
    for cell in (each[column.effect] for each in cells):
        count = column.count(cell)
        interval = binomtest(count, cell.studies).proportion_ci(method="wilson")
        text = f"{100 * count / cell.studies:.{column.places}f}"
        if intervals:
            text += f" ({100 * interval.low:.1f} to {100 * interval.high:.1f})"
        off = interval.high < column.least or interval.low > column.most
        texts.append(f"**{text}**" if off else text)
    return " / ".join(texts)


def _markdown(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [titles, ["---", *["---:"] * (len(titles) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def worst(found: Found) -> str:
    """The most that is wrong at each effect, and the most of SLOWER and FASTER without one."""
    counts: dict[str, tuple[float, Callable[[Cell], int]]] = {
        "SLOWER or FASTER, 0 %": (0.0, lambda cell: cell.beyond)
    }
    for effect in EFFECTS:
        counts[_title("wrong", effect)] = (effect, lambda cell: cell.wrong)
    lines = []
    for title, (effect, count) in counts.items():
        shares = {
            design: count(cells[effect]) / cells[effect].studies
            for design, cells in found.items()
            if effect in cells
        }
        at, blocks, environments = most = max(shares, key=lambda design: shares[design])
        where = f"{PATTERNS[at].name}, {blocks} blocks, {environments} environments"
        lines.append(f"- {title}: at most {100 * shares[most]:.1f} % ({where})")
    return "\n".join(lines)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description="Verdicts under disturbances.")
    parser.add_argument("--studies", type=int, default=2000, help="studies of each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--intervals", action="store_true", help="Wilson's, behind each share")
    arguments = parser.parse_args()
    todo = designs()
    one = partial(cells_of, studies=arguments.studies, seed=arguments.seed)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        found = dict(zip(todo, pool.map(one, todo, chunksize=1), strict=True))
    print(f"Per cent of {arguments.studies} simulated studies, seed {arguments.seed}.\n")
    for table in (of_two, of_several, of_rules):
        print(table(found, intervals=arguments.intervals))
    print(worst(found))


if __name__ == "__main__":
    main()
