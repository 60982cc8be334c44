"""The work of a run's step: the events ``generation`` and ``count``."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import fields
from typing import Any

from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from .data.batches import Batches
from .failures import Failure
from .flop.counting import InferenceCounter, StepWork, count_step
from .task import Settings, Task
from .ways import HALF, generate_ends

_ATTENTIONS = [
    SDPBackend.MATH,
    SDPBackend.FLASH_ATTENTION,
    SDPBackend.EFFICIENT_ATTENTION,
    SDPBackend.CUDNN_ATTENTION,
]


def count(task: Task, batches: Batches, settings: Settings) -> dict[str, dict[str, Any]]:
    """Keys of the event ``count``, and of ``generation`` before it if the step generates.

    A count that fails does not fail the run: it says why.
    """
    start = time.perf_counter()
    try:
        # Shapes alone may lack the way of attention that the run has been given.
        with warnings.catch_warnings(), sdpa_kernel(_ATTENTIONS):
            warnings.simplefilter("ignore")
            work, generation = _work(task, batches, settings)
    except Failure:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        method = f"not counted: {type(error).__name__}: {reason}"
        told: dict[str, Any] = dict.fromkeys(field.name for field in fields(StepWork))
        told |= {"operators": [], "uncounted_operators": [], "method": method}
        generation = None
    else:
        told = vars(work) | {"samples": batches.batch_size}
    if not told["flop_recomputed_per_step"]:
        del told["flop_recomputed_per_step"]
    told["seconds"] = time.perf_counter() - start
    return ({"generation": generation} if generation else {}) | {"count": told}


def _work(
    task: Task, batches: Batches, settings: Settings
) -> tuple[StepWork, dict[str, Any] | None]:
    """The work of a step; of one that generates, also that of its parts."""
    inputs, target = batches.example(batches.batch_size)
    half = HALF.get(settings.dtype)
    if settings.mode == "train":
        work = count_step(
            task.model, inputs, target, task.objective, task.optimizer, half, task.sparse
        )
        return work, None
    if (generation := task.generation) is None:

        def predict(model: nn.Module, inputs: Any, end: Callable[[], None]) -> None:
            task.predict(model, inputs)
            end()

        return InferenceCounter(task.model, inputs, predict, half, task.sparse).work(), None

    def run(model: nn.Module, inputs: Any, end: Callable[[], None]) -> Any:
        return generate_ends(model, inputs[0], generation, end)

    counted = InferenceCounter(task.model, inputs, run, half)
    prefill, ends = counted.parts
    decode = ends.times(generation.new - 1, 2)
    counted.parts = [prefill, decode]
    parts = {
        "sequences": batches.batch_size,
        "prompt_tokens": generation.prompt,
        "new_tokens": generation.new,
        "kv_cache_bytes": counted.result.tensor.nbytes,
        "flop_prefill": prefill.flop,
        "bytes_prefill": prefill.bytes,
        "flop_decode": decode.flop,
        "bytes_decode": decode.bytes,
        "method": "the cache by the shape of its tensor, FLOP and bytes as in the count; decode "
        "from its first and last token, between which the work grows evenly",
    }
    return counted.work(), parts
