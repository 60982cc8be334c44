"""The preset ``accelerator`` end to end on the CPU, beside the stand-in driver's H100."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from gpuwatch.analysis.study.read import read_study
from gpuwatch.core import units
from gpuwatch.report.document.blocks import Heading, Sentence, Table
from gpuwatch.report.document.devices import devices
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver

pytestmark = [pytest.mark.torch, pytest.mark.timeout(400)]

SMALLER = {
    r"^blocks = \d+\n": "",
    r"steps = \d+": "steps = 10, warmup = 1, profile = 0",
    r'size = "110m"': 'size = "260k"',
    r'size = "base"': 'size = "tiny"',
    r"batch_size = 32": "batch_size = 2, image_size = 64",
    r"batch_size = 16": "batch_size = 2",
}
"""What is changed in the preset: one run of each workload, of its smallest size."""


def test_each_of_the_five_has_its_figures_or_a_reason(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    text = cli("study", "--show", "accelerator").stdout
    for pattern, smaller in SMALLER.items():
        text, count = re.subn(pattern, smaller, text, flags=re.MULTILINE)
        assert count, pattern
    study, out = tmp_path / "smaller.toml", tmp_path / "out"
    study.write_text(text)
    cli.variables["OMP_NUM_THREADS"] = "1"
    cli("study", study, "--device", "cpu", "--out", out, timeout=350)
    (folder,) = out.iterdir()
    result = read_study(folder)
    assert [session.status.exit_code for session in result.sessions] == [0] * 5
    heading, grid, *sentences = devices(result).items
    assert isinstance(heading, Heading) and isinstance(grid, Table)
    used = {d.name for d in result.sessions[0].devices if d.kind == "cpu"}
    seen = {d.name for d in result.sessions[0].devices if d.kind == "gpu"}
    assert {heading.text} == used and seen, "the GPU is there, and no figure is its own"
    names = ("mnist-cnn", "sentiment-lstm", "transformer-lm", "torchvision:mobilenet_v2", "bert")
    assert tuple(row[0] for row in grid.rows) == names
    why = {column for each in sentences for column in _columns(each)}
    for row in grid.rows:
        known = dict(zip(grid.head, row, strict=True))
        for column in ("step time", "samples/s", "FLOP/s"):
            assert known[column] != units.UNKNOWN
        for column in ("MFU", "bandwidth", "J/sample"):
            assert known[column] == units.UNKNOWN and column in why
        assert known["bound by"] == "unknown" and "bound by" in why
    for session in result.sessions:
        with SessionReader(Path(session.path)) as reader:
            count = reader.meta()["count"]
        rate, speed = session.efficiency.flop_rate.value, session.steps.samples_per_second
        assert rate and speed
        assert rate / speed == pytest.approx(count["flop_per_step"] / count["samples"], rel=0.01)


def _columns(item: object) -> list[str]:
    return item.word.split(", ") if isinstance(item, Sentence) else []
