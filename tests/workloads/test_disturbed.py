"""Measuring while others hold the machine: seen, measured again, and never for a worse figure."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from gpuwatch.workloads.system_load import BUSY, OtherLoad

BUSY_LOOP = "print(flush=True)\nwhile True: pass"


@contextlib.contextmanager
def busy_loop() -> Iterator[None]:
    process = subprocess.Popen([sys.executable, "-c", BUSY_LOOP], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        process.stdout.readline()
        yield
    finally:
        process.kill()
        process.communicate()


def spin(seconds: float) -> None:
    """Own work for so many seconds of processor time."""
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_a_busy_loop_beside_is_counted_as_others() -> None:
    with busy_loop():
        load = OtherLoad()
        spin(0.3)
        others = load.share()
    # On an idle machine one core, or half of one where there is but one.
    assert others is not None and BUSY < others <= 1
    assert others > 0.4 / (os.cpu_count() or 1)


def test_own_work_is_not_counted_as_others() -> None:
    """Others may be busy here as well: they and this are never more than the machine."""
    began, load = time.perf_counter(), OtherLoad()
    spin(0.5)
    machine = (time.perf_counter() - began) * (os.cpu_count() or 1)
    others = load.share()
    ticks = 0.05  # seconds: /proc/stat counts in steps of 10 ms
    assert others is not None and others * machine <= machine - 0.5 + ticks


@pytest.mark.torch
class TestBetter:
    """Of two measurements of one ceiling."""

    @staticmethod
    def figure(value: float, others: float | None) -> Any:
        from gpuwatch.workloads.calibration import Figure

        return Figure(value, 0.01, f"reached {value}", None, others, 1.0)

    @pytest.mark.parametrize(
        ("one", "other", "kept"),
        [
            ((60.0, 0.6), (165.0, 0.0), (165.0, 0.0)),
            ((165.0, 0.6), (60.0, 0.7), (165.0, 0.6)),
            ((60.0, 0.6), (165.0, 0.5), (165.0, 0.5)),
            # Undisturbed there was no more to reach.
            ((165.0, 0.6), (160.0, 0.01), (165.0, 0.01)),
            ((165.0, None), (160.0, None), (165.0, None)),
        ],
    )
    def test_the_higher_one_stays_and_is_undisturbed_where_the_lower_was(
        self,
        one: tuple[float, float | None],
        other: tuple[float, float | None],
        kept: tuple[float, float | None],
    ) -> None:
        from gpuwatch.workloads.calibration import better

        found = better(self.figure(*one), self.figure(*other))
        assert (found.value, found.others, found.how) == (*kept, f"reached {kept[0]}")

    def test_what_is_disturbed_is_measured_again_and_the_rest_is_left_alone(self) -> None:
        import torch

        from gpuwatch.workloads.bench import Bench
        from gpuwatch.workloads.calibration import QUICK, insist

        far_beyond = self.figure(1e30, 0.0)
        found = {"bandwidth": self.figure(1.0, 1.0), "float32": far_beyond}
        bench = Bench(torch.device("cpu"), QUICK)
        insist(bench, found, time.perf_counter() + 1.5, patient=False)
        assert found["bandwidth"].value > 1e8 and "copy of" in found["bandwidth"].how
        assert found["float32"] is far_beyond

    def test_when_time_is_up_nothing_is_measured_again(self) -> None:
        import torch

        from gpuwatch.workloads.bench import Bench
        from gpuwatch.workloads.calibration import QUICK, insist

        found = {"bandwidth": self.figure(1.0, 1.0)}
        before = dict(found)
        insist(Bench(torch.device("cpu"), QUICK), found, time.perf_counter() + 0.5, patient=True)
        assert found == before, "a turn that took 1 s does not fit into half a second"
