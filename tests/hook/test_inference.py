"""Steps of programs that train nothing: what they are, and what is told of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hook.test_programs import FRAMEWORKS, Start, Told, linear, start  # noqa: F401

pytestmark = [pytest.mark.torch, pytest.mark.timeout(600)]

INTERPOLATED = "; of generate's 40 calls 10 were counted, the others interpolated"
GENERATE = """
import torch

class GenerationMixin:
    @torch.no_grad()
    def generate(self, ids, calls=40, **options):
        cache, last = [], ids
        for number in range(calls):
            scores = self(last, cache, number, **options)
            last = torch.multinomial(torch.softmax(scores, -1), 1)
            ids = torch.cat([ids, last], 1)
        return ids
"""
"""What the hook follows in transformers."""


def model(rows: int) -> int:
    """FLOP of a forward pass."""
    return linear(rows, 64, 256, 1) + linear(rows, 256, 10, 1)


def generation_of(prompt: int, new: int) -> int:
    """FLOP of four sequences: their prompts, then one token at a time against a growing cache."""
    layers = 2 * linear(4 * (prompt + new - 1), 64, 12 * 64, 1)
    attention = 2 * 4 * 4 * 64 * (prompt * prompt + sum(range(prompt + 1, prompt + new)))
    return layers + attention + linear(4 * new, 64, 100, 1)


def infers(told: Told) -> bool:
    return bool(told.of("inference")) and not told.of("training")


def test_a_call_without_gradients_is_a_step(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("inference.py", "loader").told
    assert infers(told) and told.of("problem") == []
    assert (told.steps, told.samples) == (10, 152)
    assert told.count["flop_per_step"] == told.count["flop_forward_per_step"] == model(16)
    timed = [line for line in told.of("step") if not line.get("warmup")]
    assert timed and all({*line["phases"]} == {"data", "forward", "other"} for line in timed)
    run = told.of("run")[-1]
    assert "unseen_phases" not in run and "trainable_parameters" not in run
    assert run["dtype"] == "float32"


@pytest.mark.parametrize(
    ("how", "steps", "samples", "flop"),
    [
        ("towers", 10, 3 + 9 * 16, model(16) + linear(16, 10, 4, 1)),
        ("failing", 10, 152, None),  # an operator fails in each step
    ],
)
def test_a_step_is_a_call_of_the_model_that_is_called_most(
    start: Start,  # noqa: F811
    how: str,
    steps: int,
    samples: int,
    flop: int | None,
) -> None:
    (told,) = start.unchanged("inference.py", how).told
    assert infers(told) and told.of("problem") == []
    assert (told.steps, told.samples) == (steps, samples)
    assert told.count["flop_per_step"] == flop


def test_requests_in_several_threads_are_each_a_step(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("inference.py", "threads").told
    assert infers(told) and told.of("problem") == []
    assert (told.steps, told.samples) == (30, 120)


@pytest.mark.parametrize(
    ("how", "steps"), [("as a whole", 10), ("parts", 10), ("in place", 0), ("in a function", 0)]
)
def test_a_compiled_model_is_compiled_as_without_the_hook(
    start: Start,  # noqa: F811
    how: str,
    steps: int,
) -> None:
    (told,) = start.unchanged("inference.py", "compiled", how).told
    assert told.steps == steps and told.of("problem") == []


def test_an_evaluation_with_an_optimizer_at_hand_is_no_inference(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("inference.py", "prepared").told
    assert told.of("step")[0]["step"] <= 8 and told.steps == 8
    kinds = [line["event"] for line in told.lines]
    assert "step" not in kinds[: kinds.index("training")]
    assert told.count["flop_backward_per_step"] > 0


def test_what_was_told_of_inference_is_withdrawn_when_a_training_begins(
    start: Start,  # noqa: F811
) -> None:
    (told,) = start.unchanged("inference.py", "unprepared").told
    at = [line["event"] for line in told.lines].index("training")
    trained = Told(told.hook, told.lines[at:])
    assert (trained.steps, trained.samples) == (8, 7 * 32)  # the model is found in the second
    assert trained.count["flop_forward_per_step"] == pytest.approx(model(32), rel=0.01)
    assert trained.count["flop_backward_per_step"] > 0
    assert trained.of("run")[-1]["trainable_parameters"] == 64 * 256 + 256 + 256 * 10 + 10


@pytest.mark.skipif(FRAMEWORKS is None, reason="GPUWATCH_FRAMEWORKS names no folder")
def test_a_call_of_generate_is_a_step_with_its_tokens(start: Start) -> None:  # noqa: F811
    ran = start.unchanged("generating.py", "alike", path=[str(FRAMEWORKS)])
    (told,) = ran.told
    assert infers(told) and (told.steps, told.samples) == (8, 32)
    tokens = [int(line.split()[1]) for line in ran.stdout.splitlines()]
    assert sum(line["tokens"] for line in told.of("step")) == sum(tokens)
    timed = [line for line in told.of("step") if not line.get("warmup")]
    assert all({"prefill", "decode"} <= {*line["phases"]} for line in timed)
    generation = told.of("generation")[-1]
    new = tokens[-sum(line["count"] for line in timed) :]
    assert generation["sequences"] == 4 and generation["prompt_tokens"] == 12
    assert generation["new_tokens"] == pytest.approx(sum(new) / len(new) / 4)
    length = told.count["operators"][0]["calls"] // 8
    assert told.count["flop_per_step"] == generation_of(12, length)


@pytest.mark.skipif(FRAMEWORKS is None, reason="GPUWATCH_FRAMEWORKS names no folder")
def test_few_of_the_calls_of_generate_are_counted(start: Start) -> None:  # noqa: F811
    (told,) = start.unchanged("generating.py", "long", path=[str(FRAMEWORKS)]).told
    assert told.steps == 8 and told.of("problem") == []
    assert told.count["flop_per_step"] == generation_of(12, 40)
    assert told.count["method"].endswith(INTERPOLATED)


@pytest.mark.parametrize("how", ["evenly", "beside another", "unevenly", "failing"])
def test_what_generate_does_between_counted_calls_is_interpolated(
    start: Start,  # noqa: F811
    tmp_path: Path,
    how: str,
) -> None:
    package = tmp_path / "transformers" / "generation"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").touch()
    (package / "utils.py").write_text(GENERATE)
    (told,) = start.unchanged("decoding.py", how, path=[str(tmp_path)]).told
    assert infers(told) and told.steps == 8 and told.of("problem") == []
    count = told.count
    assert sum(row["flop"] or 0 for row in count["operators"]) == count["flop_per_step"]
    assert sum(row["bytes"] for row in count["operators"]) == count["bytes_per_step"]
    assert (INTERPOLATED + ", which is an estimate" in count["method"]) == (how == "unevenly")
    if how != "unevenly":
        assert count["method"].endswith(INTERPOLATED)
        # Keys, values and words; what grows with the cache, beginning with the prompt.
        decoded = linear(4 * (12 + 39), 64, 64, 1) + linear(4 * 40, 64, 100, 1)
        attention = 2 * 2 * 4 * 64 * (12 * 12 + sum(range(13, 52)))
        other = 40 * linear(4, 64, 100, 1) if how == "beside another" else 0
        assert count["flop_per_step"] == decoded + attention + other


@pytest.mark.skipif(FRAMEWORKS is None, reason="GPUWATCH_FRAMEWORKS names no folder")
def test_longer_prompts_than_those_counted_are_at_least_so_much_work(
    start: Start,  # noqa: F811
) -> None:
    (told,) = start.unchanged("generating.py", "growing", path=[str(FRAMEWORKS)]).told
    assert told.steps == 24 and told.of("count")[-1]["at_least"] is True
    timed = [line for line in told.of("step") if not line.get("warmup")]
    assert timed
    for line in timed:
        prompts = (10 + 2 * step for step in range(line["step"] - line["count"], line["step"]))
        true = sum(generation_of(prompt, 4) for prompt in prompts)
        assert true / 4 < line["flop"] <= true
