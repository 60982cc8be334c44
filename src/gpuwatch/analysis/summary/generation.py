"""What a language model that generates reached: prefill and decode apart.

The workload tells tokens, cache and work of a step once (``generation``), and the seconds of each
phase with its steps. vLLM prints rates instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpuwatch.analysis.hardware.points import Rates
from gpuwatch.analysis.hardware.program import Program
from gpuwatch.analysis.hardware.roofline import Roofline, roofline_of
from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.core.aggregate import product_of
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import JSON, mapping, number

PREFILL, DECODE = "prefill", "decode"
_TIMED = "mean of the phase over the timed steps, or over those that were sampled"
_SHAPE = "shape of the cache's tensor"
_PRINTED = (
    "mean of the lines with tokens that vLLM printed ({lines:,.0f}), ten seconds each by default"
)
_NOT_PRINTED = "vLLM prints none in its log; its /metrics have it"
_ENDS = "where each sequence ended could not be seen"


@dataclass(frozen=True)
class Generation:
    """Figures of the generating steps, and a roofline of each phase."""

    time_to_first_token: MeasuredValue
    """Seconds of the prefill of a batch of prompts."""
    prompt_rate: MeasuredValue
    """Tokens of prompts per second of prefill, of all sequences."""
    token_rate: MeasuredValue
    """Generated tokens per second of decode, of all sequences."""
    kv_cache: MeasuredValue
    """Bytes of the cache of keys and values."""
    requests: MeasuredValue | None
    """Requests that ran at once; ``None``: a step has the same number."""
    rooflines: tuple[Roofline, ...]
    """Of prefill and decode, where the work of each is told."""

    @property
    def figures(self) -> Mapping[str, MeasuredValue]:
        """The figures by their names for people."""
        running = {} if self.requests is None else {"running requests": self.requests}
        return running | {
            "time to first token": self.time_to_first_token,
            "prompt tokens/s": self.prompt_rate,
            "generated tokens/s": self.token_rate,
            "KV cache": self.kv_cache,
        }


def generation_of(
    meta: Mapping[str, JSON], phases: Mapping[str, float], program: Program, whole: Roofline
) -> Generation | None:
    """The figures of a run that generates; None for any other.

    ``phases`` are mean seconds of a step's phases; ``whole``: the roofline of the run.
    """
    told = mapping(meta.get("generation"))
    if (lines := number(told.get("lines"))) is not None:
        return _printed(told, lines)
    sequences, prompt, new, cache = (
        number(told.get(key))
        for key in ("sequences", "prompt_tokens", "new_tokens", "kv_cache_bytes")
    )
    if sequences is None:
        return None
    prefill, decode = phases.get(PREFILL), phases.get(DECODE)
    decoded = None if new is None else new - 1  # the prefill gives the first one
    rooflines = []
    for name, seconds in ((PREFILL, prefill), (DECODE, decode)):
        if f"flop_{name}" not in told:
            continue
        rates = Rates(
            flop=_over(number(told.get(f"flop_{name}")), seconds),
            bytes=_over(number(told.get(f"bytes_{name}")), seconds),
            on_gpu=mapping(meta.get("run")).get("device") == "cuda",
        )
        part = replace(program, label=f"{program.label} {name}")
        rooflines.append(roofline_of(part, rates, whole.ceilings, whole.data_type))
    return Generation(
        _measured(prefill, "s"),
        _measured(_over(product_of(sequences, prompt), prefill), "{token}/s"),
        unknown("{token}/s", _ENDS)
        if new is None
        else _measured(_over(product_of(sequences, decoded), decode), "{token}/s"),
        unknown("By", "the workload did not report it")
        if cache is None
        else MeasuredValue(cache, "By", Method.COUNTED, _SHAPE),
        None,
        tuple(rooflines),
    )


def _printed(told: Mapping[str, JSON], lines: float) -> Generation:
    """The figures that vLLM printed."""

    def mean(key: str, unit: str) -> MeasuredValue:
        return MeasuredValue(
            number(told.get(key)), unit, Method.MEASURED, _PRINTED.format(lines=lines)
        )

    return Generation(
        unknown("s", _NOT_PRINTED),
        mean("prompt_tokens_per_second", "{token}/s"),
        mean("generated_tokens_per_second", "{token}/s"),
        unknown("By", _NOT_PRINTED),
        mean("running_requests", "{request}"),
        (),
    )


def _measured(value: float | None, unit: str) -> MeasuredValue:
    if value is None:
        return unknown(unit, "no timed step reported the seconds of its phases")
    return MeasuredValue(value, unit, Method.MEASURED, _TIMED)


def _over(amount: float | None, seconds: float | None) -> float | None:
    return None if amount is None or not seconds else amount / seconds
