"""What makes a comparison mean nothing: each is named, with both values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.cells import STEP_TIME, Group, Placed, cell_of
from gpuwatch.analysis.comparison.validity import (
    clocks_apart,
    device_differences,
    invalid_reasons,
    remarks,
)
from gpuwatch.analysis.results import Cell
from gpuwatch.analysis.study.read import read
from tests.analysis import sessions
from tests.analysis.recorded_studies import FAILED, START, run

PARAMETERS = {"batch_size": 64, "steps": 20, "lr": 0.1}
V100 = ("gpu0", "gpu", "Tesla V100-SXM2-16GB", "GPU-9", {})
A100 = ("gpu0", "gpu", "NVIDIA A100-SXM4-40GB", "GPU-8", {})
OTHER_CPU = ("cpu", "cpu", "Intel Xeon", None, {})
ON_CPU = {"devices": (sessions.CPU,), "run": {"device": "cpu"}}
Options = Mapping[str, Any]


def step_lines(samples: int, partial: int | None = None) -> list[dict[str, Any]]:
    """Of twenty steps, the last of ``partial`` samples."""
    lines = [sessions.step_line(step, samples=samples) for step in range(1, 21)]
    if partial is not None:
        lines[-1] |= {"samples": partial, "partial": True}
    return lines


def cell(folder: Path, label: str, runs: Sequence[Options]) -> Cell:
    """Runs half an hour apart; those of different cells at different times."""
    folder.mkdir(exist_ok=True)
    placed = []
    for index, options in enumerate(runs, 1):
        given = {
            "start": START + 1800 * index + 600 * (label == "docker"),
            "parameters": PARAMETERS,
            **options,
        }
        path = run(folder / f"{index:02d}-{label}.gpuwatch", label=label, **given)
        placed.append(Placed(read(path), index))
    return cell_of(Group(label, label, tuple(placed)), STEP_TIME)


def pair(
    tmp_path: Path, bare: Options | Sequence[Options], docker: Options | Sequence[Options]
) -> tuple[Cell, Cell]:
    one, two = ([of] if isinstance(of, Mapping) else of for of in (bare, docker))
    return cell(tmp_path, "bare", one), cell(tmp_path, "docker", two)


def reasons(
    tmp_path: Path, bare: Options | Sequence[Options], docker: Options | Sequence[Options]
) -> tuple[str, ...]:
    return invalid_reasons(*pair(tmp_path, bare, docker), across_devices=False)


def test_recordings_of_the_machine_have_nothing_to_compare(tmp_path: Path) -> None:
    machine = {"extra": {"workload": {"name": "machine", "kind": "machine"}}}
    assert reasons(tmp_path, machine, machine) == (
        "recordings of the machine alone have no steps to compare",
    )


def test_the_same_on_the_same_is_comparable(tmp_path: Path) -> None:
    assert reasons(tmp_path, [{}, {}], [{}, {}]) == ()


@pytest.mark.parametrize(
    ("bare", "docker", "reason"),
    [
        ({}, {"workload": "alexnet"}, "different workloads: resnet50 against alexnet"),
        (
            {"parameters": {**PARAMETERS, "batch_size": 32}},
            {},
            "different batch size: 32 against 64",
        ),
        (
            {},
            {"parameters": {**PARAMETERS, "workers": 4}},
            "different workers: the default against 4",
        ),
        (
            {"run": {"data": {"kind": "synthetic", "samples": 512}}},
            {"run": {"data": {"kind": "real", "samples": 1000}}},
            "different data: synthetic, 512 samples against real, 1000 samples",
        ),
        ({}, {"run": {"dtype": "float32"}}, "different data type: bfloat16 against float32"),
        (
            {"run": {"batch_size": 16}, "parameters": {}},
            {"run": {"batch_size": 8}, "parameters": {}},
            "different batch size: 16 against 8",
        ),
        (
            {"run": {"model": "resnet18"}},
            {"run": {"model": "resnet50"}},
            "different model: resnet18 against resnet50",
        ),
        ({}, {"steps": step_lines(samples=128)}, "different samples per step: 64 against 128"),
        (
            {"parameters": {}},
            {"parameters": {"batch_size": 32}, "run": {"parameters": {}}},
            "different batch size: the default against 32",
        ),
        ({}, ON_CPU, "different device: GPU against CPU"),
        (
            {},
            {"count": {**sessions.COUNT, "flop_per_step": 3e12}},
            "different work per step: 2.00 TFLOP against 3.00 TFLOP",
        ),
        (
            {"host": {"gpuwatch.workloads.sha256": "a" * 64}},
            {"host": {"gpuwatch.workloads.sha256": "b" * 64}},
            "different gpuwatch workloads (SHA-256): aaaaaaaaaaaa against bbbbbbbbbbbb",
        ),
        (
            {"devices": (V100, sessions.CPU)},
            {"devices": (A100, sessions.CPU)},
            "different accelerators: Tesla V100-SXM2-16GB against NVIDIA A100-SXM4-40GB",
        ),
        (
            {"host": {"host.name": "one"}},
            {"host": {"host.name": "two"}, "devices": (sessions.OTHER_GPU, sessions.CPU)},
            "another GPU of the same model in block 1: GPU-1 against GPU-2",
        ),
        (
            ON_CPU,
            {**ON_CPU, "devices": (OTHER_CPU,)},
            "another processor: AMD EPYC against Intel Xeon",
        ),
        (
            {**ON_CPU, "host": {"host.name": "one"}},
            {**ON_CPU, "host": {"host.name": "two"}},
            "another host: one against two",
        ),
        (
            {"process": {"process.cpu.affinity": "0"}},
            {"process": {"process.cpu.affinity": "0-1"}},
            "different usable CPUs: 0 against 0-1",
        ),
        (
            {"process": {"process.memory.nodes": "0"}},
            {"process": {"process.memory.nodes": "0-1"}},
            "different memory nodes: 0 against 0-1",
        ),
        (
            {"process": {"process.cgroup.cpu.limit": 1.5}},
            {"process": {"process.cgroup.cpu.limit": "unlimited"}},
            "different CPU quota: 1.50 cores against unlimited",
        ),
        (
            {"process": {"process.cgroup.memory.limit": 8 * 2.0**30}},
            {"process": {"process.cgroup.memory.limit": "unlimited"}},
            "different memory limit: 8.00 GiB against unlimited",
        ),
        (
            {"extra": {"environment": {"gpus": ["GPU-1"]}}},
            {"extra": {"environment": {"gpus": ["GPU-1", "GPU-2"]}}},
            "different GPUs given: GPU-1 against GPU-1 + GPU-2",
        ),
        (
            {"host": {"gpu0.power.limit": 700.0}},
            {"host": {"gpu0.power.limit": 450.0}},
            "different power cap: 700 W against 450 W",
        ),
    ],
)
def test_what_differs_is_named_with_both_values(
    tmp_path: Path, bare: Options, docker: Options, reason: str
) -> None:
    (told,) = reasons(tmp_path, bare, docker)
    assert told.removesuffix(" (--across-devices compares them)") == reason


def test_a_memory_limit_that_was_asked_for_is_the_environments_own(tmp_path: Path) -> None:
    bare = {"process": {"process.cgroup.memory.limit": "unlimited"}}
    docker = {
        "process": {"process.cgroup.memory.limit": 2.0**30},
        "extra": {"environment": {"memory_limit_bytes": 2**30}},
    }
    assert reasons(tmp_path, bare, docker) == ()


def test_a_quota_that_rounds_otherwise_is_the_same(tmp_path: Path) -> None:
    bare, docker = ({"process": {"process.cgroup.cpu.limit": share}} for share in (1 / 3, 0.33333))
    assert reasons(tmp_path, bare, docker) == ()


def test_other_machines_on_purpose_have_other_processors(tmp_path: Path) -> None:
    bare, docker = ({"process": {"process.cpu.affinity": cpus}} for cpus in ("0-15", "0-63"))
    sides = pair(tmp_path, bare, docker)
    assert invalid_reasons(*sides, across_devices=True) == ()


def test_limits_that_changed_between_the_runs_of_a_block_are_found(tmp_path: Path) -> None:
    one, both = ({"process": {"process.cpu.affinity": cpus}} for cpus in ("0", "0-1"))
    assert reasons(tmp_path, [one, both], [both, one]) == (
        "different usable CPUs: 0 against 0-1 in block 1",
    )


def test_what_is_looked_at_after_the_steps_makes_no_difference(tmp_path: Path) -> None:
    docker = {"parameters": {**PARAMETERS, "profile": 8, "counters": True, "data": "/mnt/data"}}
    assert reasons(tmp_path, {}, docker) == ()


def test_ways_of_counting_may_differ_by_a_per_cent(tmp_path: Path) -> None:
    docker = {"count": {**sessions.COUNT, "flop_per_step": 2.015e12}}
    assert reasons(tmp_path, {}, docker) == ()


def test_what_is_not_known_of_one_is_no_difference(tmp_path: Path) -> None:
    docker = {"count": {}, "host": {"host.name": "one"}}
    assert reasons(tmp_path, {"run": {"batch_size": 64}}, docker) == ()


def test_other_samples_are_not_told_beside_another_batch_size(tmp_path: Path) -> None:
    bare = {"run": {"batch_size": 64}, "parameters": {}}
    docker = {"run": {"batch_size": 128}, "parameters": {}, "steps": step_lines(samples=128)}
    assert reasons(tmp_path, bare, docker) == ("different batch size: 64 against 128",)


def test_a_partial_batch_makes_no_other_samples_per_step(tmp_path: Path) -> None:
    whole, cut = {"steps": step_lines(64)}, {"steps": step_lines(64, partial=3)}
    assert reasons(tmp_path, whole, cut) == ()


def test_what_one_side_alone_tells_is_a_note(tmp_path: Path) -> None:
    silent = {"run": {"dtype": None, "device": None}, "devices": (sessions.CPU,), "parameters": {}}
    told = {
        "run": {"dtype": "bfloat16", "device": "cpu", "model": "resnet50", "batch_size": 64},
        "devices": (sessions.CPU,),
        "parameters": {},
    }
    cells = pair(tmp_path, silent, told)
    assert invalid_reasons(*cells, across_devices=False) == ()
    assert remarks(*cells) == [
        "known of docker alone, not of bare: data type (bfloat16), model (resnet50), device (CPU)"
    ]
    assert remarks(*pair(tmp_path / "alike", told, told)) == []


def test_other_commands_are_other_work(tmp_path: Path) -> None:
    def command(*arguments: str) -> Options:
        of = {"name": "train.py", "kind": "command", "arguments": list(arguments), "parameters": {}}
        return {"extra": {"workload": of}, "parameters": {}}

    assert reasons(
        tmp_path, command("python", "train.py", "a b"), command("python", "train.py")
    ) == (
        "different command: python train.py 'a b' against python train.py "
        "(--across-commands compares them)",
    )


DEEP = "/home/someone/projects/vision/experiments/2026-11/baseline/train.py"


@pytest.mark.parametrize(
    ("one", "two", "said"),
    [
        (
            f"python {DEEP} --lr 0.1 --epochs 10 --out /scratch/a-folder",
            f"python {DEEP} --lr 0.2 --epochs 10 --out /scratch/a-folder",
            "… --lr 0.1 … against … --lr 0.2 …",
        ),
        (f"python {DEEP} --lr 10", f"python {DEEP} --lr 20", "… --lr 10 against … --lr 20"),
        (f"python {DEEP}", f"python {DEEP} --amp", "against"),
        (f"{DEEP}/{DEEP}/one.py", f"{DEEP}/{DEEP}/two.py", "one.py against"),
        ("x" * 300 + "a", "x" * 300 + "b", f"…{'x' * 40}a against …{'x' * 40}b"),
        ("a" * 300, "b" * 300, f"{'a' * 99}… against {'b' * 99}…"),
        (f"{'x' * 300} 1 {'y' * 300}", f"{'x' * 300} 2 {'y' * 300}", " 1 … against "),
    ],
)
def test_of_long_values_that_is_shown_in_which_they_differ_and_every_cut_has_a_mark(
    tmp_path: Path, one: str, two: str, said: str
) -> None:
    sides = [{"run": {"model": each}} for each in (one, two)]
    (reason,) = reasons(tmp_path, *sides)
    assert said in reason
    shown = reason.partition(": ")[2].split(" against ")
    assert shown[0] != shown[1] and max(map(len, shown)) <= 104
    for whole, part in zip((one, two), shown, strict=True):
        assert part.strip("… ") in whole and ("…" in part) is (part != whole)


def test_other_devices_are_a_note_where_they_are_asked_for(tmp_path: Path) -> None:
    cells = pair(tmp_path, {"devices": (V100, sessions.CPU)}, {"devices": (A100, sessions.CPU)})
    assert invalid_reasons(*cells, across_devices=True) == ()
    assert device_differences(*cells) == [
        "different accelerators: Tesla V100-SXM2-16GB against NVIDIA A100-SXM4-40GB"
    ]


def on_gpu(device: Any, node: str, pod: str) -> Options:
    """A run in a pod, which was given this GPU."""
    return {"devices": (device, sessions.CPU), "host": {"host.name": pod, "job.node": node}}


def test_runs_that_changed_gpu_between_blocks_are_found(tmp_path: Path) -> None:
    one, two = (
        on_gpu(gpu, node, "pod") for gpu, node in ((sessions.GPU, "n1"), (sessions.OTHER_GPU, "n2"))
    )
    cells = pair(tmp_path, [one, two], [two, one])
    assert invalid_reasons(*cells, across_devices=False) == (
        "another GPU of the same model in block 1: GPU-1 against GPU-2 "
        "(--across-devices compares them)",
        "so in 2 blocks",
    )


def test_pods_of_one_node_without_a_gpu_are_comparable(tmp_path: Path) -> None:
    one, two, elsewhere = (
        {"devices": (sessions.CPU,), "host": {"host.name": pod, "job.node": node}}
        for pod, node in (("pod-1", "n1"), ("pod-2", "n1"), ("pod-3", "n2"))
    )
    assert device_differences(*pair(tmp_path / "alike", [one], [two])) == []
    cells = pair(tmp_path / "apart", [one], [elsewhere])
    assert device_differences(*cells) == ["another host: n1 against n2"]


@pytest.mark.parametrize("uuids", [("GPU-1", "GPU-2"), ("MIG-1", "MIG-2")])
def test_two_gpus_of_one_node_or_two_parts_of_one_gpu_are_no_pair(
    tmp_path: Path, uuids: tuple[str, str]
) -> None:
    first, second = (
        on_gpu((*sessions.GPU[:3], uuid, sessions.H100), "n1", f"pod-{uuid}") for uuid in uuids
    )
    named = f"{uuids[0]} against {uuids[1]}"
    cells = pair(tmp_path, [first, first, second], [first, second, first])
    assert invalid_reasons(*cells, across_devices=False) == (
        f"another GPU of the same model in block 2: {named} (--across-devices compares them)",
        "so in 2 blocks",
    )
    for pod, mend in (("a", "a node with one GPU"), ("b", "one pod for both (without jobs=image)")):
        one, two = (
            {**gpu, "host": {"job.node": "n1", "job.scheduler": "kubernetes", "job.id": name}}
            for gpu, name in ((first, "a"), (second, pod))
        )
        told, hint = reasons(tmp_path / pod, [one], [two])
        assert named in told and hint.startswith(mend)
    assert reasons(tmp_path / "same", [first, second], [first, second]) == ()
    (said,) = reasons(tmp_path / "models", [first], [on_gpu(V100, "n1", "pod-3")])
    assert said.startswith("different accelerators")


def test_a_foreign_process_on_one_side_is_a_reason(tmp_path: Path) -> None:
    shared = {"processes": [("gpu0", 7, "python", False, 1 << 30)]}
    assert reasons(tmp_path, [{}, {}], [{}, shared]) == (
        "another process was on the GPU in 1 of 2 runs of docker, in none of bare",
    )
    alike = pair(tmp_path / "alike", [shared, {}], [{}, shared])
    assert invalid_reasons(*alike, across_devices=False) == ()
    assert remarks(*alike) == ["other processes were on the GPU in runs of bare and docker"]


def test_pods_that_share_the_gpu_of_one_side_are_a_reason(tmp_path: Path) -> None:
    own, sliced = (
        {"host": {"job.gpu.shared": how}} for how in ("no", "time-slicing, up to 4 pods on a GPU")
    )
    assert reasons(tmp_path, own, sliced) == (
        "different sharing of the GPU by pods: no against time-slicing, up to 4 pods on a GPU",
    )
    assert reasons(tmp_path / "untold", {}, sliced) == ()  # of the one side nobody said
    alike = pair(tmp_path / "alike", sliced, sliced)
    assert invalid_reasons(*alike, across_devices=False) == ()
    assert remarks(*alike) == [
        "pods share the GPUs of bare and docker (time-slicing, up to 4 pods on a GPU): their time "
        "is other pods' too"
    ]
    assert remarks(*pair(tmp_path / "own", own, own)) == []


def test_parts_of_a_gpu_are_told(tmp_path: Path) -> None:
    part = {"host": {"gpu0.mig.parent": "GPU-1"}}
    assert remarks(*pair(tmp_path, part, part)) == [
        "bare and docker ran on a MIG device, a part of a GPU whose other parts share its clocks "
        "and power"
    ]
    assert remarks(*pair(tmp_path / "one", part, {})) == []


def held(share: float, clock: float | None) -> Options:
    return {
        "gauges": {("gpu0", "hw.gpu.throttle.power"): share, ("gpu0", "hw.gpu.clock.sm"): clock}
    }


@pytest.mark.parametrize(
    ("bare", "docker", "said"),
    [
        (0.0, 0.3, "clocks were held down: never in bare, 30 % of the time in docker"),
        (0.87, 0.97, "clocks were held down: 87 % of the time in bare, 97 % of the time in docker"),
        (0.27, 0.3, None),
        (0.3, 0.3, None),
        # The finding starts at 5 %: two sides of it may be as good as equal.
        (0.045, 0.051, None),
    ],
)
def test_what_clocks_that_were_held_down_for_more_of_the_time_explain(
    tmp_path: Path, bare: float, docker: float, said: str | None
) -> None:
    lower = pair(tmp_path / "lower", held(bare, 1.89e9), held(docker, 1.85e9))
    text, explained = clocks_apart(*lower)
    means = "(mean 1.89 GHz against 1.85 GHz: steps of docker may be up to 2.2 % longer by it)"
    assert text == (f"{said} {means}" if said else "")
    assert explained == pytest.approx(math.log(1.89 / 1.85) if said else 0)
    assert invalid_reasons(*lower, across_devices=False) == ()
    assert remarks(*lower) == ([text] if said else [])
    higher = clocks_apart(*pair(tmp_path / "higher", held(bare, 1.85e9), held(docker, 1.89e9)))
    assert higher[1] == pytest.approx(math.log(1.85 / 1.89) if said else 0)
    assert higher[0].endswith("up to 2.1 % shorter by it)" if said else "")
    unknown = pair(tmp_path / "unknown", held(bare, None), held(docker, 1.887e9))
    assert clocks_apart(*unknown) == ((said, math.inf) if said else ("", 0))


def test_runs_at_the_same_time_disturbed_each_other(tmp_path: Path) -> None:
    here = {"host": {"host.name": "one"}}
    assert reasons(tmp_path, {**here, "start": START}, {**here, "start": START + 3}) == (
        "runs of bare and docker overlapped in time on one machine: they disturbed each other",
    )
    apart = {"host": {"host.name": "two"}, "start": START}
    assert reasons(tmp_path / "apart", {"host": {"host.name": "one"}, "start": START}, apart) == ()


def test_runs_of_unknown_hosts_are_not_said_to_have_overlapped(tmp_path: Path) -> None:
    assert reasons(tmp_path, {"start": START}, {"start": START + 3}) == ()


def test_a_clock_that_is_set_by_a_second_makes_no_overlap(tmp_path: Path) -> None:
    here = {"host": {"host.name": "one"}}
    seconds = read(run(tmp_path / "a.gpuwatch", **here)).summary.seconds
    assert seconds is not None
    early = {**here, "start": START + seconds - 0.9}
    assert reasons(tmp_path / "set", {**here, "start": START}, early) == ()


def test_a_run_that_died_before_it_told_its_settings_is_no_difference(tmp_path: Path) -> None:
    dead = {"result": FAILED, "steps": (), "run": {"parameters": {}}}
    assert reasons(tmp_path, [{}, {}], [{}, dead]) == ()
    assert reasons(tmp_path / "all", [{}, {}], [dead, dead]) == ()


def test_values_from_elsewhere_are_made_harmless(tmp_path: Path) -> None:
    hostile = {"run": {"dtype": "x\x1b[31m\u202e" + "y" * 200}}
    (reason,) = reasons(tmp_path, {}, hostile)
    assert reason == f"different data type: bfloat16 against x{'y' * 98}…"
