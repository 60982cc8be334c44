"""A session that another user swaps while root reads it; ``make fuzz`` reads ten times as often."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.conftest import TOLD
from tests.fuzz import swaps

pytestmark = [
    pytest.mark.usefixtures("programs"),
    pytest.mark.skipif(os.geteuid() != 0, reason="only root reads what others may not"),
]


@pytest.mark.parametrize("every", [False, True], ids=["journal", "all that lies there"])
def test_what_another_user_swaps_meanwhile_harms_nothing(
    every: bool, record_property: Callable[[str, str], None]
) -> None:
    tally = swaps.Tally()
    for seed in "12345":  # whether a reading falls between two swaps is up to the machine
        found = swaps.run(100, seed, every=every)
        tally.words.update(found.words)
        tally.harmed.update(found.harmed)
        if len(tally.words) > 1:
            break
    record_property(TOLD, tally.text())
    assert not tally.harmed
    assert tally.words.keys() == {"read", "refused"}, "both happen, and nothing else"
