"""CUDA's stub of the driver's library, found first, is not loaded."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.fake_nvml import FakeDriver

STUB = """
#include <stdio.h>
__attribute__((constructor)) static void warn(void) { puts("WARNING: this is a stub"); }
int nvmlInitWithFlags(unsigned flags) { return 12; }
"""


@pytest.fixture
def stub(tmp_path: Path) -> Path:
    """The folder with the stub."""
    folder = tmp_path / "cuda/lib64/stubs"
    folder.mkdir(parents=True)
    source = tmp_path / "stub.c"
    source.write_text(STUB)
    library = folder / "libnvidia-ml.so.1"
    soname = "-Wl,-soname,libnvidia-ml.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", soname, "-o", library, source], check=True)
    return folder


def test_the_drivers_library_is_used_in_place_of_the_stub_and_both_are_named(
    cli: Cli, driver: FakeDriver, stub: Path, tmp_path: Path
) -> None:
    real = Path(driver.variables["LD_LIBRARY_PATH"].split(":")[0])
    cli.variables["LD_LIBRARY_PATH"] = f"{stub}:{real}"
    found = json.loads(cli("doctor", "--quick", "--format", "json", code=None).stdout)
    assert [gpu["id"] for gpu in found["gpus"]] == ["gpu0"]
    told = cli("--record", "--duration", "1s", "--out", tmp_path / "out").stderr
    assert f"{stub}/libnvidia-ml.so.1 on LD_LIBRARY_PATH is CUDA's stub" in told
    assert f"{real}/libnvidia-ml.so.1 is used instead" in told


def test_a_stub_alone_is_named_with_what_to_do(cli: Cli, stub: Path) -> None:
    cli.variables["LD_LIBRARY_PATH"] = str(stub)
    found = json.loads(cli("doctor", "--quick", "--format", "json", code=None).stdout)
    why = found["gpu_unavailable"]
    assert f"{stub}/libnvidia-ml.so.1, which is found first, is CUDA's stub" in why["text"]
    assert f"take {stub} out of LD_LIBRARY_PATH" in why["hint"]
