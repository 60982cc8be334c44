"""The preset ``accelerator`` end to end on the CPU, bare and in containers, beside the stand-in
driver's H100."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from gpuwatch.analysis.study.cost import Price, with_costs
from gpuwatch.analysis.study.read import read_study
from gpuwatch.core import units
from gpuwatch.report.document.blocks import Heading, Sentence, Table
from gpuwatch.report.document.devices import devices
from gpuwatch.session.reading.reader import SessionReader
from tests.conftest import Cli
from tests.fake_nvml import FakeDriver, uuid

pytestmark = [pytest.mark.torch, pytest.mark.timeout(400)]

ALL = {
    r"^blocks = \d+\n": "",
    r'size = "base"': 'size = "tiny"',
    r"(net.*)batch_size = \d+": r"\1batch_size = 2, image_size = 64",
    r"batch_size = \d\d+": "batch_size = 2",
}
TEN = {r"^blocks = \d+\n": "", r"steps = \d+": "steps = 10\nwarmup = 1\nprofile = 0"}
SMALLER = {
    "accelerator": ALL
    | {r"steps = \d+": "steps = 10, warmup = 1, profile = 0", r'size = "110m"': 'size = "260k"'},
    "precision": ALL | TEN,
    "attention": TEN
    | {r"batch_size = 4": "batch_size = 1", r'\[\[part\]\]\nname = "2,(.|\n)*': ""},
    "compile": TEN | {r'    \{ name = "(bert|resnet50)".*\n': "", ', "reduce-.*': "]"},
    "ddp-scaling": {
        **ALL,
        r"steps = \d+": "steps = 10\nwarmup = 1",
        r'    \{ name = "resnet50".*\n': "",
        r"1, 2, 4, 8": "1, 2",
    },
}
"""What is changed in each preset."""


def smaller(cli: Cli, preset: str) -> str:
    """A preset with one run of each workload, of its smallest size."""
    text = cli.read("study", "--show", preset).stdout
    for pattern, instead in SMALLER[preset].items():
        text, count = re.subn(pattern, instead, text, flags=re.MULTILINE)
        assert count, pattern
    return text


IMAGES = [
    "bare",
    pytest.param("docker", marks=pytest.mark.docker),
    pytest.param("apptainer", marks=pytest.mark.apptainer),
]


@pytest.fixture(params=IMAGES)
def environment(request: pytest.FixtureRequest) -> str:
    """Where the runs are: here, or in a container with torch."""
    kind: str = request.param
    if kind == "bare":
        return kind
    image = request.getfixturevalue("torch_image" if kind == "docker" else "torch_root")
    return f"{kind}={image}"


def test_each_of_the_five_has_its_figures_or_a_reason(
    cli: Cli, driver: FakeDriver, tmp_path: Path, environment: str
) -> None:
    study, out = tmp_path / "smaller.toml", tmp_path / "out"
    study.write_text(smaller(cli, "accelerator"))
    cli.variables["OMP_NUM_THREADS"] = "1"
    cli("study", study, "--device", "cpu", "--env", environment, "--out", out, timeout=350)
    (folder,) = out.iterdir()
    result = read_study(folder)
    assert [session.status.exit_code for session in result.sessions] == [0] * 5
    kinds = {session.environment["kind"] for session in result.sessions}
    assert kinds == {environment.partition("=")[0]}
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
        for column in ("median step", "throughput", "FLOP/s"):
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


PROGRAM = """
import json, os, shutil, sys, time
def say(**told):
    print(":::GPUWATCH", json.dumps(told), flush=True)
folder, name = {folder!r}, sys.argv[1]
shutil.copy(os.path.join(folder, name), os.environ["FAKE_NVML_STATE"] + ".next")
os.replace(os.environ["FAKE_NVML_STATE"] + ".next", os.environ["FAKE_NVML_STATE"])
told = json.load(open(os.path.join(folder, name + ".json")))
say(event="started", monotonic_ns=time.monotonic_ns())
say(event="run", workload=name, device="cuda", **told["run"])
say(event="count", method="made", **told["count"])
if told["generation"]:
    say(event="generation", **told["generation"])
end, warm = time.monotonic_ns(), False
for step in [*range(1, 11), *range(1, 31)]:
    end += {step_ns}
    time.sleep(max(0, end - time.monotonic_ns()) / 1e9)
    say(event="step", step=step, seconds={step_ns} / 1e9, monotonic_ns=end, warmup=not warm,
        samples=told["count"]["samples"], phases=told["phases"])
    warm |= step == 10
say(event="end", steps=30)
"""
"""In place of a workload: puts the driver in the state that it would have under that one's load."""

STEP = 0.05
PEAKS = {"float32": 66.9e12, "bfloat16": 989e12}
"""FLOP/s of an H100 SXM, by its data sheet."""
MADE = {
    # data type, samples and FLOP of a step, share of the bandwidth, of time with kernels; the bound
    "mnist-cnn": ("float32", 64, 4.6e9, 0.02, 0.30, "host"),
    "sentiment-lstm": ("float32", 32, 2e9, 0.04, 0.95, "neither"),
    "transformer-lm": ("bfloat16", 1, 3e11, 0.62, 0.99, "memory"),
    "torchvision:mobilenet_v2": ("float32", 32, 6e10, 0.71, 0.97, "memory"),
    "bert": ("bfloat16", 16, 2.72e13, 0.30, 0.99, "compute"),
}
GENERATION = {
    "sequences": 1, "prompt_tokens": 192, "new_tokens": 64, "kv_cache_bytes": 1e7,
    "flop_prefill": 2e11, "bytes_prefill": 1e9, "flop_decode": 1e11, "bytes_decode": 8e10,
}  # fmt: skip
POWER = 251.0
PRICE = 3.6


def test_on_an_h100_the_five_span_the_roofline_and_each_sample_has_its_price(
    cli: Cli, driver: FakeDriver, tmp_path: Path
) -> None:
    driver.set_machine(driver="580.65.06", cuda=13000)
    for name, (dtype, samples, flop, bandwidth, busy, _) in MADE.items():
        driver.gpm({2: 100 * busy, 10: 100 * bandwidth})
        driver.set(utilization=round(100 * busy), power=round(POWER * 1e3))
        shutil.copy(driver.variables["FAKE_NVML_STATE"], tmp_path / name)
        generates = name == "transformer-lm"
        told = {
            "run": {"dtype": dtype, "device_uuid": [uuid(0)], "model": "made"},
            "count": {"flop_per_step": flop, "bytes_per_step": flop / 10, "samples": samples},
            "phases": {"prefill": 0.01, "decode": 0.04} if generates else {"forward": STEP},
            "generation": GENERATION if generates else None,
        }
        (tmp_path / f"{name}.json").write_text(json.dumps(told))
    program, python = tmp_path / "program.py", tmp_path / "python"
    program.write_text(PROGRAM.format(folder=str(tmp_path), step_ns=round(STEP * 1e9)))
    python.write_text(
        f'#!/bin/sh\ncase "$1" in *.pyz) shift; set -- {program} "$@";; esac\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    out, environment = tmp_path / "out", f"bare,python={python}"
    study = tmp_path / "once.toml"
    study.write_text(cli.read("study", "--show", "accelerator").stdout.replace("blocks = 5", ""))
    cli("study", study, "--interval", "0.1", "--env", environment, "--out", out)
    (folder,) = out.iterdir()
    result = read_study(folder)
    paths = frozenset(os.path.realpath(session.path) for session in result.sessions)
    heading, grid, *_ = devices(with_costs(result, [Price(PRICE, paths)])).items
    assert isinstance(heading, Heading) and "H100" in heading.text
    assert isinstance(grid, Table) and tuple(row[0] for row in grid.rows) == tuple(MADE)
    for row, session, made in zip(grid.rows, result.sessions, MADE.values(), strict=True):
        dtype, samples, flop, bandwidth, _, bound = made
        of, rate = session.efficiency, session.steps.samples_per_second
        expected = {
            "throughput": (rate, samples / STEP, "{sample}/s"),
            "FLOP/s": (of.flop_rate.value, flop / STEP, "FLOP/s"),
            "MFU": (of.mfu.value, flop / STEP / PEAKS[dtype], "1"),
            "bandwidth": (of.bandwidth_shares[0].value, bandwidth, "1"),
            "J/sample": (of.energy.gpu_per_sample.value, POWER * STEP / samples, "J"),
        }
        known = dict(zip(grid.head, row, strict=True))
        for name, (found, right, unit) in expected.items():
            assert found == pytest.approx(right, rel=0.05), name
            assert known[name] == units.quantity(found, unit)
        cost = PRICE / 3600 * 1e6 * STEP / samples
        assert float(known["EUR/million"]) == pytest.approx(cost, rel=0.01)
        assert known["bound by"] == bound
    generation = result.sessions[2].generation
    assert generation is not None and len(generation.rooflines) == 2


def _columns(item: object) -> list[str]:
    return item.word.split(", ") if isinstance(item, Sentence) else []
