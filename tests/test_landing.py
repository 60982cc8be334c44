"""The gate stays fast and names tests that there are."""

from __future__ import annotations

import re

from .conftest import HERE
from .landing import PROMISES, SECONDS


def test_it_takes_less_than_eight_minutes() -> None:
    assert sum(SECONDS.values()) < 8 * 60


def test_no_test_stands_for_two_promises() -> None:
    assert len(SECONDS) == sum(map(len, PROMISES.values()))


def test_each_test_is_there() -> None:
    for name in SECONDS:
        file, _, test = name.partition("::")
        text = (HERE.parent / file).read_text()
        assert re.search(rf"^(async )?def {test.partition('[')[0]}\b", text, re.MULTILINE), name
