"""The period of a sampled signal is found where it is plain, and not in noise."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.rhythm import FAST, LENGTHS, NOISES, found, iterations, moments, too_fast
from gpuwatch.analysis.samples.rhythm import LEAST, period_of
from tests.cli.commands.test_record import sessions
from tests.conftest import Cli


def random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize("noise", NOISES)
@pytest.mark.usefixtures("simulations")
def test_noise_has_a_period_in_at_most_one_run_of_twenty(noise: str) -> None:
    source, runs = random(7), 40
    for size in LENGTHS:
        periods = [found(source, NOISES[noise], size) for _ in range(runs)]
        assert sum(period is not None for period in periods) <= runs / 20


@pytest.mark.usefixtures("simulations")
def test_iterations_that_are_too_fast_for_the_interval_do_not_look_slow() -> None:
    source = random(8)
    for period in FAST:
        assert too_fast(source, 600, period, 18) <= 0.05


@pytest.mark.parametrize("period", [0.25, 0.5, 1.2, 4.0])
@pytest.mark.parametrize("jitter", [0.0, 0.02])
def test_a_plain_period_is_found_with_an_interval_that_holds_it(
    period: float, jitter: float
) -> None:
    source, held = random(9), 0
    for _ in range(10):
        t, values, true = iterations(source, 600, period, jitter, 1.5)
        got = period_of(t, values)
        assert got is not None
        assert got.seconds == pytest.approx(true, rel=0.03)
        held += got.low <= true <= got.high
    assert held >= 8


def test_a_short_dip_in_each_period_is_the_whole_periods() -> None:
    source = random(10)
    t = moments(source, 1000)
    values = (t % 2.0 > 0.2) + 0.05 * source.normal(size=t.size)
    got = period_of(t, values)
    assert got is not None
    assert got.seconds == pytest.approx(2.0, rel=0.01)


def test_a_period_in_one_part_of_the_run_alone_is_not_plain() -> None:
    source = random(11)
    t, values, _ = iterations(source, 900, 1.2, 0.0, 3.0)
    values[300:] = source.normal(size=600)
    assert period_of(t, values) is None


def test_few_samples_and_constant_ones_have_no_period() -> None:
    t, values, _ = iterations(random(12), LEAST - 1, 0.5, 0.0, 5.0)
    assert period_of(t, values) is None
    assert period_of(np.arange(600.0), np.ones(600)) is None
    assert period_of(np.zeros(0), np.zeros(0)) is None


WORKS = """
import sys, time
start = time.monotonic()
end = start + 14
number = 0
while time.monotonic() < end:
    begun = time.monotonic()
    while time.monotonic() < begun + 0.25:
        pass
    time.sleep(0.25)
    number += 1
    if sys.argv[1] == "steps":
        print(f':::GPUWATCH {{"event": "step", "step": {number}, "seconds": 0.5}}', flush=True)
print("each", (time.monotonic() - start) / number)
"""


@pytest.mark.slow
def test_a_program_without_steps_is_shown_with_the_rhythm_of_its_cpu_time(
    cli: Cli, tmp_path: Path
) -> None:
    (tmp_path / "works.py").write_text(WORKS)
    for kind in ("none", "steps"):
        out = tmp_path / kind
        program = (sys.executable, tmp_path / "works.py", kind)
        cli("--record", "--interval", "0.05", "--out", out, "--", *program)
        (session,) = sessions(out)
        shown = " ".join(cli.read("show", session).stdout.split())
        if kind == "none":
            assert "bound, from the rhythm of process CPU time" in shown
            about = float(shown.partition("iteration about ")[2].partition(" ms")[0])
            each = float(cli.read("log", session).stdout.rpartition("each ")[2])
            assert about == pytest.approx(1000 * each, abs=25)
        else:
            assert "iteration about" not in shown
