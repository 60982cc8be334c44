"""The parts of benchmarks/startup.py."""

from __future__ import annotations

import pytest

from benchmarks import startup
from gpuwatch.workloads.lines import PREFIX


def test_a_program_is_timed_until_it_is_ready_and_then_ended() -> None:
    code = "import time; sum(range(10**7)); print('ready', flush=True); time.sleep(600)"
    elapsed, processor = startup.seconds_to_ready(["-c", code], threads=1)
    assert 0.05 < processor < elapsed + 0.05


def test_a_workload_is_ready_at_its_first_step_line() -> None:
    def printing(*events: str) -> list[str]:
        lines = [f'{PREFIX}{{"event": "{event}"}}' for event in events]
        return ["-c", f"for line in {lines}: print(line, flush=True)"]

    startup.seconds_to_ready(printing("started", "run", "step"), threads=1)
    with pytest.raises(RuntimeError, match="no first step"):
        startup.seconds_to_ready(printing("started", "run"), threads=1)


def test_ratios_are_of_one_round_and_their_middle_is_told() -> None:
    found, base = [(3.0, 2.0), (8.0, 2.0), (5.0, 9.0)], [(1.0, 1.0), (2.0, 2.0), (2.5, 3.0)]
    assert startup.ratio(found, base, 0) == "3.00 (2.00 to 4.00)"
    assert startup.ratio(found, base, 1) == "2.00 (1.00 to 3.00)"
