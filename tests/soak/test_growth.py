"""Growth is found where there is some, and not where there is none."""

from __future__ import annotations

import os
import random

import pytest

from tests.soak.growth import MIB, Sample, growth, look

HALF_AN_HOUR = 1800


def samples(mib_an_hour: float, seed: int = 1, **per_hour: float) -> list[Sample]:
    """A process of 40 MiB with a noise of 0.3 MiB, whose start takes 8 more."""
    dice = random.Random(seed)
    found = []
    for at in range(0, HALF_AN_HOUR, 3):
        warm = 8 * min(1.0, at / (HALF_AN_HOUR / 8))
        mib = 40 + warm + mib_an_hour * at / 3600 + dice.gauss(0, 0.3)
        counts = {
            kind: 10 + dice.randint(0, 2) + int(per_hour.get(kind, 0) * at / 3600)
            for kind in ("descriptors", "threads", "children")
        }
        found.append(Sample(at, round(mib * MIB), **counts))
    return found


@pytest.mark.parametrize("seed", range(5))
def test_noise_and_a_warm_up_are_no_leak(seed: int) -> None:
    found = growth(samples(0, seed))
    assert found.leaks() == []
    assert found.low < 0.5 and found.high > -0.5


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_of_ten_mib_an_hour_is_found(seed: int) -> None:
    found = growth(samples(10, seed))
    assert found.leaks_memory and found.low < 10.5 and found.high > 9.5


@pytest.mark.parametrize("kind", ["descriptors", "threads", "children"])
def test_what_is_never_given_back_is_found_beside_what_comes_and_goes(kind: str) -> None:
    (told,) = growth(samples(0, **{kind: 20})).leaks()
    assert told.endswith(kind)


def test_a_process_is_looked_at_as_the_kernel_has_it() -> None:
    before = look(os.getpid(), 0.0)
    opened = [os.open("/dev/null", os.O_RDONLY) for _ in range(5)]
    after = look(os.getpid(), 1.0)
    for each in opened:
        os.close(each)
    assert before is not None and after is not None
    assert after.descriptors - before.descriptors == 5
    assert after.rss > MIB and after.threads >= 1
    assert look(2**22 + 1, 0.0) is None, "no process has such a number"


def test_too_few_looks_tell_nothing() -> None:
    with pytest.raises(ValueError, match="tell no growth"):
        growth(samples(0)[:19])
