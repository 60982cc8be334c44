"""Files from elsewhere, some hundreds by chance: each is read, or refused in one line."""

from __future__ import annotations

import secrets
from collections.abc import Callable

import pytest

from tests.conftest import TOLD
from tests.fuzz.campaign import corpus, run, tasks

FIXED = "1"
COUNTS = {"session": 200, "folder": 8, "study": 60, "profile": 30, "output": 20}
"""Of each kind, by the fixed seed and by a fresh one."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", [FIXED, "fresh"])
def test_a_hostile_file_is_read_or_refused_and_does_nothing_else(
    seed: str, record_property: Callable[[str, str], None]
) -> None:
    used = secrets.token_hex(4) if seed == "fresh" else seed
    made = [t for kind, count in COUNTS.items() for t in tasks(used, count, kind, every=3)]
    tally = run([*(corpus() if seed == FIXED else ()), *made])
    record_property(TOLD, f"fuzz, seed {used}: {tally.text()}")
    assert tally.complaints == {}, f"python -m tests.fuzz --seed {used} --only NAME reads one again"
    assert tally.files >= len(made)
    # Neither everything nor nothing is refused: mutations reach what lies behind the first checks.
    assert 0 < tally.refused < tally.files * 0.9
    assert tally.read > 0
