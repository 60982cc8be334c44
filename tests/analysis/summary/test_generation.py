"""A language model that generates: its figures, and a roofline of prefill and decode apart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuwatch.analysis.comparison.side_by_side import compare
from gpuwatch.analysis.hardware.bound import COMPUTE, MEMORY
from gpuwatch.analysis.summary.summary import Summary
from gpuwatch.core.metrics import Method
from tests.analysis import sessions

TOLD = {
    "sequences": 8,
    "prompt_tokens": 192,
    "new_tokens": 64,
    "kv_cache_bytes": 2**30,
    "flop_prefill": 6e13,
    "bytes_prefill": 1e11,
    "flop_decode": 5e12,
    "bytes_decode": 1e12,
}


def generated(folder: Path, phases: dict[str, float] | None = None, **told: Any) -> Summary:
    """A run on a made H100, in bfloat16."""
    return sessions.summary(
        folder / "01-bare.gpuwatch",
        step_seconds=0.5,
        phases={"prefill": 0.1, "decode": 0.4} if phases is None else phases,
        extra={"generation": {**TOLD, **told}},
    )


def test_tokens_and_the_first_of_them_are_timed_by_their_phases(tmp_path: Path) -> None:
    generation = generated(tmp_path).generation
    assert generation is not None
    assert generation.time_to_first_token.value == pytest.approx(0.1)
    assert generation.prompt_rate.value == pytest.approx(8 * 192 / 0.1)
    assert generation.token_rate.value == pytest.approx(8 * 63 / 0.4)
    assert generation.kv_cache.value == 2**30
    methods = [figure.method for figure in generation.figures.values()]
    assert methods == [Method.MEASURED] * 3 + [Method.COUNTED]


def test_decode_is_bound_by_bandwidth_where_prefill_is_by_arithmetic(tmp_path: Path) -> None:
    generation = generated(tmp_path).generation
    assert generation is not None
    prefill, decode = generation.rooflines
    assert (prefill.verdict.bound, decode.verdict.bound) == (COMPUTE, MEMORY)
    assert prefill.label.endswith(" prefill") and decode.label.endswith(" decode")
    assert prefill.points[0].rate == pytest.approx(6e14)
    assert decode.points[0].bytes_rate == pytest.approx(2.5e12)


@pytest.mark.torch
def test_decode_of_7b_is_bound_by_bandwidth_as_each_token_reads_all_weights(tmp_path: Path) -> None:
    """Its work is counted, in bfloat16 and of one sequence; each phase is timed as a card would
    take that reaches 60 % of what binds it."""
    torch = pytest.importorskip("torch")
    from gpuwatch.workloads.flop.counting import InferenceCounter
    from gpuwatch.workloads.task import Generation as Length
    from gpuwatch.workloads.tasks.transformer_lm import LAYOUTS, Decoder
    from gpuwatch.workloads.ways import generate_ends

    def run(model: Any, inputs: Any, end: Any) -> Any:
        return generate_ends(model, inputs[0], Length(192, 64), end)

    with torch.device("meta"):
        model, prompt = Decoder(LAYOUTS["7b"]), torch.zeros(1, 192, dtype=torch.long)
    prefill, ends = InferenceCounter(model, (prompt,), run, torch.bfloat16).parts
    work = ends.times(63, 2)
    read = 63 * 2 * sum(weight.numel() for weight in model.parameters())
    assert work.bytes == pytest.approx(read, rel=0.05)
    flop, bandwidth = 989e12, 3352e9
    seconds = {"prefill": prefill.flop / (0.6 * flop), "decode": work.bytes / (0.6 * bandwidth)}
    told = {"flop_prefill": prefill.flop, "bytes_prefill": prefill.bytes, "sequences": 1}
    told |= {"flop_decode": work.flop, "bytes_decode": work.bytes}
    generation = generated(tmp_path, seconds, **told).generation
    assert generation is not None
    first, rest = generation.rooflines
    assert (first.verdict.bound, rest.verdict.bound) == (COMPUTE, MEMORY)
    assert rest.points[0].rate < 0.01 * flop, "one or two FLOP for each byte"
    assert generation.token_rate.value == pytest.approx(0.6 * bandwidth / (read / 63), rel=0.05)


def test_the_figures_are_rows_and_a_run_that_generates_nothing_has_none(tmp_path: Path) -> None:
    rows = {
        row.name: row for row in compare([generated(tmp_path)]).rows if row.group == "generation"
    }
    assert rows["generated tokens/s"].values == (pytest.approx(8 * 63 / 0.4),)
    assert rows["KV cache"].unit == "By"
    plain = sessions.summary(tmp_path / "02-bare.gpuwatch")
    assert plain.generation is None
    assert not [row for row in compare([plain]).rows if row.group == "generation"]


def test_what_is_not_told_is_unknown_with_a_reason_and_never_zero(tmp_path: Path) -> None:
    generation = generated(tmp_path, phases={}, kv_cache_bytes=None).generation
    assert generation is not None
    for figure in generation.figures.values():
        assert figure.value is None and figure.reason
    assert all(not roofline.points for roofline in generation.rooflines)


def test_what_vllm_printed_are_rates_without_a_step(tmp_path: Path) -> None:
    printed = {
        "lines": 7,
        "prompt_tokens_per_second": 61.0,
        "generated_tokens_per_second": 513.0,
        "running_requests": 8.0,
    }
    path = tmp_path / "01-bare.gpuwatch"
    generation = sessions.summary(path, step_seconds=0.5, extra={"generation": printed}).generation
    assert generation is not None and generation.rooflines == ()
    assert generation.token_rate.value == 513.0 and "printed (7)" in generation.token_rate.source
    assert generation.figures["running requests"].value == 8.0
    assert generation.time_to_first_token.method is Method.UNAVAILABLE


def test_without_the_ends_of_sequences_the_rate_of_new_tokens_is_unavailable(
    tmp_path: Path,
) -> None:
    generation = generated(tmp_path, new_tokens=None).generation
    assert generation is not None and generation.token_rate.method is Method.UNAVAILABLE
    assert "ended" in (generation.token_rate.reason or "")
    assert generation.prompt_rate.value is not None
