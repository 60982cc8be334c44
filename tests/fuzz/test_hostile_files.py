"""Files from elsewhere, some hundreds by chance: each is read, or refused in one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pytest

from tests.conftest import TOLD
from tests.fuzz import claims, traced
from tests.fuzz.campaign import corpus, run, tasks
from tests.fuzz.holes import HOLES

pytestmark = pytest.mark.usefixtures("programs")

FIXED = "1"
COUNTS = {"session": 100, "claims": 50, "folder": 8, "study": 30, "profile": 15, "output": 10}
"""Of each kind; ``make fuzz`` makes thousands by a fresh seed."""


def test_files_that_broke_something_break_nothing_any_more() -> None:
    assert run([*corpus(), *tasks(FIXED, 3, "output", every=3)]).complaints == {}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_hostile_file_is_read_or_refused_and_does_nothing_else(
    record_property: Callable[[str, str], None],
) -> None:
    made = [t for kind, count in COUNTS.items() for t in tasks(FIXED, count, kind, every=3)]
    tally = run([*corpus(), *made])
    record_property(TOLD, f"fuzz, seed {FIXED}: {tally.text()}")
    assert tally.complaints == {}, (
        f"python -m tests.fuzz --seed {FIXED} --only NAME reads one again"
    )
    assert tally.files >= len(made)
    # Neither everything nor nothing is refused: mutations reach what lies behind the first checks.
    assert 0 < tally.refused < tally.files * 0.9
    assert tally.read > 0


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("hole", sorted(HOLES))
def test_the_watch_sees_each_old_hole(hole: str) -> None:
    """Without which its silence would say nothing."""
    tally = run(tasks("holes", 40, "claims"), hole=hole)
    assert tally.complaints


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not on the PATH")
def test_the_real_commands_do_nothing_that_a_session_names() -> None:
    assert traced.campaign(len(claims.KINDS), FIXED, processes=2) == []


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not on the PATH")
@pytest.mark.parametrize("hole", sorted(HOLES.keys() - {"resume what anybody planned"}))
def test_the_trace_shows_each_old_hole(hole: str) -> None:
    assert traced.campaign(len(claims.KINDS), "holes", hole, processes=2)
