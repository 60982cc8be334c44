"""Runs with --mode infer: no loss, no update; a language model's prefill and decode apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

pytest.importorskip("torch")

from gpuwatch.workloads.tasks.transformer_lm import LAYOUTS
from tests.workloads.conftest import Report

pytestmark = pytest.mark.torch
Run = Callable[..., Report]


def test_generation_tells_prefill_decode_and_the_cache(fork_workload: Run) -> None:
    done = fork_workload(
        *("transformer-lm", "--size", "260k", "--mode", "infer", "--dtype", "bfloat16"),
        *("--batch-size", 2, "--steps", 2, "--warmup", 1, "--profile", 0),
    )
    assert done.code == 0, done.stderr
    assert done.one("run")["parameters"]["mode"] == "infer"
    for step in done.steps():
        assert set(step["phases"]) == {"data", "copy", "prefill", "decode"}
        assert step["phases"]["prefill"] > 0 < step["phases"]["decode"]
        assert "loss" not in step
    told, count = done.one("generation"), done.one("count")
    assert (told["sequences"], told["prompt_tokens"], told["new_tokens"]) == (2, 192, 64)
    # Keys and values of 5 layers, 4 heads of 8 numbers of two bytes, for 256 tokens.
    assert told["kv_cache_bytes"] == 2 * 2 * 5 * 4 * 8 * 256 * 2
    assert told["kv_cache_bytes"] == LAYOUTS["260k"].extent.cache * 2 * 2
    assert count["flop_per_step"] == told["flop_prefill"] + told["flop_decode"]
    assert count["bytes_per_step"] == told["bytes_prefill"] + told["bytes_decode"]
    assert count["flop_backward_per_step"] == 0


@pytest.mark.parametrize(
    "workload",
    [
        "mnist-cnn",
        "gcn",
        "sentiment-lstm --batch-size 2",
        "bert --size tiny --batch-size 1",
        "unet-diffusion --batch-size 1",
        "attention --size 512 --attention math",
    ],
)
def test_inference_is_the_forward_pass_alone(fork_workload: Run, workload: str) -> None:
    done = fork_workload(*workload.split(), "--mode", "infer", "--steps", 3, "--profile", 0)
    assert done.code == 0, done.stderr
    assert {name for step in done.steps() for name in step["phases"]} == {"data", "copy", "forward"}
    assert all("loss" not in step for step in done.steps())
    count = done.one("count")
    assert count["flop_per_step"] == count["flop_forward_per_step"] > 0
    assert done.all("generation") == []
