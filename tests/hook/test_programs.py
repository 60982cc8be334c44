"""Programs as users write them, unmodified: what the hook tells of them, and what it changes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gpuwatch.hook import archive
from tests.forks import Forks

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

PROGRAMS = Path(__file__).with_name("programs")
LOG_PREFIX = re.compile(r"^([A-Z])\d{4} [\d:.]+ \d+ ", re.MULTILINE)
"""Date, time and process of a line of torch's log."""
TORCHRUN = ("-m", "torch.distributed.run", "--nproc-per-node", "2")


def linear(rows: int, inputs: int, outputs: int, products: int = 3) -> int:
    """FLOP of a linear layer: forward, gradient of the weight and (third) of the input."""
    return 2 * rows * inputs * outputs * products


def classifier(rows: int) -> int:
    return linear(rows, 64, 256, 2) + linear(rows, 256, 10)


def encoder(length: int, rows: int = 4) -> int:
    """An embedding, a layer of attention and one fed forward, and a head."""
    tokens = rows * length
    layers = linear(tokens, 32, 96) + linear(tokens, 32, 32) + 2 * linear(tokens, 32, 64)
    attention = 3 * 4 * rows * length * length * 32
    return layers + attention + linear(tokens, 32, 100)


def discriminator(rows: int, products: int) -> int:
    return linear(rows, 64, 32, products) + linear(rows, 32, 1)


GAN = (
    2 * discriminator(16, 2)  # real ones and fakes, for itself
    + discriminator(16, 3)  # fakes, for the generator
    + linear(16, 8, 32, 2)
    + linear(16, 32, 64)
)


@dataclass
class Told:
    """What a process told of itself."""

    hook: dict[str, Any]
    lines: list[dict[str, Any]]

    def of(self, event: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["event"] == event]

    @property
    def steps(self) -> int:
        numbers = [line["step"] for line in self.of("step")]
        assert numbers == sorted(set(numbers))
        assert sum(line["count"] for line in self.of("step")) == (numbers[-1] if numbers else 0)
        return sum(line["count"] for line in self.of("step"))

    @property
    def samples(self) -> int:
        return sum(line.get("samples", 0) for line in self.of("step"))

    @property
    def count(self) -> dict[str, Any]:
        *_, count = self.of("count")  # the last: of all counted steps
        return count


@dataclass
class Ran:
    code: int
    stdout: str
    stderr: str
    told: list[Told]


class Start:
    """Runs programs with the hook and without it: each command once."""

    def __init__(self, folder: Path, plainly: Forks) -> None:
        self._folder = folder
        self._plainly = plainly
        self._hook = folder / "hook.pyz"
        archive.build(self._hook)
        self._ran: dict[tuple[object, ...], Ran] = {}

    def __call__(
        self, *command: str, hooked: bool = True, options: str = "", path: Sequence[str] = ()
    ) -> Ran:
        asked = (command, hooked, options, *path)
        if asked not in self._ran:
            self._ran[asked] = self._run(command, hooked, options, path)
        return self._ran[asked]

    def _run(self, command: Sequence[str], hooked: bool, options: str, path: Sequence[str]) -> Ran:
        channel = self._folder / f"channel{len(self._ran)}"
        where = self._folder / f"where{len(self._ran)}"
        channel.mkdir()
        where.mkdir()
        variables = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
        if hooked:
            variables["PYTHONPATH"] = os.pathsep.join((str(self._hook), *path))
            variables |= {"GPUWATCH_HOOK": str(channel), "GPUWATCH_HOOK_OPTIONS": options}
        full = [str(PROGRAMS / each) if each.endswith(".py") else each for each in command]
        if hooked or path:
            done = subprocess.run(
                [sys.executable, *full], cwd=where, env=variables, capture_output=True, text=True
            )
        else:
            done = self._plainly.run(*full, folder=where, variables=variables)
        told = []
        for file in sorted(channel.iterdir()):
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            assert lines[0]["event"] == "hook"
            told.append(Told([line for line in lines if line["event"] == "hook"][-1], lines))
        stderr = LOG_PREFIX.sub("", done.stderr)
        return Ran(done.returncode, done.stdout, stderr, told)

    def unchanged(self, *command: str, options: str = "", path: Sequence[str] = ()) -> Ran:
        """The hooked run, which prints and ends as the other one does."""
        plain = self(*command, hooked=False, path=path)
        hooked = self(*command, options=options, path=path)
        assert (hooked.stdout, hooked.stderr) == (plain.stdout, plain.stderr)
        assert hooked.code == plain.code
        return hooked


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory, plainly: Forks) -> Start:
    return Start(tmp_path_factory.mktemp("programs"), plainly)


@dataclass
class Expected:
    steps: int
    samples: int
    flop: float
    recomputed: float = 0
    uncounted: str | None = None


CHECKPOINTED = linear(16, 64, 128, 2) + 3 * linear(16, 128, 128) + linear(16, 128, 10)
EXPECTED = {
    "plain.py": Expected(10, 144, classifier(16)),
    "short_epochs.py": Expected(8, 128, classifier(16)),
    "no_loader.py": Expected(8, 7 * 8, linear(128, 32, 64) + linear(128, 64, 50)),
    "prefetch.py": Expected(10, 144, classifier(16)),
    "accumulation.py": Expected(8, 256, 4 * classifier(8)),
    "amp.py": Expected(8, 128, classifier(16)),
    "checkpointing.py": Expected(8, 128, CHECKPOINTED, 3 * linear(16, 128, 128, 1)),
    "checkpointing.py reentrant": Expected(8, 128, CHECKPOINTED, 3 * linear(16, 128, 128, 1)),
    "variable_length.py": Expected(12, 48, encoder(48)),
    "gan.py": Expected(8, 128, GAN),
    "lbfgs.py": Expected(8, 128, 4 * (linear(16, 64, 32, 2) + linear(16, 32, 1))),
    "custom_function.py": Expected(
        8, 128, linear(16, 64, 32) + linear(16, 32, 10), uncounted="mylib.gate x1"
    ),
    "higher_order.py": Expected(  # torch.cond computes its branch again in the backward pass
        8, 64, linear(128, 32, 96, 1) + 4 * 8 * 16 * 16 * 32 + linear(128, 32, 32, 3)
    ),
    "modes.py": Expected(8, 128, classifier(16)),
    "retries.py": Expected(8, 128, classifier(16)),
    "backward_retries.py": Expected(8, 128, classifier(16)),
    "first_dimension.py": Expected(8, 32, 4 * linear(64, 27, 4, 2)),
    "time_first.py": Expected(8, 32, linear(4 * 20, 8, 16, 2)),
    "steps_in_backward.py": Expected(8, 128, classifier(16)),
    "compiled.py": Expected(8, 128, classifier(16)),
    "compiled_blocks.py": Expected(8, 7 * 6, linear(6, 8, 16, 2) + linear(6, 16, 16)),
}


@pytest.mark.parametrize("program", EXPECTED)
def test_a_program_runs_as_without_the_hook_and_its_work_is_known(
    start: Start, program: str
) -> None:
    expected = EXPECTED[program]
    ran = start.unchanged(*program.split())
    (told,) = ran.told
    assert ran.code == 0 and "loss" in ran.stdout and told.of("problem") == []
    assert (told.steps, told.samples) == (expected.steps, expected.samples)
    count = told.count
    assert count["flop_per_step"] == pytest.approx(expected.flop, rel=0.01)
    assert count["flop_recomputed_per_step"] == pytest.approx(expected.recomputed, rel=0.01)
    assert expected.uncounted is None or expected.uncounted in count["uncounted_operators"]
    assert told.of("end")[0]["steps"] == expected.steps


@pytest.mark.parametrize(
    ("program", "parameters"),
    [
        ("plain.py", 64 * 256 + 256 + 256 * 10 + 10),
        ("steps_in_backward.py", 64 * 256 + 256 + 256 * 10 + 10),
        ("gan.py", 8 * 32 + 32 + 32 * 64 + 64 + 64 * 32 + 32 + 32 + 1),
    ],
)
def test_parameters_of_all_optimizers_are_counted(
    start: Start, program: str, parameters: int
) -> None:
    (told,) = start(program).told
    assert told.of("run")[-1]["trainable_parameters"] == parameters


@pytest.mark.parametrize("how", ["unfrozen", "back and forth", "another"])
def test_work_is_counted_anew_where_something_else_is_trained(start: Start, how: str) -> None:
    (told,) = start.unchanged("changes.py", how).told
    head = linear(16, 64, 256, 1) + linear(16, 256, 10, 2)
    first, second = {
        "unfrozen": (head, classifier(16)),
        "back and forth": (head, classifier(16)),
        "another": (classifier(16), linear(16, 64, 10, 2)),
    }[how]
    assert told.count["flop_per_step"] == first
    timed = [line for line in told.of("step") if not line.get("warmup")]
    anew = [line["flop"] / line["count"] for line in timed if "flop" in line]
    assert set(anew) == {second}
    assert sum(line["count"] for line in timed if "flop" in line) >= 20
    assert told.of("problem") == []


def test_what_is_compiled_while_steps_are_passed_over_is_compiled_once(start: Start) -> None:
    (told,) = start.unchanged("compiled_late.py").told
    assert told.of("timing")[-1]["steps_passed"] > 4000, "before and after"


def test_samples_belong_to_the_step_that_is_trained_on_them(start: Start) -> None:
    (told,) = start("prefetch.py").told
    partial = [line for line in told.of("step") if line.get("flop")]
    assert told.samples == 144 and partial == []


def work(told: Told) -> float:
    """FLOP of the steps after the warm-up: each line's own, or those of the count."""
    each = told.count["flop_per_step"]
    lines = [line for line in told.of("step") if not line.get("warmup")]
    return sum(line.get("flop", each * line["count"]) for line in lines)


def test_a_batch_that_is_trained_on_again_is_work_again(start: Start) -> None:
    (told,) = start.unchanged("reuse.py").told
    assert told.steps == 16 and told.samples == 128
    assert work(told) == pytest.approx(13 * classifier(16), rel=0.01)


def test_the_end_of_an_epoch_accumulates_fewer_batches(start: Start) -> None:
    """The step that is counted is such a short one; of the others the second is."""
    (told,) = start.unchanged("accumulation_tail.py").told
    assert told.count["flop_per_step"] == pytest.approx(2 * classifier(8), rel=0.01)
    assert work(told) == pytest.approx((2 + 4 + 4 + 2) * classifier(8), rel=0.01)
    assert "at_least" not in told.of("count")[-1]


def test_skipped_steps_of_a_scaler_are_named(start: Start) -> None:
    (told,) = start("amp.py").told
    assert [step for line in told.of("step") for step in line.get("skipped", [])] == [3, 5]
    assert told.of("run")[-1]["dtype"] == "bfloat16"


def test_each_kind_of_step_is_counted_once(start: Start) -> None:
    (told,) = start("variable_length.py").told
    for line in told.of("step"):
        steps = range(line["step"] - line["count"], line["step"])
        lengths = [16 * (1 + step % 3) for step in steps]
        assert line["tokens"] == 4 * sum(lengths)
        if line["step"] > 5:
            flop = line.get("flop", told.count["flop_per_step"] * line["count"])
            assert flop == pytest.approx(sum(map(encoder, lengths)), rel=0.01)
    assert sum(line["count"] for line in told.of("step") if line.get("warmup")) == 5


PARTS = linear(32, 64, 32, 2) + 2 * linear(32, 32, 32) + linear(32, 32, 10)


@pytest.mark.parametrize(
    ("how", "flop", "recomputed"),
    [
        ("blocks", PARTS, 0),
        ("around", PARTS + linear(32, 64, 32), linear(32, 64, 32, 1) + linear(32, 32, 32, 1)),
        ("inside", PARTS, None),  # the compiler chooses what it computes again
    ],
)
def test_compiled_parts_are_counted_with_the_rest(
    start: Start, how: str, flop: int, recomputed: int | None
) -> None:
    """Dynamo compiles as often; losses, random numbers and autocast stay what they are."""
    (told,) = start.unchanged("compiled_parts.py", how).told
    assert told.count["flop_per_step"] == flop and told.of("problem") == []
    assert told.count["flop_recomputed_per_step"] == recomputed
    assert told.of("run")[-1]["dtype"] == "bfloat16"


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("cond", "cannot be counted on shapes alone: DataDependentOutputException"),
        ("map", "higher_order.map_impl"),
        ("custom", "a backend whose backward pass cannot be told from the rest"),
        ("optimize", "graphs did not all come by torch.compile"),
        ("autograd", "compiled autograd"),
    ],
)
def test_a_graph_that_cannot_be_counted_makes_flop_unavailable(
    start: Start, how: str, reason: str
) -> None:
    (told,) = start.unchanged("compiled_parts.py", how).told
    assert told.count["flop_per_step"] is None and reason in told.count["method"]


def test_what_is_made_of_a_trained_model_is_as_without_the_hook(start: Start) -> None:
    """Saved, scripted, traced, exported, compiled: nothing of the hook is in it."""
    (told,) = start.unchanged("objects.py").told
    assert told.steps == 12 and told.of("problem") == []


def test_blocks_that_are_compiled_as_a_whole_have_a_forward_pass(start: Start) -> None:
    (told,) = start("compiled_blocks.py").told
    assert all(line["phases"]["forward"] for line in told.of("step") if not line.get("warmup"))


def test_a_compiled_optimizer_is_compiled_as_without_the_hook(start: Start) -> None:
    plain = start("compiled_optimizer.py", hooked=False)
    hooked = start("compiled_optimizer.py")
    assert hooked.stdout.splitlines()[:-1] == plain.stdout.splitlines()[:-1]
    (told,) = hooked.told
    assert told.steps == 0 and "no step of an optimizer" in told.of("problem")[0]["text"]


def test_a_program_that_ends_within_the_counted_step_ends_as_it_does(start: Start) -> None:
    ran = start.unchanged("ends_early.py")
    (told,) = ran.told
    assert (ran.code, told.steps, told.samples) == (3, 2, 32)


def usable_nodes() -> list[int]:
    allowed = os.sched_getaffinity(0)
    lines = subprocess.check_output(["lscpu", "--parse=CPU,NODE"], text=True).splitlines()
    pairs = [line.split(",") for line in lines if not line.startswith("#")]
    return sorted({int(node) for cpu, node in pairs if int(cpu) in allowed})


@pytest.mark.parametrize(("launcher", "sharded"), [(TORCHRUN, ("fsdp",)), ((), ())])
def test_each_rank_tells_its_steps(
    start: Start, launcher: tuple[str, ...], sharded: tuple[str, ...]
) -> None:
    plain = start("distributed.py", *sharded, hooked=False)
    hooked = start(*launcher, "distributed.py", *sharded)
    assert hooked.code == 0 and hooked.stdout == plain.stdout
    ranks = {told.hook["rank"]: told for told in hooked.told if told.steps}
    assert sorted(ranks) == [0, 1]
    for told in ranks.values():
        assert told.hook["world_size"] == 2 and told.of("problem") == []
        assert (told.steps, told.samples) == (8, 128)
        run = told.of("run")[-1]
        assert run["sharded"] is bool(sharded) and run["cpu_nodes"] == usable_nodes()
        assert told.count["flop_per_step"] == pytest.approx(classifier(16), rel=0.01)
        assert not any("c10d" in each for each in told.count["uncounted_operators"])


ADAPTER = """
import gpuwatch_hook

def watch(module):
    original = module.train

    def train(steps):
        gpuwatch_hook.plan(steps)
        original(steps)

    module.train = train
"""
FRAMEWORK = """
import torch

def train(steps):
    weight = torch.nn.Parameter(torch.ones(4))
    optimizer = torch.optim.SGD([weight])
    for _ in range(steps):
        weight.sum().backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("adapter", "planned", "problems"),
    [
        (ADAPTER, 7, []),
        ("raise SystemError", None, ["the hook left the program: SystemError:"]),
        (None, None, []),
    ],
)
def test_another_package_adds_an_adapter_and_cannot_break_a_program(
    plainly: Forks,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    adapter: str | None,
    planned: int | None,
    problems: list[str],
) -> None:
    package = tmp_path / "package"
    info = package / "adapters-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: adapters\nVersion: 1.0\n")
    value = "framework.for_gpuwatch" + (":watch" if adapter == ADAPTER else "")
    (info / "entry_points.txt").write_text(
        f"[gpuwatch.hook_adapters]\nframework.training = {value}\n"
    )
    framework = package / "framework"
    framework.mkdir()
    (framework / "__init__.py").write_text("raise RuntimeError('imported by gpuwatch')")
    if adapter is not None:
        (framework / "for_gpuwatch.py").write_text(adapter)
    monkeypatch.syspath_prepend(str(package))
    start = Start(tmp_path, plainly)
    (framework / "__init__.py").write_text("")
    (framework / "training.py").write_text(FRAMEWORK)
    program = tmp_path / "program.py"
    program.write_text("import torch.optim, framework.training\nframework.training.train(7)")
    (told,) = start(str(program), path=[str(package)]).told
    assert [line["text"] for line in told.of("problem")] == problems
    assert {line.get("total_steps") for line in told.of("step")} == (
        {planned} if not problems else set()
    )


FRAMEWORKS = os.environ.get("GPUWATCH_FRAMEWORKS")
"""A folder with transformers, accelerate, lightning and timm: of ``pip install --target``."""


@pytest.mark.skipif(FRAMEWORKS is None, reason="GPUWATCH_FRAMEWORKS names no folder")
@pytest.mark.parametrize(
    ("program", "steps", "samples", "planned"),
    [
        ("trainer.py", 10, 68, 10),
        ("lightning_module.py", 14, 200, 14),
        ("timm_script.py", 6, 48, None),
        ("accelerated.py", 10, 136, None),
    ],
)
def test_frameworks_train_as_without_the_hook(
    start: Start, program: str, steps: int, samples: int, planned: int | None
) -> None:
    runs = [start(program, "saved", hooked=hooked, path=[str(FRAMEWORKS)]) for hooked in (0, 1)]
    plain, hooked = (
        [line for line in run.stdout.splitlines() if "runtime" not in line] for run in runs
    )
    assert hooked == plain and len(plain) > steps
    (told,) = runs[1].told
    assert (told.steps, told.samples) == (steps, samples)
    assert told.count["flop_per_step"] > 0
    assert {line.get("total_steps") for line in told.of("step")} == {planned}
