"""Measured ceilings of the CPU: against a C program's copy and the BLAS library called from C."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from .conftest import Report

pytestmark = pytest.mark.torch

WITHIN = 0.10
ROUNDS = 8
"""Both tools take turns: other load slows the one or the other, and the best of each is left."""

THREADS = "1"
"""What the memory gives several cores at once depends on what else the machine does just then."""

NAMES = ["bandwidth", "float32", "float64", "bfloat16"]


@dataclass
class Turns:
    """Rates by tool, one for each turn."""

    ours: list[float] = field(default_factory=list)
    theirs: list[float] = field(default_factory=list)

    @property
    def apart(self) -> float:
        return max(self.ours) / max(self.theirs) - 1


def ceiling(report: Report, name: str) -> dict[str, Any]:
    (found,) = (event for event in report.all("ceiling") if event["name"] == name)
    return found


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1])


@pytest.fixture(scope="module")
def independent(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., float]:
    """FLOP/s or By/s by a C program; skips where it cannot be had."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    program = tmp_path_factory.mktemp("independent") / "independent"
    source = Path(__file__).with_name("independent.c")
    # STREAM's loop as it stands: made into a memcpy, it would write around the caches.
    flags = ["-O3", "-fopenmp", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra"]
    subprocess.run([compiler, *flags, "-o", program, source, "-ldl"], check=True)

    def rate(*arguments: object) -> float:
        done = subprocess.run(
            [program, *map(str, arguments)],
            capture_output=True,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": THREADS},
        )
        if done.returncode == 3:
            pytest.skip(f"torch's library gives no sgemm_ to call: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        return float(done.stdout)

    return rate


@pytest.mark.alone
def test_ceilings_of_the_cpu_are_within_ten_per_cent_of_stream_and_of_blas_called_from_c(
    run_workload: Callable[..., Report], independent: Callable[..., float]
) -> None:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    library = Path(spec.origin).parent / "lib" / "libtorch_cpu.so"
    turns = {"bandwidth": Turns(), "float32": Turns()}
    for _ in range(ROUNDS):
        told = run_workload("--calibrate", "--device", "cpu", "--quick", OMP_NUM_THREADS=THREADS)
        copied, multiplied = ceiling(told, "bandwidth"), ceiling(told, "float32")
        size = number(r"copy of (\d+) MiB", copied["how"]) << 20
        n = number(r"^(\d+) x ", multiplied["how"])
        turns["bandwidth"].ours.append(copied["value"])
        turns["bandwidth"].theirs.append(independent("copy", size))
        turns["float32"].ours.append(multiplied["value"])
        turns["float32"].theirs.append(independent("sgemm", n, library))
        if all(abs(each.apart) <= WITHIN for each in turns.values()):
            break
    for name, each in turns.items():
        assert abs(each.apart) <= WITHIN, (name, each)


def test_every_ceiling_of_the_cpu_says_how_it_was_measured(
    fork_workload: Callable[..., Report],
) -> None:
    told = fork_workload("--calibrate", "--device", "cpu", "--quick")
    assert told.code == 0, told.stderr
    of = told.one("calibration")
    assert of["device"] == "cpu" and of["device_name"] and of["versions"]["torch"]
    assert of["threads"] == 1 and told.one("calibrated")["seconds"] > 0
    assert [each["name"] for each in told.all("ceiling")] == NAMES
    for each in told.all("ceiling"):
        assert each["reason"] is None and each["value"] > 0 and each["spread"] >= 0, each
        assert each["unit"] == ("By/s" if each["name"] == "bandwidth" else "FLOP/s")
        assert "1 thread" in each["how"] and "1 threads" not in each["how"]
        assert 0 <= each["others"] <= 1


@pytest.mark.parametrize(
    ("device", "code", "says"), [("cuda", 3, "--device cpu"), ("tpu", 2, "cuda:INDEX")]
)
def test_a_device_that_is_not_there_is_told_in_one_line(
    run_workload: Callable[..., Report], device: str, code: int, says: str
) -> None:
    told = run_workload("--calibrate", "--device", device)
    assert told.code == code
    assert says in told.one("error")["hint"] and len(told.stderr.splitlines()) == 1
    assert told.all("ceiling") == []
