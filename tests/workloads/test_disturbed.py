"""Measuring while others hold the machine: seen, measured again, and never for a worse figure."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from gpuwatch.workloads import system_load
from gpuwatch.workloads.system_load import OtherLoad
from tests.waiting import until


@pytest.mark.parametrize(
    ("own", "user", "stolen", "others"),
    [(3.0, 3.0, 0.0, 0.0), (3.0, 8.0, 0.0, 0.25), (3.0, 8.0, 2.0, 0.35), (9.0, 8.0, 0.0, 0.0)],
)
def test_others_are_all_time_that_is_neither_idle_nor_ones_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    own: float,
    user: float,
    stolen: float,
    others: float,
) -> None:
    """Two processors in ten seconds."""
    clock = iter((1.0, 1.0 + own))
    monkeypatch.setattr(system_load, "time", SimpleNamespace(process_time=lambda: next(clock)))
    monkeypatch.setattr(system_load, "Path", lambda _: tmp_path / "stat")
    tick = os.sysconf("SC_CLK_TCK")

    def stand(*seconds: float) -> None:
        words = " ".join(str(round(each * tick)) for each in seconds)
        (tmp_path / "stat").write_text(f"cpu  {words}\ncpu0 1 2 3\n")

    stand(100, 0, 50, 1000, 10, 0, 0, 5, 7, 0)
    load = OtherLoad()
    idle = 20 - user - stolen
    stand(100 + user, 0, 50, 1000 + idle / 2, 10 + idle / 2, 0, 0, 5 + stolen, 9, 0)
    assert load.share() == pytest.approx(others)


def test_the_share_of_this_machine_is_one() -> None:
    load = OtherLoad()
    until(lambda: load.share() is not None, "no tick of /proc/stat")
    share = load.share()
    assert share is not None and 0 <= share <= 1


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

    def test_what_is_disturbed_is_measured_again_and_the_rest_is_left_alone(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        import torch

        from gpuwatch.workloads import calibration
        from gpuwatch.workloads.calibration import Bench

        turns = iter([self.figure(2.0, 1.0), self.figure(3.0, 0.0)])
        monkeypatch.setattr(calibration, "_figure", lambda bench, name: next(turns))
        quiet = self.figure(1.0, 0.0)
        found = {"bandwidth": self.figure(1.0, 1.0), "float32": quiet}
        bench = Bench(torch.device("cpu"), calibration.QUICK)
        calibration.insist(bench, found, float("inf"), patient=False)
        assert found["bandwidth"] == self.figure(3.0, 0.0)
        assert found["float32"] is quiet and next(turns, None) is None

    def test_when_time_is_up_nothing_is_measured_again(self) -> None:
        import torch

        from gpuwatch.workloads.calibration import QUICK, Bench, insist

        found = {"bandwidth": self.figure(1.0, 1.0)}
        before = dict(found)
        insist(Bench(torch.device("cpu"), QUICK), found, time.perf_counter() + 0.5, patient=True)
        assert found == before, "a turn that took 1 s does not fit into half a second"
