"""Files from elsewhere, some hundreds by chance: each is read, or refused in one line.

The same ones every time, so that a failure is the change's and not luck's; fresh ones, many more,
are ``make fuzz``.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.conftest import TOLD
from tests.fuzz.campaign import corpus, run, tasks

SEEDS = ("1", "2")
COUNTS = {"session": 200, "folder": 8, "study": 60, "profile": 30, "output": 20}
"""Of each kind, by each seed."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_hostile_file_is_read_or_refused_and_does_nothing_else(
    seed: str, record_property: Callable[[str, str], None]
) -> None:
    made = [t for kind, count in COUNTS.items() for t in tasks(seed, count, kind, every=3)]
    tally = run([*(corpus() if seed == SEEDS[0] else ()), *made])
    record_property(TOLD, f"fuzz, seed {seed}: {tally.text()}")
    assert tally.complaints == {}, f"python -m tests.fuzz --seed {seed} --only NAME reads one again"
    assert tally.files >= len(made)
    # Neither everything nor nothing is refused: mutations reach what lies behind the first checks.
    assert 0 < tally.refused < tally.files * 0.9
    assert tally.read > 0
