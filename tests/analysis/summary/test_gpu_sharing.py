"""A GPU that pods share, or that is a part of one: told wherever a run's figures are shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.analysis.sessions import CPU, Make, record, summary
from tests.tui.snapshots_of import snapshot_of

HOW = "time-slicing, up to 4 pods on a GPU"
TOLD = (
    f"pods share the run's GPU ({HOW}): its time is other pods' too, and its metrics cover all of "
    "them"
)


def test_pods_on_the_gpu_are_told_in_notes_and_on_the_screen(tmp_path: Path) -> None:
    host = {"job.gpu.shared": HOW}
    assert TOLD in summary(tmp_path / "a.gpuwatch", host=host).notes
    assert TOLD in snapshot_of(record(tmp_path / "b.gpuwatch", host=host)).warnings


@pytest.mark.parametrize("told", [{}, {"job.gpu.shared": "no"}])
def test_a_gpu_of_one_pod_has_no_note(make: Make, told: dict[str, str]) -> None:
    notes = make(host=told).notes
    assert not [note for note in notes if "pods share" in note]


def test_a_run_without_a_gpu_has_no_note(tmp_path: Path) -> None:
    host = {"job.gpu.shared": HOW}
    path, run = tmp_path / "a.gpuwatch", {"device": "cpu"}
    assert TOLD not in summary(path, host=host, devices=(CPU,), run=run).notes


def test_a_part_of_a_gpu_names_the_gpu(make: Make) -> None:
    notes = make(host={"gpu0.mig.parent": "GPU-00000001-1111"}).notes
    (note,) = [note for note in notes if "MIG device" in note]
    assert note.startswith("gpu0 is a MIG device, a part of GPU-00000001: ")
