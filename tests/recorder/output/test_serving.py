"""What vLLM prints of its work: rates of tokens, and requests."""

from __future__ import annotations

import json
from typing import Any

from gpuwatch.core.models import Output
from gpuwatch.recorder.output.intake import Intake

V0 = (
    "INFO 01-02 03:04:05 metrics.py:455] Avg prompt throughput: {0:.1f} tokens/s, Avg generation "
    "throughput: {1:.1f} tokens/s, Running: {2} reqs, Swapped: 0 reqs, Pending: 0 reqs, GPU KV "
    "cache usage: 0.3%, CPU KV cache usage: 0.0%."
)
V1 = (
    "(APIServer pid=42) INFO 01-02 03:04:05 [loggers.py:127] Engine {3:03d}: Avg prompt "
    "throughput: {0:.1f} tokens/s, Avg generation throughput: {1:.1f} tokens/s, Running: {2} reqs, "
    "Waiting: 0 reqs, GPU KV cache usage: 1.2%, Prefix cache hit rate: 0.0%"
)


def told(intake: Intake, *lines: str) -> list[dict[str, Any]]:
    rows = intake.take([Output(10, "stderr", "".join(f"{line}\n" for line in lines).encode())])
    assert sum("INTO log" in sql for sql, _ in rows) == len(lines)
    return [json.loads(values[1]) for _, values in rows if values[0] == "generation"]


def test_rates_are_means_of_the_lines_with_tokens() -> None:
    lines = [V0.format(*of) for of in [(60.0, 500.0, 8), (0, 0, 0), (0, 300.0, 4)]]
    assert told(Intake(0), *lines)[-1] == {
        "lines": 2,
        "prompt_tokens_per_second": 30.0,
        "generated_tokens_per_second": 400.0,
        "running_requests": 6.0,
        "t": 10,
    }
    assert told(Intake(0), "Avg prompt throughput: fine", "throughput 1.0 tokens/s") == []


def test_engines_add_up_and_another_recorder_goes_on() -> None:
    first = Intake(0)
    told(first, V1.format(60.0, 500.0, 8, 0), V1.format(20.0, 100.0, 2, 1))
    second = Intake(0, {"cursor": json.loads(json.dumps(first.state))})
    (last,) = told(second, V1.format(0.0, 300.0, 4, 0))
    assert last["lines"] == 3 and last["prompt_tokens_per_second"] == 30.0 + 20.0
    assert last["generated_tokens_per_second"] == 400.0 + 100.0
    assert last["running_requests"] == 6.0 + 2.0
