"""The CPU's ceilings as `gpuwatch calibrate` measures them, beside a program in C.

    python benchmarks/ceilings.py [--rounds 8]

A copy beside STREAM's loop, and a float32 product beside ``sgemm_`` of torch's own library called
from C (``ceilings.c``), on one core: what the memory gives several at once depends on what else the
machine does just then. Both take turns, since other load slows the one or the other, and the best
of each is left. Exit code 1 where they are more than a tenth apart. Needs a C compiler.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from gpuwatch.workloads.archive import build
from gpuwatch.workloads.lines import PREFIX

APART = 0.1
ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}


def compiled(folder: Path) -> Path:
    """The program in C."""
    source = Path(__file__).with_suffix(".c")
    # STREAM's loop as it stands: made into a memcpy, it would write around the caches.
    flags = ["-O3", "-fopenmp", "-fno-tree-loop-distribute-patterns", "-Wall", "-Wextra"]
    subprocess.run(["cc", *flags, "-o", folder / "ceilings", source, "-ldl"], check=True)
    return folder / "ceilings"


def printed(*command: object) -> str:
    words = [str(word) for word in command]
    return subprocess.run(
        words, stdout=subprocess.PIPE, text=True, env=ONE_THREAD, check=True
    ).stdout


def calibrated(archive: Path) -> dict[str, Any]:
    """The ceilings by name."""
    lines = printed(
        *(sys.executable, archive, "--calibrate", "--device", "cpu", "--quick")
    ).splitlines()
    told = [json.loads(line[len(PREFIX) :]) for line in lines if line.startswith(PREFIX)]
    return {each["name"]: each for each in told if each["event"] == "ceiling"}


def number(pattern: str, text: str) -> int:
    found = re.search(pattern, text)
    assert found, text
    return int(found[1])


def torchs_library() -> Path:
    spec = importlib.util.find_spec("torch")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "lib" / "libtorch_cpu.so"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    rounds = parser.parse_args().rounds
    ours: dict[str, list[float]] = {"bandwidth": [], "float32": []}
    theirs: dict[str, list[float]] = {"bandwidth": [], "float32": []}
    with tempfile.TemporaryDirectory() as temporary:
        program, archive = compiled(Path(temporary)), Path(temporary, "workloads.pyz")
        build(archive)
        for _ in range(rounds):
            found = calibrated(archive)
            for name, rates in ours.items():
                rates.append(found[name]["value"])
            size = number(r"copy of (\d+) MiB", found["bandwidth"]["how"]) << 20
            side = number(r"^(\d+) x ", found["float32"]["how"])
            theirs["bandwidth"].append(float(printed(program, "copy", size)))
            theirs["float32"].append(float(printed(program, "sgemm", side, torchs_library())))
    print("| ceiling | calibrate | in C | ratio |\n| --- | --- | --- | --- |")
    apart = 0.0
    for name, rates in ours.items():
        mine, other = max(rates), max(theirs[name])
        print(f"| {name} | {mine:.3g} | {other:.3g} | {mine / other:.3f} |")
        apart = max(apart, abs(mine / other - 1))
    return int(apart > APART)


if __name__ == "__main__":
    sys.exit(main())
