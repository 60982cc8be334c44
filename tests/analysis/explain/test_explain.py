"""Changes associated with a verdict: figures worked out by hand, down the ladder."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.explain.explain import explain
from gpuwatch.analysis.hardware.kernels import OTHER, family
from gpuwatch.analysis.hardware.profile import KERNELS
from gpuwatch.analysis.results import Cell, Evidence, Explanation
from gpuwatch.analysis.statistics.intervals import Interval, interval
from gpuwatch.analysis.summary.summary import Summary, Timing, summarise
from gpuwatch.cli import main
from gpuwatch.core.metrics import Method
from gpuwatch.profiles.base import DERIVED
from gpuwatch.session.reading.reader import SessionReader
from gpuwatch.session.reading.status import State
from tests.profiles.printed import Counted, dram, nvprof_metrics_text

from .. import sessions
from ..cells import cell, profile
from ..sessions import Make

MARGIN = 0.01
BLOCKS = 7
DRIFT = [1.0, 1.01, 1.02, 1.0, 0.99, 1.03, 1.0]
"""What both runs of a block share."""
NOISE = [0.0, 0.001, -0.001, 0.002, -0.002, 0.001, -0.001]
"""Of the other's step, as a share; adds up to 0."""

PROFILES = Path(__file__).parents[2] / "data" / "profiles"


def compared(bare: Sequence[Summary], docker: Sequence[Summary]) -> Explanation:
    return explain(cell("bare", bare), cell("docker", docker), MARGIN)


def of(explanation: Explanation, rung: str) -> list[Evidence]:
    return [each for each in explanation.evidence if each.rung == rung]


def text(explanation: Explanation, rung: str) -> str:
    return "; ".join(each.text for each in of(explanation, rung))


def points(evidence: Evidence) -> Interval:
    assert evidence.points is not None
    return evidence.points


def gpu(make: Make, step: float, kernels: float, copies: float, **more: Any) -> Summary:
    """A run whose profile knows kernels and copies; the rest of the step is the host's."""
    return make(
        step_seconds=step,
        extra={"profile": profile({"sgemm": kernels}, copies), **more.pop("extra", {})},
        **more,
    )


def gpu_cells(make: Make, blocks: int = BLOCKS) -> tuple[Cell, Cell]:
    """Kernels 0.30 s of 0.50 s on both sides, copies 0.10 and 0.105 s; the other waits 0.02 s
    more: 5 points of the step, of which copies are 1 and the host 4."""
    bare, docker = [], []
    for drift, noise in list(zip(DRIFT, NOISE, strict=True))[:blocks]:
        bare.append(gpu(make, 0.50 * drift, 0.30 * drift, 0.10 * drift))
        step = (0.525 + 0.50 * noise) * drift
        docker.append(gpu(make, step, 0.30 * drift, 0.105 * drift))
    return cell("bare", bare), cell("docker", docker)


def test_the_hosts_wait_takes_what_kernels_and_copies_leave(make: Make) -> None:
    host, copies, kernels = explain(*gpu_cells(make), MARGIN).evidence[:3]
    assert [each.rung for each in (host, copies, kernels)] == ["host", "copies", "kernel time"]
    assert host.part == "host wait"
    estimates = [points(each).estimate for each in (host, copies, kernels)]
    assert estimates == pytest.approx([0.04, 0.01, 0.0], abs=1e-5)
    assert points(kernels).estimate == pytest.approx(0.0, abs=1e-9)
    # Deviation of NOISE: sqrt(12e-6 / 6); t of 6 degrees of freedom at 97.5 %: 2.4469.
    half = 2.4469 * (12e-6 / 6) ** 0.5 / 7**0.5
    assert (points(host).low, points(host).high) == pytest.approx(
        (0.04 - half, 0.04 + half), abs=5e-5
    )
    assert host.text == (
        "host wait (step time minus kernels and copies) 101 ms a step in bare, 121 ms in docker: "
        "accounts for +4.0 of +5.0 points (+3.9 to +4.1)"
    )
    assert kernels.text.startswith(
        "GPU kernel time (under the profiler) unchanged: 302 ms a step in bare"
    )
    assert kernels.method is Method.MEASURED
    assert "profile" in kernels.source


def test_the_parts_of_a_step_add_up_to_the_verdicts_change(make: Make) -> None:
    bare, docker = gpu_cells(make)
    ratios = [
        math.log(other.value / base.value)
        for base, other in zip(bare.runs, docker.runs, strict=True)
        if base.value and other.value
    ]
    change = interval(ratios)
    assert change is not None
    parts = [each.points for each in explain(bare, docker, MARGIN).evidence if each.points]
    assert sum(each.estimate for each in parts) == pytest.approx(change.estimate)


def test_what_the_place_in_the_block_does_is_in_the_points_no_more_than_in_the_verdict(
    make: Make,
) -> None:
    later = (1, -1, 1, 1, -1, 1, 1)  # who runs second is 4 % slower, in the host's part
    bare = [gpu(make, 0.50 * (1.04 if each < 0 else 1.0), 0.30, 0.10) for each in later]
    docker = [gpu(make, 0.52 * (1.04 if each > 0 else 1.0), 0.30, 0.10) for each in later]
    places = {run.path: int(each < 0) for run, each in zip(bare, later, strict=True)}
    places |= {run.path: int(each > 0) for run, each in zip(docker, later, strict=True)}
    found = explain(cell("bare", bare), cell("docker", docker), MARGIN, places=places)
    assert "accounts for +4.0 of +4.0 points" in text(found, "host")
    found = compared(bare, docker)
    assert "accounts for +5.8 of +5.8 points" in text(found, "host")


def test_one_disturbed_block_of_ten_moves_neither_verdict_nor_parts(make: Make) -> None:
    steps = [*[0.525] * 9, 1.0]
    docker = [gpu(make, step, 0.30, 0.105) for step in steps]
    (host,) = of(compared([gpu(make, 0.50, 0.30, 0.10)] * 10, docker), "host")
    assert points(host).estimate == pytest.approx(0.04, abs=1e-5)
    assert "accounts for +4.0 of +5.0 points (+4.0 to +4.0)" in host.text


def test_swapping_the_baseline_turns_the_signs(make: Make) -> None:
    bare, docker = gpu_cells(make)
    (host,) = of(explain(docker, bare, MARGIN), "host")
    assert -0.04 < points(host).estimate < -0.037  # 0.02 s of 0.525 s


def test_three_blocks_are_described_without_an_interval(make: Make) -> None:
    (host,) = of(explain(*gpu_cells(make, blocks=3), MARGIN), "host")
    assert host.points is None
    assert "accounts for +4.0 of +5.0 points (+3.8 to +4.2; 3 blocks, needs 5)" in host.text


def test_runs_without_blocks_are_compared_by_means(make: Make) -> None:
    base, other = gpu_cells(make)
    apart = [
        replace(each, runs=tuple(replace(run, block=None) for run in each.runs))
        for each in (base, other)
    ]
    (host,) = of(explain(apart[0], apart[1], MARGIN), "host")
    assert host.points is None
    assert "of +5.0 points (not paired)" in host.text
    assert not of(explain(apart[0], apart[1], 0.06), "host"), "a change within the margin"


def test_a_warm_up_block_is_no_evidence(make: Make) -> None:
    bare, docker = gpu_cells(make)
    warm = gpu(make, 5.0, 0.1, 0.1)
    with_warm_up = replace(
        docker, runs=(replace(docker.runs[0], session=warm, block=0), *docker.runs)
    )
    assert explain(bare, with_warm_up, MARGIN) == explain(bare, docker, MARGIN)


def test_a_run_without_a_steady_step_leaves_its_block_out(make: Make) -> None:
    bare, docker = gpu_cells(make)
    runs = list(docker.runs)
    runs[3] = replace(runs[3], value=None, reason="no steady state")
    (host,) = of(explain(bare, replace(docker, runs=tuple(runs)), MARGIN), "host")
    assert points(host).estimate == pytest.approx(0.04 - 0.002 / 6, abs=1e-5)


def test_copies_beside_kernels_are_no_wait_of_the_host(make: Make) -> None:
    found = compared([gpu(make, 0.5, 0.45, 0.1)] * 5, [gpu(make, 0.5, 0.45, 0.2)] * 5)
    (rest,) = of(found, "host")
    assert rest.text.startswith(
        "what is left of the step without kernels and copies, which overlap"
    )
    assert rest.points is not None
    assert rest.part == ""


def test_the_phase_that_took_most_is_named_beside_the_hosts_wait(make: Make) -> None:
    phases = {"data": 0.1, "copy": 0.1, "forward": 0.1, "backward": 0.15, "optimizer": 0.05}
    bare = gpu(make, 0.50, 0.3, 0.1, phases=phases)
    docker = gpu(make, 0.52, 0.3, 0.1, phases={**phases, "data": 0.12})
    found = compared([bare] * 5, [docker] * 5)
    (host,) = of(found, "host")
    assert host.text.endswith("of the steps' phases data took most, +4.0 points (+4.0 to +4.0)")
    assert "the steps' phase copy 100 ms a step in bare, 100 ms in docker" in text(found, "copies")


CPU_PHASES = {"data": 0.02, "copy": 0.0, "forward": 0.16, "backward": 0.28, "optimizer": 0.04}


def cpu(
    make: Make, step: float, steps: Sequence[Mapping[str, Any]] | None = None, **phases: float
) -> Summary:
    return make(
        step_seconds=step,
        steps=steps,
        devices=(sessions.CPU,),
        run={"device": "cpu"},
        phases={**CPU_PHASES, **phases},
    )


def test_on_a_cpu_the_phases_share_the_change(make: Make) -> None:
    docker = cpu(make, 0.525, data=0.025, forward=0.18)
    forward, data, same = compared([cpu(make, 0.50)] * BLOCKS, [docker] * BLOCKS).evidence
    assert points(forward).estimate == pytest.approx(0.04)
    assert points(data).estimate == pytest.approx(0.01)
    assert forward.text.startswith(
        "phase forward 160 ms a step in bare, 180 ms in docker: accounts for +4.0 of +5.0 points"
    )
    assert same.points is None
    assert same.text == "phases copy, backward, optimizer unchanged: within 0.1 points each"


def test_a_part_that_goes_against_the_change_does_not_account_for_it(make: Make) -> None:
    docker = cpu(make, 0.475, data=0.025, forward=0.13)
    forward, data, _ = compared([cpu(make, 0.50)] * BLOCKS, [docker] * BLOCKS).evidence
    assert "accounts for -6.0 of -5.0 points" in forward.text
    assert data.text.endswith("+1.0 points (+1.0 to +1.0), against the change")


def test_wild_runs_are_neither_changed_nor_unchanged(make: Make) -> None:
    """Twice as slow in one block and twice as fast in the next: nothing can be told."""
    steps = [(0.5, 1.0), (1.0, 0.5), (0.5, 1.0), (1.0, 0.5), (0.6, 0.6)]
    bare = [cpu(make, first, forward=first * 0.8) for first, _ in steps]
    docker = [cpu(make, second, forward=second * 0.8) for _, second in steps]
    found = text(compared(bare, docker), "phases")
    assert "phase forward can't be told apart: within " in found
    assert "accounts for" not in found


def test_of_a_change_that_is_not_known_nothing_is_left_over_and_no_part_has_a_share(
    make: Make,
) -> None:
    steps = [(0.5, 1.0), (1.0, 0.5), (0.5, 1.0), (1.0, 0.5), (0.6, 0.65)]
    bare, docker = (
        [cpu(make, of[at], forward=of[at] - 10 * more, data=more) for of in steps]
        for at, more in enumerate((0.02, 0.024))
    )
    found = text(compared(bare, docker), "phases")
    assert "phase data 20.0 ms a step in bare, 24.0 ms in docker: +0.6 points (" in found
    assert not any(word in found for word in ("accounts for", "against the change", "in none of"))


def test_where_no_phase_can_be_told_apart_none_is_named(make: Make) -> None:
    steps = [(0.5, 1.0), (1.0, 0.5), (0.5, 1.0), (1.0, 0.5), (0.6, 0.6)]
    bare, docker = (
        [cpu(make, of[at], **dict.fromkeys(CPU_PHASES, of[at] / 5)) for of in steps]
        for at in (0, 1)
    )
    assert not of(compared(bare, docker), "phases")


def test_swapping_wild_runs_turns_their_points(make: Make) -> None:
    bare = [gpu(make, step, 0.3, 0.1) for step in [0.5, 1.0, 0.5, 1.0, 0.5]]
    docker = [gpu(make, step, 0.3, 0.1) for step in [1.0, 0.5, 1.0, 0.5, 0.5]]
    for first, second in ((bare, docker), (docker, bare)):
        (host,) = of(compared(first, second), "host")
        assert points(host).estimate == pytest.approx(0.0, abs=1e-9)
        assert "host wait (step time minus kernels and copies) can't be told apart" in host.text


def test_what_is_in_no_phase_is_told(make: Make) -> None:
    found = compared([cpu(make, 0.50)] * BLOCKS, [cpu(make, 0.525, forward=0.17)] * BLOCKS)
    left = [each for each in of(found, "phases") if "in none" in each.text]
    assert [each.points.estimate for each in left if each.points] == [pytest.approx(0.03)]


def test_phases_of_more_than_the_typical_step_share_the_change_of_the_mean(make: Make) -> None:
    """Five slow steps of the other's twenty are in the means of its phases, and in no median."""

    def slow(count: int, step: float) -> Summary:
        lines = [(step + 0.4, 0.56)] * count + [(step, 0.16)] * (20 - count)
        steps = [
            {
                **sessions.step_line(at, seconds, phases={**CPU_PHASES, "forward": forward}),
                "monotonic_ns": None,
            }
            for at, (seconds, forward) in enumerate(lines, 1)
        ]
        return cpu(make, 0.5, steps=steps)

    bare = cell("bare", [slow(0, 0.50)] * BLOCKS)
    docker = cell("docker", [slow(5, 0.52)] * BLOCKS)
    (told, *_) = of(explain(bare, docker, MARGIN), "phases")
    assert told.points is None
    assert told.text == (
        "of +120 ms in the mean of all timed steps: forward +100 ms; the typical step +20.0 ms"
    )
    both = [
        replace(each, runs=tuple(replace(run, total=run.value) for run in each.runs))
        for each in (docker, bare)
    ]
    (told, *_) = of(explain(both[0], both[1], MARGIN, by_total=True), "phases")
    assert told.text.startswith("of -120 ms") and told.text.endswith("; the steady mean -20.0 ms")


def test_phases_of_more_than_the_step_account_for_nothing(make: Make) -> None:
    found = compared([cpu(make, 0.525, forward=0.9)] * BLOCKS, [cpu(make, 0.50)] * BLOCKS)
    (told,) = of(found, "phases")
    assert told.points is None
    assert told.text == "no phase accounts for the -4.8 points: together -141.0"


def test_a_program_that_reports_neither_phases_nor_a_profile_has_no_parts(make: Make) -> None:
    assert compared([make()] * 5, [make()] * 5).evidence == ()


def test_impossible_figures_of_a_hostile_file_are_left_out(make: Make) -> None:
    odd = cpu(make, 0.5, forward=1e300)
    late = replace(odd, timing=Timing(1e308, 1e308, 1.0, 1.0, None, None, None, None))
    assert compared([cpu(make, 0.5)] * BLOCKS, [late] * BLOCKS).evidence == ()


# Kernels

WINOGRAD = {
    "void cudnn::winograd::generateWinogradTilesKernel<0, float, float>(params)": 0.02,
    "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1": 0.18,
    "sgemm_32x32_nn": 0.20,
}
IMPLICIT = {
    "volta_scudnn_128x64_relu_xregs_large_nn_v1": 0.15,
    "void implicit_convolve_sgemm<float, float, 1024>(int, int)": 0.05,
    "sgemm_32x32_nn": 0.20,
}


def counters(flop: float, read: float, written: float) -> dict[str, Any]:
    return {
        "tool": "ncu",
        "steps": 1,
        "flop_per_step": flop,
        "dram_read_bytes_per_step": read,
        "dram_write_bytes_per_step": written,
    }


def puzzle(
    make: Make, kernels: Mapping[str, float], cudnn: str, counted: dict[str, Any]
) -> Summary:
    return make(
        step_seconds=0.5,
        extra={"profile": profile(dict(kernels), 0.05), "counters": counted},
        facts={"torch": "2.6.0", "cuda": "12.4", "cudnn": cudnn},
    )


@pytest.fixture
def riddle(make: Make) -> Explanation:
    """The library chose Winograd bare and implicit GEMM in the container: fewer operations for more
    memory traffic, in the same time. 25.7 and 9.4 million transactions of 32 bytes."""
    bare = puzzle(make, WINOGRAD, "9.1.0", counters(3.49e9, 500e6, 322.4e6))
    docker = puzzle(make, IMPLICIT, "8.9.7", counters(10.99e9, 200e6, 100.8e6))
    return compared([bare] * 5, [docker] * 5)


def test_winograd_against_implicit_gemm_is_told_by_itself(riddle: Explanation) -> None:
    ran, executed = of(riddle, "kernels")
    docker, bare = ran.text.split("; ")
    assert docker == (
        "2 kernels ran in docker and not in bare, 50 % of its kernel time: implicit GEMM "
        "convolution 50 %, the largest volta_scudnn_128x64_relu_xregs_large_nn_v1, 38 %"
    )
    assert bare.startswith("2 kernels ran in bare and not in docker, 50 % of its kernel time")
    assert "Winograd convolution 50 %" in bare
    assert executed.text == (
        "executed FLOP 3.49 GFLOP in bare, 11.0 GFLOP in docker (×3.149) a step; "
        "DRAM traffic 822 MB in bare, 301 MB in docker (×0.366) a step"
    )


def test_the_library_that_chose_them_is_named_with_both_versions(riddle: Explanation) -> None:
    assert text(riddle, "versions") == "cuDNN 9.1.0 in bare, 8.9.7 in docker"
    assert [(each.key, each.values) for each in riddle.differences] == [
        ("cudnn", ("9.1.0", "8.9.7"))
    ]


def imported(
    folder: Path, capsys: pytest.CaptureFixture[str], label: str, *files: Path
) -> tuple[Path, Cell]:
    """The session of an import, and its cell."""
    assert main(["import", *map(str, files), "--label", label, "--out", str(folder)]) == 0
    path = Path(capsys.readouterr().out.strip())
    with SessionReader(path) as reader:
        return path, cell(label, [summarise(reader)], [None], ["no steps"])


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.mark.usefixtures("state")
def test_printed_profiles_of_nvprof_tell_the_same_of_a_run_as_a_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [
        imported(tmp_path, capsys, label, *sorted(PROFILES.glob(f"nvprof-{name}-*")))[1]
        for name, label in (("winograd", "bare"), ("implicit-gemm", "docker"))
    ]
    ran, executed = explain(cells[0], cells[1], MARGIN).evidence
    assert ran.text.startswith(
        "2 kernels ran in docker and not in bare, 84 % of its kernel time: implicit GEMM "
        "convolution 84 %, the largest implicit_convolve_sgemm<"
    )
    assert "4 kernels ran in bare and not in docker, 51 % of its kernel time: Winograd" in ran.text
    assert ran.method is Method.MEASURED
    assert executed.text == (
        "executed FLOP 3.49 GFLOP in bare, 11.0 GFLOP in docker (×3.149) in all; "
        "DRAM traffic 822 MB in bare, 301 MB in docker (×0.366) in all"
    )
    assert executed.source == "hardware counters, nvprof"


@pytest.mark.usefixtures("state")
def test_metrics_without_times_name_the_kernels_by_launches_and_flop(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seven kernels with Winograd against five with implicit GEMM, and no time in either log."""
    monkeypatch.setenv("COLUMNS", "160")
    names = (
        ("nvprof-winograd-metrics.log", "bare"),
        ("nvprof-implicit-gemm-metrics.csv", "docker"),
    )
    both = [imported(tmp_path, capsys, label, PROFILES / name) for name, label in names]
    found = explain(both[0][1], both[1][1], MARGIN)
    ran, _ = found.evidence
    docker, bare, *launches = ran.text.split("; ")
    assert docker.startswith(
        "2 kernels ran in docker and not in bare, 16 launches, 9.60 GFLOP: implicit GEMM "
        "convolution 2 kernels, the largest implicit_convolve_sgemm<"
    )
    assert docker.endswith(", 8 launches, 6.40 GFLOP")
    assert bare.startswith(
        "4 kernels ran in bare and not in docker, 27 launches, 1.58 GFLOP: Winograd convolution 3 "
        "kernels, elementwise 1 kernel, the largest winogradForwardOutput4x4<"
    )
    assert "GEMM 12 launches in bare, 10 in docker" in launches
    by_family = {row.family: row for row in found.families}
    winograd = by_family["Winograd convolution"]
    assert (winograd.kernels, winograd.launches) == ((3, 0), (24, 0))
    assert winograd.flop == (pytest.approx(1.58e9), 0)
    assert (winograd.shares, winograd.per_step) == ((None, 0), False)
    assert by_family["GEMM"].kernels == (2, 2)

    for form, row in (
        ("table", "Winograd convolution 3 kernels, 24 launches, 1.58 GFLOP -"),
        ("md", "| Winograd convolution | 3 kernels, 24 launches, 1.58 GFLOP | - |"),
    ):
        assert main(["compare", *(str(path) for path, _ in both), "--format", form]) == 0
        text = capsys.readouterr().out
        assert row in " ".join(text.split()) and "% of kernel time" not in text
    assert main(["compare", *(str(path) for path, _ in both), "--format", "json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert len(shown["kernels"]) == 6 and len(shown["families"]) == 5
    assert shown["questions"][0]["contrasts"][0]["explanation"]["families"] == shown["families"]


@pytest.mark.usefixtures("state")
def test_derived_times_are_never_called_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = []
    for label, name in (("bare", "winogradForwardData4x4"), ("docker", "implicit_convolve_sgemm")):
        kernels = [
            Counted(name, 8, dram("1000000", "100.00GB/s", "500000", "50.000GB/s")),
            Counted("sgemm", 8, dram("2000000", "200.00GB/s", "1000000", "100.00GB/s")),
        ]
        path = tmp_path / f"{label}.log"
        path.write_text(nvprof_metrics_text(kernels))
        made.append(imported(tmp_path, capsys, label, path))
    (ran,) = explain(made[0][1], made[1][1], MARGIN).evidence
    assert ran.text.startswith(
        "1 kernel ran in docker and not in bare, 50 % of its derived kernel time"
    )
    assert (ran.method, ran.source) == (
        Method.COUNTED,
        f"nvprof, of the run nearest to the mean of each environment; times {DERIVED}",
    )
    one = str(made[0][0])
    for command in (["show", one], ["kernels", one], ["compare", one, str(made[1][0])]):
        assert main(command) == 0
        assert f"kernel times counted, {DERIVED}" in " ".join(capsys.readouterr().out.split())
    for command in (["show", one], ["kernels", one]):
        assert main([*command, "--format", "json"]) == 0
        profile = json.loads(capsys.readouterr().out)["profile"]
        assert (profile["time_method"], profile["time_source"]) == ("counted", DERIVED)
    assert main(["compare", one, str(made[1][0]), "--format", "json"]) == 0
    (row,) = [
        each for each in json.loads(capsys.readouterr().out)["rows"] if each["name"] == "kernels"
    ]
    assert row["methods"] == ["counted", "counted"]
    assert row["values"][0] == pytest.approx(2 * 8 * 32e6 / (100 * 1024**3))


def test_a_family_is_a_difference_only_if_every_run_launched_it_otherwise(make: Make) -> None:
    def run(launches: int) -> Summary:
        columns = ["Total Time (ns)", "Instances", "Name"]
        tables = {KERNELS: {"columns": columns, "rows": [[1e9, launches, "sgemm_nn"]]}}
        return make(extra={"profile": {"tool": "torch.profiler", "steps": 4, "tables": tables}})

    docker = [run(40)] * 3
    found = compared([run(48)] * 3, docker)
    assert text(found, "kernels") == "GEMM 12 launches a step in bare, 10 in docker"
    assert [(row.family, row.launches, row.per_step) for row in found.families] == [
        ("GEMM", (12, 10), True)
    ]
    found = compared([run(48), run(48), run(40)], docker)
    assert text(found, "kernels") == "" and found.families == ()


def test_rungs_come_in_order_with_start_up_last(riddle: Explanation) -> None:
    rungs = [each.rung for each in riddle.evidence]
    assert rungs == ["kernel time", "copies", "host", "versions", "kernels", "kernels"]
    assert "unchanged: 400 ms a step in bare, 400 ms in docker" in riddle.evidence[0].text
    assert {row.name for row in riddle.kernels} == {*WINOGRAD, *IMPLICIT} - {"sgemm_32x32_nn"}


def test_a_kernel_that_only_some_runs_chose_is_no_difference(make: Make) -> None:
    bare = [gpu(make, 0.5, 0.3, 0.1)] * 4
    bare += [make(step_seconds=0.51, extra={"profile": profile({"sgemm": 0.2, "other": 0.1}, 0.1)})]
    docker = make(step_seconds=0.5, extra={"profile": profile({"sgemm": 0.2, "other": 0.1}, 0.1)})
    found = compared(bare, [docker] * 5)
    assert found.kernels == ()
    assert of(found, "kernels") == []


def test_on_a_cpu_operators_are_told(make: Make) -> None:
    def run(operators: dict[str, float]) -> Summary:
        return make(extra={"profile": profile(operators=operators)})

    bare = run({"aten::addmm": 0.3, "aten::mkldnn_convolution": 0.1})
    docker = run({"aten::addmm": 0.3, "aten::_slow_conv2d_forward": 0.1})
    assert text(compared([bare], [docker]), "kernels") == (
        "1 operator ran in docker and not in bare, 25 % of its operator time: convolution 25 %, "
        "aten::_slow_conv2d_forward; 1 operator ran in bare and not in docker, 25 % of its "
        "operator time: oneDNN 25 %, aten::mkldnn_convolution"
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", "communication"),
        ("volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1", "Winograd convolution"),
        ("void cudnn::winograd_nonfused::winogradForwardData4x4<float>", "Winograd convolution"),
        ("sm80_xmma_fprop_implicit_gemm_f32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16", None),
        ("void cudnn::detail::implicit_convolve_sgemm<float, float, 1024>", None),
        ("volta_h884cudnn_256x64_ldg8_relu_exp_medium_nhwc_tn_v1", None),
        ("void fft2d_r2c_32x32<float, false, 5u, false>", "FFT"),
        ("ampere_sgemm_128x64_nn", "GEMM"),
        ("sm80_xmma_gemm_f16f16_f16f32_f32_tn_n_tilesize128x128x32_stage4", "GEMM"),
        ("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4>", "GEMM"),
        ("nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_TNT", "GEMM"),
        ("aten::addmm", "GEMM"),
        ("aten::baddbmm", "GEMM"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<64>>", "flash attention"),
        ("fmha_cutlassF_f16_aligned_64x64_rf_sm80", "attention"),
        ("aten::mkldnn_convolution", "oneDNN"),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>", "layout conversion"),
        ("void dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", "convolution"),
        (
            "void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor>",
            "elementwise",
        ),
        ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>", "pooling"),
        ("void at::native::(anonymous namespace)::softmax_warp_forward<float, 4, true>", "softmax"),
        ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, true, 1>", "normalization"),
        ("void at::native::vectorized_layer_norm_kernel<float, float>", "normalization"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>", "reduction"),
        ("void splitKreduce_kernel<32, 16, int, float, float>", "GEMM"),
        ("void cudnn::cnn::conv2d_grouped_direct_kernel<false, true, float>", "direct convolution"),
        ("void elementwise_kernel<128, 2, direct_copy_kernel_cuda(TensorIteratorBase&)>", "copy"),
        ("void at::native::indexSelectLargeIndex<float, long, unsigned int, 2>", "indexing"),
        ("my_own_kernel(float*)", OTHER),
    ],
)
def test_families_are_known_by_the_names_that_libraries_give(
    name: str, expected: str | None
) -> None:
    assert family(name) == (expected or "implicit GEMM convolution")


# Versions and limits


def with_facts(session: Summary, **scopes: Mapping[str, Any]) -> Summary:
    environment = scopes.pop("environment", {})
    return replace(session, facts=scopes, environment={**session.environment, **environment})


def set_up(make: Make, bare: Mapping[str, Any], docker: Mapping[str, Any]) -> Explanation:
    """Explained by facts alone: by scope."""
    return compared([with_facts(make(), **bare)] * 2, [with_facts(make(), **docker)] * 2)


def test_versions_that_pick_kernels_come_first_and_the_rest_is_counted(make: Make) -> None:
    bare = {
        "workload": {"torch": "2.6.0", "cudnn": "9.1.0", "python": "3.11.2", "libc": "glibc 2.36"},
        "host": {"gpu0.driver.version": "570.1", "os.kernel": "6.1"},
    }
    docker = {
        "workload": {"torch": "2.7.1", "cudnn": "9.5.1", "python": "3.12.3", "libc": "glibc 2.39"},
        "host": {"gpu0.driver.version": "575.5", "os.kernel": "6.1"},
    }
    found = set_up(make, bare, docker)
    assert text(found, "versions") == (
        "driver 570.1 in bare, 575.5 in docker; cuDNN 9.1.0 in bare, 9.5.1 in docker; "
        "torch 2.6.0 in bare, 2.7.1 in docker; Python 3.11.2 in bare, 3.12.3 in docker; 1 more"
    )
    assert len(found.differences) == 5


def test_settings_and_limits_are_told_with_their_units(make: Make) -> None:
    bare = {
        "process.cgroup.cpu.limit": "unlimited",
        "process.cpu.affinity": "0-15",
        "process.shm.size": 8 * 2**30,
        "process.seccomp": "off",
    }
    docker = {
        "process.cgroup.cpu.limit": 2.0,
        "process.cpu.affinity": "0-3,8",
        "process.shm.size": 64 * 2**20,
        "process.seccomp": "filter",
    }
    found = set_up(make, {"process": bare}, {"process": docker})
    assert text(found, "settings") == (
        "CPU quota unlimited in bare, 2.0 cores in docker; usable CPUs 16 (0-15) in bare, "
        "5 (0-3,8) in docker"
    )
    assert text(found, "limits") == (
        "/dev/shm 8.00 GiB in bare, 64.0 MiB in docker; seccomp off in bare, filter in docker"
    )


KNOWN = {"process.env.LD_PRELOAD": "absent", "process.scheduling.policy": "other"}
"""Facts of a recorder that kept every listed variable."""


@pytest.mark.parametrize(
    ("process", "workload", "expected"),
    [
        (
            {"process.env.ONEDNN_MAX_CPU_ISA": "SSE41"},
            {"onednn_isa": ("Intel AVX-512", "Intel SSE4.1")},
            "ONEDNN_MAX_CPU_ISA not set in bare, SSE41 in docker; "
            "oneDNN uses Intel AVX-512 in bare, Intel SSE4.1 in docker",
        ),
        (
            {"process.env.OMP_NUM_THREADS": "1"},
            {"threads": ("2", "1")},
            "OMP_NUM_THREADS not set in bare, 1 in docker; threads 2 in bare, 1 in docker",
        ),
        (
            {"process.env.MALLOC_ARENA_MAX": "1", "process.env.GLIBC_TUNABLES": "glibc.x=0"},
            {},
            "GLIBC_TUNABLES not set in bare, glibc.x=0 in docker; "
            "MALLOC_ARENA_MAX not set in bare, 1 in docker",
        ),
        (
            {"process.scheduling.policy": "batch"},
            {},
            "scheduling policy other in bare, batch in docker",
        ),
        (
            {"process.env.CUDA_LAUNCH_BLOCKING": "1", "process.env.CUDA_VERSION": "13"},
            {},
            "CUDA_LAUNCH_BLOCKING not set in bare, 1 in docker",
        ),
    ],
)
def test_a_setting_that_alone_differs_is_named_first(
    make: Make, process: dict[str, str], workload: dict[str, tuple[str, str]], expected: str
) -> None:
    def side(at: int, seconds: float, facts: Mapping[str, Any]) -> list[Summary]:
        made = make(step_seconds=seconds, phases={"forward": seconds * 0.9})
        versions = {key: values[at] for key, values in workload.items()}
        return [with_facts(made, process={**KNOWN, **facts}, workload=versions)] * 2

    first, second, *_ = compared(side(0, 0.5, {}), side(1, 0.7, process)).evidence
    assert (first.rung, first.text) == ("settings", expected)
    assert second.text.startswith("phase forward")


def test_a_variable_that_a_recorder_did_not_keep_is_not_called_unset(make: Make) -> None:
    new = {"process": {**KNOWN, "process.env.KMP_BLOCKTIME": "0"}}
    old = {"process": {"process.env.LD_PRELOAD": "absent"}}
    assert of(set_up(make, old, new), "settings") == []
    hidden = {"process": {**KNOWN, "process.env.LD_PRELOAD": None}}
    assert of(set_up(make, hidden, new), "settings") == []


def test_phases_of_any_name_share_the_change_also_those_of_one_side(make: Make) -> None:
    phases = {"collate": 0.2, "train": 0.3}
    bare = make(step_seconds=0.5, phases=phases)
    docker = make(step_seconds=0.6, phases={**phases, "checkpoint": 0.1})
    first, second = compared([bare] * 2, [docker] * 2).evidence
    assert first.text.startswith("phase checkpoint")
    assert "a step in bare, 100 ms in docker: accounts for +20.0 of +20.0" in first.text
    assert second.text.startswith("phases collate, train unchanged")


@pytest.mark.parametrize(
    "told",
    [
        {
            "phases": {"backward": 0.3, "other": 0.3},
            "run": {"unseen_phases": {"data": "no DataLoader of torch gave a batch"}},
        },
        {
            "phases": {"data": 0, "forward": 0, "backward": 0.3, "optimizer": 0, "other": 0.3},
            "extra": {"hook": {"processes": 1}},
        },
    ],
    ids=["newer hook", "older hook"],
)
def test_a_phase_that_one_side_could_not_see_is_not_the_cause(
    make: Make, told: Mapping[str, Any]
) -> None:
    """Its time is in ``other`` there: what both tell is compared."""
    bare = make(step_seconds=0.5, phases={"data": 0.1, "backward": 0.3, "other": 0.1})
    first, second = compared([bare] * 2, [make(step_seconds=0.6, **told)] * 2).evidence
    assert first.text.startswith("phase other 200 ms a step in bare, 300 ms in docker")
    assert second.text.startswith("phase backward unchanged")


def test_what_is_not_known_on_one_side_is_not_told_as_a_difference(make: Make) -> None:
    found = set_up(
        make, {"process": {"process.seccomp": None}}, {"process": {"process.seccomp": "off"}}
    )
    assert of(found, "limits") == []


def test_what_varies_within_a_cell_is_no_difference(make: Make) -> None:
    bare = [with_facts(make(), workload={"threads": each}) for each in ("4", "8")]
    docker = [with_facts(make(), workload={"threads": each}) for each in ("4", "4")]
    found = compared(bare, docker)
    assert found.differences == ()
    assert of(found, "limits") == []


def test_what_explains_nothing_is_left_out(make: Make) -> None:
    found = set_up(make, {"host": {"host.boot.id": "1"}}, {"host": {"host.boot.id": "2"}})
    assert found.differences == ()


def test_hostile_labels_and_values_are_cleaned(make: Make) -> None:
    bare = cell("ba\x1b[31mre", [with_facts(make(), workload={"torch": "2\x1b[2J.6"})])
    docker = cell("docker", [with_facts(make(), workload={"torch": "2.7\n:::"})])
    assert text(explain(bare, docker, MARGIN), "versions") == "torch 2.6 in bare, 2.7 ::: in docker"


# Clocks, power, other programs


def test_clocks_power_and_throttling_are_told_with_both_values(make: Make) -> None:
    def cells(label: str, clock: float, power: float, held: float) -> Cell:
        gauges: dict[tuple[str, str], Any] = {
            ("gpu0", "hw.gpu.clock.sm"): clock,
            ("gpu0", "hw.gpu.power"): power,
            ("gpu0", "hw.gpu.throttle.power"): [held, 0.0],
        }
        return cell(label, [make(gauges=gauges)] * 3)

    found = explain(cells("bare", 1.98e9, 500, 0.0), cells("docker", 1.75e9, 505, 1.0), MARGIN)
    assert text(found, "clocks") == "SM clock 1.98 GHz in bare, 1.75 GHz in docker"
    assert text(found, "throttling") == (
        "clocks held down by power 0 % of the time in bare, 50 % in docker"
    )


def test_of_a_side_that_always_failed_facts_alone_are_told(make: Make) -> None:
    def cells(label: str, clock: float, version: str, state: State) -> Cell:
        of = with_facts(
            make(gauges={("gpu0", "hw.gpu.clock.sm"): clock}), workload={"torch": version}
        )
        return cell(label, [replace(of, status=replace(of.status, state=state))])

    for state, rungs in ((State.FINISHED, ["versions", "clocks"]), (State.FAILED, ["versions"])):
        both = cells("a", 1.98e9, "2.6", State.FINISHED), cells("b", 1.75e9, "2.7", state)
        assert [each.rung for each in explain(*both, MARGIN).evidence] == rungs


def loaded(make: Make, busy: float, own: float = 2.0) -> Summary:
    """Eight cores, ``busy`` of their time; the workload's processes use ``own`` cores."""
    made = make(
        gauges={("cpu", "hw.cpu.utilization"): busy},
        counters={("workload", "process.cpu.time"): own},
        devices=(sessions.GPU, sessions.CPU, ("workload", "workload", "workload", None, {})),
    )
    return with_facts(made, host={"cpu.core.logical.count": 8})


def load_told(bare: Summary, docker: Summary) -> str:
    return text(compared([bare], [docker]), "load")


def test_other_programs_are_what_the_workload_did_not_use(make: Make) -> None:
    # Two of eight cores are the workload's own.
    assert load_told(loaded(make, 0.25), loaded(make, 0.65)) == (
        "other programs used 0 % of the CPU's time in bare, 40 % in docker"
    )


def test_load_that_is_known_of_a_part_or_alike_is_no_change(make: Make) -> None:
    """Of others who kept both sides busy alike a note of the study tells."""
    some = compared([loaded(make, 0.9), make()], [loaded(make, 0.65)])
    assert text(some, "load") == "", "of some runs alone"
    assert load_told(make(), loaded(make, 0.65)) == "", "of one side"
    assert load_told(loaded(make, 1.0, own=0.1), loaded(make, 1.0, own=0.1)) == "", "alike"
    assert load_told(loaded(make, 0.30), loaded(make, 0.31)) == "", "a machine of one's own"


def test_one_quiet_run_of_a_side_makes_no_other_load(make: Make) -> None:
    busy, quiet = loaded(make, 1.0, own=0.1), loaded(make, 0.1, own=0.1)
    assert text(compared([busy] * 4 + [quiet], [busy] * 5), "load") == ""
    assert text(compared([quiet, loaded(make, 0.2, own=0.1)], [busy] * 2), "load") == (
        "other programs used 14 % of the CPU's time in bare, 99 % in docker"
    )


def test_the_own_part_is_of_the_time_that_samples_cover(make: Make) -> None:
    run = loaded(make, 0.65)
    own = run.metrics["process.cpu.time"]
    assert own.max is not None
    half = replace(own, max=own.max / 2, coverage=0.5)
    seen = replace(run, metrics={**run.metrics, "process.cpu.time": half})
    assert load_told(loaded(make, 0.25), seen).endswith("40 % in docker")


def test_of_a_run_too_short_to_sample_the_account_at_its_end_tells_its_own_part(make: Make) -> None:
    def short(bound: bool = False) -> Summary:
        made = make(gauges={("cpu", "hw.cpu.utilization"): 1.0}, steps=())
        made = with_facts(made, host={"cpu.core.logical.count": 2})
        # Two tenths of a second of CPU time in a run of one second: a tenth of two cores.
        return replace(made, timing=Timing(0.1, 0.2, 0.1, 0.1, 0.1, 1.0, 0.15, 0.05, 0.2, bound))

    assert load_told(short(bound=True), short()) == ""
    assert load_told(loaded(make, 0.25), short()).endswith(
        "0 % of the CPU's time in bare, 90 % in docker"
    )
    assert load_told(short(bound=True), short(bound=True)) == ""


def test_load_is_no_part_of_the_clocks(make: Make) -> None:
    found = compared([loaded(make, 1.0, own=0.1)], [loaded(make, 0.55)])
    assert text(found, "clocks") == ""
    assert text(found, "load") == (
        "other programs used 99 % of the CPU's time in bare, 30 % in docker"
    )


# Start-up


def started(make: Make, launch: float | None, step: float = 0.5) -> Summary:
    made = make(step_seconds=step)
    return replace(made, timing=Timing(launch, 2.0, 1.0, 0.5, None, None, None, None))


def test_start_up_is_told_apart_with_the_steps_that_amortise_it(make: Make) -> None:
    found = compared([started(make, 0.1)] * 5, [started(make, 0.85)] * 5)
    assert found.start_up is not None
    assert found.start_up.seconds == pytest.approx(4.35)
    assert found.start_up.extra_seconds == pytest.approx(0.75)
    # 0.75 s are 1 % of 75 s: 150 steps of half a second.
    assert found.start_up.steps_to_amortise == 150
    last = found.evidence[-1]
    assert last.rung == "start-up"
    assert last.text.startswith(
        "start-up 3.60 s in bare, 4.35 s in docker: 750 ms more, 750 ms of it launch"
    )
    assert last.text.endswith("under 1.0 % of the time after 150 steps")


def faster(make: Make, launch: float, step: float) -> Explanation:
    """Steps of half a second in bare, of ``step`` seconds in docker, which starts ``launch`` s
    later."""
    jitter = (1.0, 1.001, 1 / 1.001, 1.002, 1 / 1.002)
    bare = [started(make, 0.1, 0.5 * each) for each in jitter]
    return compared(bare, [started(make, 0.1 + launch, step)] * len(jitter))


def test_a_longer_start_of_faster_steps_is_told_with_its_break_even(make: Make) -> None:
    found = faster(make, 0.75, step=0.45)
    assert found.start_up is not None
    # Each step gains 0.05 s.
    assert found.start_up.steps_to_break_even == 15
    assert found.evidence[-1].text.endswith(
        "; its faster steps make up for that after 15 steps (break-even)"
    )


@pytest.mark.parametrize("step", [0.5, 0.497, 0.55])
def test_steps_that_are_not_faster_by_more_than_the_margin_have_no_break_even(
    make: Make, step: float
) -> None:
    found = faster(make, 0.75, step)
    assert found.start_up is not None
    assert found.start_up.steps_to_break_even is None
    assert found.start_up.steps_to_amortise == 150
    assert "under 1.0 % of the time after 150 steps" in found.evidence[-1].text


def test_a_shorter_start_of_faster_steps_has_nothing_to_make_up_for(make: Make) -> None:
    found = faster(make, -0.05, step=0.45)
    assert found.start_up is not None
    assert found.start_up.steps_to_break_even is None


def test_a_shorter_start_has_nothing_to_amortise(make: Make) -> None:
    found = compared([started(make, 0.85)] * 5, [started(make, 0.1)] * 5)
    assert found.start_up is not None
    assert found.start_up.extra_seconds == pytest.approx(-0.75)
    assert found.start_up.steps_to_amortise is None
    assert "750 ms less" in found.evidence[-1].text


def test_a_start_that_differs_by_chance_has_nothing_to_amortise(make: Make) -> None:
    bare = [started(make, 0.1 + jitter) for jitter in (0.0, 0.2, 0.1, 0.3, 0.1)]
    docker = [started(make, 0.1 + jitter) for jitter in (0.3, 0.0, 0.2, 0.1, 0.2)]
    found = compared(bare, docker)
    assert found.start_up is not None
    assert found.start_up.steps_to_amortise is None
    assert not of(found, "start-up")


@pytest.mark.parametrize("unknown", [0, 1])
def test_a_start_of_which_a_stage_is_unknown_is_not_guessed(make: Make, unknown: int) -> None:
    bare, docker = ([started(make, None if at == unknown else 0.1)] for at in (0, 1))
    found = compared(bare, docker)
    assert of(found, "start-up") == []
    assert found.start_up is None or found.start_up.extra_seconds is None
