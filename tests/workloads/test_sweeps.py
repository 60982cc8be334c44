"""The presets that sweep a parameter, end to end on the CPU."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuwatch.analysis.results import StudyResult
from gpuwatch.analysis.study.read import read_study
from gpuwatch.core.models import mapping
from tests.conftest import Cli
from tests.workloads.test_accelerator import smaller

pytestmark = [pytest.mark.torch, pytest.mark.timeout(1000)]


def run(cli: Cli, folder: Path, preset: str, *flags: str, code: int = 0) -> tuple[str, StudyResult]:
    """What a preset with small models prints, and what came out."""
    study, out = folder / "smaller.toml", folder / "out"
    study.write_text(smaller(cli, preset))
    cli.variables["OMP_NUM_THREADS"] = "1"
    given = ("--device", "cpu", "--out", out, "--cool-down", "0", *flags)
    done = cli("study", study, *given, code=code, timeout=900)
    (found,) = out.iterdir()
    return " ".join(done.stdout.split()), read_study(found)


def test_what_a_cpu_lacks_is_a_row_with_its_reason_and_the_rest_is_compared(
    cli: Cli, tmp_path: Path
) -> None:
    lacks = "tf32: tf32 is a format of NVIDIA's tensor cores, not of a CPU; float16: float16"
    told, result = run(cli, tmp_path, "precision", code=3)
    for workload in ("bert", "resnet50"):
        assert f"sweep {workload} in bare: dtype " in told
        assert f"{workload}, dtype tf32 in bare" in told
    assert told.count(lacks) == 2 and told.count("is best") == 2
    assert len(result.sessions) == 4


def test_ways_of_attention_that_a_cpu_lacks_are_rows_beside_the_two_that_it_has(
    cli: Cli, tmp_path: Path
) -> None:
    told, result = run(cli, tmp_path, "attention", code=3)
    (sweep,) = result.sweeps
    assert [point.step_seconds is not None for point in sweep.points] == [True, True, False, False]
    for way, point in zip(("efficient", "cudnn"), sweep.points[2:], strict=True):
        assert f"{way}: torch has no --attention {way} on a CPU" in told and point.why
    assert len(result.sessions) == 2


def test_compiled_steps_are_compared_with_eager_ones(cli: Cli, tmp_path: Path) -> None:
    _, result = run(cli, tmp_path, "compile")
    modes = [mapping(session.run["parameters"]).get("compile") for session in result.sessions]
    assert modes == [None, "default"] and result.sweeps[0].best is not None
    assert result.sessions[0].count["flop_per_step"] == result.sessions[1].count["flop_per_step"]


def test_ranks_have_their_efficiency_with_its_interval(cli: Cli, tmp_path: Path) -> None:
    told, result = run(cli, tmp_path, "ddp-scaling", "--blocks", "3")
    alone, two = (point.efficiency for point in result.sweeps[0].points)
    assert alone is None and two is not None and 0 < two.low < two.estimate < two.high
    assert "with 2 each has" in told and "of its throughput alone" in told
