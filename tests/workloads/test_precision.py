"""The preset ``precision`` end to end on the CPU, which has two of its four data types."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.workloads.test_accelerator import smaller

pytestmark = [pytest.mark.torch, pytest.mark.timeout(400)]


def test_what_a_cpu_lacks_is_a_row_with_its_reason_and_the_rest_is_compared(
    cli: Cli, tmp_path: Path
) -> None:
    study, out = tmp_path / "smaller.toml", tmp_path / "out"
    study.write_text(smaller(cli, "precision"))
    cli.variables["OMP_NUM_THREADS"] = "1"
    lacks = "tf32: tf32 is a format of NVIDIA's tensor cores, not of a CPU; float16: float16"
    done = cli("study", study, "--device", "cpu", "--out", out, code=3, timeout=350)
    told = " ".join(done.stdout.split())
    for workload in ("bert", "resnet50"):
        assert f"sweep {workload} in bare: dtype " in told
        assert f"{workload}, dtype tf32 in bare" in told
    assert told.count(lacks) == 2 and told.count("is best") == 2
    (folder,) = out.iterdir()
    assert len([*folder.glob("*.gpuwatch")]) == 4
