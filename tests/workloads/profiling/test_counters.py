"""The stage that starts ncu: when it cannot, what it starts, and what it leaves behind."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from gpuwatch.workloads.options import add_arguments
from gpuwatch.workloads.profiling import hardware_counters
from gpuwatch.workloads.profiling.hardware_counters import most_to_see
from gpuwatch.workloads.profiling.traces import Traced
from tests.waiting import until

from ..conftest import Report
from .test_ncu import HMMA, MEMORY, NONE, TENSOR, UNITS, listed, sass, wide

FAKE = """#!{python}
# Stands in for ncu: a GPU is needed for the real one. Checks how it is called, runs the program.
import os, subprocess, sys

arguments = sys.argv[1:]
if arguments == ["--version"]:
    print("NVIDIA (R) Nsight Compute Command Line Profiler\\nVersion 2025.1.1.0 (build 1)")
elif arguments == ["--query-metrics"]:
    print({query!r})
elif arguments == ["--help"]:
    print("  --cache-control arg (=all)\\n  --print-units arg (=auto)")
    print("  --filter-mode arg (=global): global, per-gpu, per-launch-config")
else:
    at = arguments.index(sys.executable)
    own, program = arguments[:at], arguments[at:]
    pairs = dict(zip(own[1::2], own[2::2]))
    assert own[0] == "--csv", own
    assert pairs["--page"] == "raw" and pairs["--profile-from-start"] == "off", own
    assert pairs["--cache-control"] == "none" and pairs["--print-units"] == "base", own
    assert "--clock-control" not in pairs, own
    if "--filter-mode" in pairs:
        assert pairs["--filter-mode"] == "per-launch-config", own
        print("==PROF== up to", pairs["--launch-count"], "of each")
    assert {tensor!r} in pairs["--metrics"].split(","), own
    assert os.environ["GPUWATCH_WORKLOAD_BRACKET"] == "1"
    done = subprocess.run(program)
    {behaviour}
"""


@pytest.fixture
def fake(tmp_path: Path) -> Callable[..., str]:
    def make(behaviour: str = "", query: str | None = None) -> str:
        tool = tmp_path / "ncu"
        names = listed(HMMA.removesuffix(".sum"), TENSOR.removesuffix(".sum"))
        tool.write_text(
            FAKE.format(
                python=sys.executable,
                query=names if query is None else query,
                tensor=HMMA,
                behaviour=behaviour,
            )
        )
        tool.chmod(0o755)
        return str(tool)

    return make


def under(tool: str, program: str = "print(':::GPUWATCH {}')") -> dict[str, Any]:
    return hardware_counters.under(tool, [sys.executable, "-c", program], 2)


def printing(text: str) -> str:
    return f"print({text!r})"


def test_the_counts_of_two_steps_are_told_per_step(fake: Callable[..., str]) -> None:
    values = {**NONE, **MEMORY, **sass("ffma", "500"), HMMA: "1", TENSOR: "2"}
    found = under(fake(printing(wide(UNITS, ("gemm", values), ("gemm", values)))))
    assert found["reason"] is None
    assert (found["tool"], found["version"], found["steps"]) == ("ncu", "2025.1.1.0", 2)
    assert found["flop_per_step"] == 2000
    assert found["dram_read_bytes_per_step"] == 1.5e6
    assert found["launches"] == 2
    (kernel,) = found["kernels"]
    assert (kernel["name"], kernel["launches"], kernel["flop"]) == ("gemm", 2, 4000)
    assert any("caches" in note for note in found["notes"])


GRID = (16384, 1, 1, 256, 1, 1)
"""Grid and block of all that :func:`wide` tells."""


def test_of_each_kind_of_kernel_some_are_counted_for_all(fake: Callable[..., str]) -> None:
    """Kernels that ncu and torch spell differently are told apart by their order."""
    add, gemm = {**NONE, **MEMORY, **sass("fadd", "7")}, {**NONE, **MEMORY, **sass("ffma", "500")}
    none = {HMMA: "0", TENSOR: "0"}
    seen = wide(UNITS, ("k<1, 0>(int)", add | none), ("gemm", gemm | none), ("k<0, 0>", none | add))
    step = [
        *[Traced("void k<true, false>(int)", GRID, 10)] * 3,
        *[Traced("gemm", GRID, 70)] * 2,
        Traced("void k<false, false>(int)", GRID, 10),
    ]
    found = hardware_counters.under(fake(printing(seen)), [sys.executable, "-c", "pass"], 1, step)
    assert (found["reason"], found["launches"]) == (None, 6)
    assert found["flop_per_step"] == 3 * 7 + 2 * 1000 + 7
    assert {kernel["name"]: kernel["launches"] for kernel in found["kernels"]} == {
        "gemm": 2, "k<1, 0>(int)": 3, "k<0, 0>": 1,
    }  # fmt: skip
    assert most_to_see(step) == 6, "the last kind is the sixth of its grid and block"


def test_what_ncu_did_not_see_is_told_and_no_sum_is_made(fake: Callable[..., str]) -> None:
    values = {**NONE, **MEMORY, HMMA: "0", TENSOR: "0"}
    step = [Traced("seen", GRID, 60), Traced("other_grid", (1, 1, 1, 64, 1, 1), 40)]
    found = hardware_counters.under(
        fake(printing(wide(UNITS, ("seen", values)))), [sys.executable, "-c", "pass"], 1, step
    )
    assert found["reason"] is None and found["flop_per_step"] is None
    assert found["notes"][0].startswith("not counted: kernels with 40.0% of the kernels' time")
    assert "other_grid" in found["notes"][0]


def test_an_ncu_over_its_limit_says_what_it_has_counted(
    fake: Callable[..., str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    values = {**NONE, **MEMORY, HMMA: "0", TENSOR: "0"}
    behaviour = "import signal, time\n    signal.signal(signal.SIGINT, lambda *_: ("
    behaviour += f"{printing(wide(UNITS, ('seen', values)))}, sys.exit(1)))\n    time.sleep(300)"
    monkeypatch.setattr(hardware_counters, "LIMIT_SECONDS", 3.0)
    monkeypatch.setattr(hardware_counters, "PROGRESS_SECONDS", 0.2)
    step = [Traced("seen", GRID, 60), Traced("late", GRID, 40)]
    found = hardware_counters.under(fake(behaviour), [sys.executable, "-c", "pass"], 1, step)
    assert found["notes"][0].startswith("ncu was ended after 3 s; not counted: kernels with 40.0%")
    assert [kernel["name"] for kernel in found["kernels"]] == ["seen"]
    assert "counting with ncu: " in capfd.readouterr().out


PERMISSION = (
    "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU "
    "Performance Counters on the target device 0."
)


@pytest.mark.parametrize("when", ["asked", "counting"])
def test_a_missing_permission_is_told_with_both_mends(fake: Callable[..., str], when: str) -> None:
    tool = fake(query=PERMISSION) if when == "asked" else fake(printing(PERMISSION))
    found = under(tool)
    assert found["flop_per_step"] is None and found["kernels"] == []
    assert "NVreg_RestrictProfilingToAdminUsers=0" in found["reason"]
    assert "SYS_ADMIN" in found["reason"]


@pytest.mark.parametrize(
    ("program", "behaviour", "told"),
    [
        ("raise SystemExit('no such file')", "sys.exit(done.returncode)", "ended with code 1: no"),
        (
            """print(':::GPUWATCH {"event": "error", "message": "out of memory"}')""",
            "sys.exit(1)",
            "the workload failed under ncu: out of memory",
        ),
        ("pass", "print('==ERROR== The application ended')", "ncu: The application ended"),
        ("pass", "print('==WARNING== No kernels were profiled.')", "ncu saw no kernel"),
    ],
)
def test_whatever_fails_below_is_the_reason(
    fake: Callable[..., str], program: str, behaviour: str, told: str
) -> None:
    found = under(fake(behaviour), program)
    assert told in found["reason"]
    assert found["flop_per_step"] is None


def test_nothing_lives_on_behind_a_command_that_takes_too_long(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    file.touch()
    command, seconds = ["sh", "-c", f"sleep 300 & echo $! > {file}; wait"], 0.5
    while not file.read_text():  # on a busy machine it may not have come that far
        assert hardware_counters.run(command, seconds).code is None
        seconds *= 2
    # Killed is not yet gone: the kernel takes its time on a busy machine.
    until(lambda: not _lives(int(file.read_text())), "it lives on")


def _lives(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not state.startswith(("Z", "X"))


def test_the_cpu_and_a_missing_ncu_are_reasons() -> None:
    assert "the run was on the CPU" in (hardware_counters.refusal("cpu", "/usr/bin/ncu") or "")
    assert "not installed" in (hardware_counters.refusal("cuda", None) or "")
    assert hardware_counters.refusal("cuda", "/usr/bin/ncu") is None


def test_ncu_is_found_on_the_path_else_the_newest_that_nvidia_installed(
    fake: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = fake()
    assert hardware_counters.find({"PATH": f"/nowhere:{tmp_path}"}) == tool
    for version in ("2024.3.2", "2025.1.1", "2025.10.0"):
        (tmp_path / "opt" / version).mkdir(parents=True)
        (tmp_path / "opt" / version / "ncu").write_text("")
        (tmp_path / "opt" / version / "ncu").chmod(0o755)
    monkeypatch.setattr(hardware_counters, "_FOLDERS", (str(tmp_path / "no"), f"{tmp_path}/opt/*"))
    assert hardware_counters.find({"PATH": "/nowhere"}) == f"{tmp_path}/opt/2025.10.0/ncu"
    monkeypatch.setattr(hardware_counters, "_FOLDERS", ())
    assert hardware_counters.find({"PATH": "/nowhere"}) is None


def test_the_run_is_repeated_with_its_own_flags_and_few_steps() -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser.add_argument)
    given = "--batch-size 32 --epochs 9 --dtype bfloat16 --data d --download --counters --seed 3"
    again = parser.parse_args(hardware_counters.arguments(parser.parse_args(given.split()), 2))
    kept = {"batch_size": 32, "dtype": "bfloat16", "data": "d", "seed": 3}
    changed = {"steps": 2, "warmup": 1, "epochs": None, "download": False, "counters": False}
    for name, value in {**kept, **changed, "profile": 0}.items():
        assert getattr(again, name) == value, name


def test_a_run_on_a_gpu_is_repeated_under_the_ncu_that_is_found(
    fake: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parser = argparse.ArgumentParser()
    add_arguments(parser.add_argument)
    flags = parser.parse_args(["--lr", "0.5", "--counters"])
    flags.workload = "mnist-cnn"
    program = tmp_path / "workloads.py"
    wanted = ["mnist-cnn", "--steps", "1", "--warmup", "1", "--lr", "0.5", "--profile", "0"]
    program.write_text(f"import sys\nassert sys.argv[1:] == {wanted}, sys.argv")
    values = {**NONE, **MEMORY, **sass("fadd", "7"), HMMA: "0", TENSOR: "0"}
    fake(printing(wide(UNITS, ("add", values))) + "\n    sys.exit(done.returncode)")
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    found = hardware_counters.count_executed(flags, "cuda", 2.0)
    assert (found["reason"], found["steps"], found["flop_per_step"]) == (None, 1, 7)


def test_an_ncu_that_cannot_be_executed_is_a_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ncu").write_bytes(b"\x7fELF for another machine")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = hardware_counters.count_executed(argparse.Namespace(workload="gcn"), "cuda", 0.1)
    assert "ncu failed: OSError" in found["reason"]


def test_counters_of_a_run_on_the_cpu_are_a_reason_and_the_run_is_done(
    fork_workload: Callable[..., Report],
) -> None:
    done = fork_workload("gcn", "--steps", 2, "--counters", "--profile", 0)
    assert done.code == 0, done.stderr
    assert [event["event"] for event in done.events][-2:] == ["end", "counters"]
    assert "on the CPU" in done.one("counters")["reason"]
    assert done.one("counters")["flop_per_step"] is None
