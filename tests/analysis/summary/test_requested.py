"""What a run used of what its job gave it, as `gpuwatch show` says."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.conftest import Cli

JOB = {
    "SLURM_JOB_ID": "7",
    "SLURM_CPUS_ON_NODE": "16",
    "SLURM_MEM_PER_NODE": "65536",
    "GPUWATCH_TIME_LIMIT": "1-02:00:00",
}


def shown(cli: Cli, tmp_path: Path, variables: dict[str, str]) -> str:
    cli.variables |= variables
    program = "import time; x = bytearray(300 << 20); time.sleep(1)"
    out = tmp_path / "out"
    cli(
        "--record",
        "--quiet",
        "--interval",
        "0.1",
        "--out",
        out,
        "--",
        sys.executable,
        "-c",
        program,
    )
    return " ".join(cli.read("show", out).stdout.split())


def test_what_a_job_was_given_stands_beside_what_the_run_used(cli: Cli, tmp_path: Path) -> None:
    told = shown(cli, tmp_path, JOB)
    found = re.search(
        r"used: ([\d.]+) of 16 cores, on average; (\d+) MiB of 64.0 GiB "
        r"host memory, highest sample; (\d+):(\d+) of 1d 02:00 time",
        told,
    )
    assert found, told
    assert 0 < float(found[1]) < 16 and int(found[2]) >= 300 and int(found[4]) >= 1


@pytest.mark.parametrize(
    ("variables", "expected", "not_told"),
    [
        ({**JOB, "GPUWATCH_TIME_LIMIT": "UNLIMITED"}, "16 cores", "time"),
        ({**JOB, "SLURM_MEM_PER_NODE": "0"}, "16 cores", "memory"),
        (
            {"SLURM_JOB_ID": "7", "SLURM_CPUS_ON_NODE": "2", "SLURM_MEM_PER_CPU": "1024"},
            "2.00 GiB host memory",
            "time",
        ),
    ],
)
def test_what_was_not_limited_is_left_out(
    cli: Cli, tmp_path: Path, variables: dict[str, str], expected: str, not_told: str
) -> None:
    line = shown(cli, tmp_path, variables).partition("used: ")[2].partition(" note:")[0]
    assert expected in line and not_told not in line.partition("all figures")[0]
