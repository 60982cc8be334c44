"""What the pipes of a GPU executed at most, by their hardware counters: for every program.

A counter of GPM or DCGM gives the share of cycles in which a kind of pipe was active: tensor, FP64,
FP32, FP16. Times the clock over the maximum clock, times what the pipe does at the maximum clock,
summed over the pipes, it is the most that was executed, since an active pipe need not be full. It
says nothing of model FLOP: an algorithm like Winograd's executes fewer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from gpuwatch.analysis.hardware.ceilings import peaks_of
from gpuwatch.analysis.measured_value import MeasuredValue, unknown
from gpuwatch.analysis.samples.channels import FULL, Pairs, Samples, arrays, integral
from gpuwatch.analysis.samples.window import Window
from gpuwatch.core import units
from gpuwatch.core.lazy_dataclass import dataclass
from gpuwatch.core.metrics import Method
from gpuwatch.core.models import number
from gpuwatch.session.rows import DeviceRow

TENSOR, FP64 = "hw.gpu.tensor.activity", "hw.gpu.fp64.activity"
FP32, FP16 = "hw.gpu.fp32.activity", "hw.gpu.fp16.activity"
_NAMES = {TENSOR: "tensor", FP64: "FP64", FP32: "FP32", FP16: "FP16"}
CLOCK = "hw.gpu.clock.sm"
METRICS = (TENSOR, FP64, FP32, FP16, CLOCK)
"""What the bound is computed from."""
NOT_FULL = "an active pipe need not be full"
"""Why it is a bound."""

_TENSOR_TYPES = ("tf32", "bfloat16", "float16", "fp8")
_FP64_ON_TENSOR = ("8.0", "9.0")
"""Compute capabilities whose tensor cores multiply FP64, at twice the speed of the FP64 pipes
(white papers of A100 and H100); the float64 peak is that of the tensor cores."""
_WITH_FP4 = ("10.", "12.")
"""Compute capabilities whose tensor cores have FP4, whose peak is not in the tables."""
_FP16_OVER_FP32 = 4.0
"""Speed of vector FP16 over FP32: 4 on GA100, 2 or 1 elsewhere (NVIDIA's architecture white
papers). The largest is used, since the result is an upper bound."""


@dataclass(frozen=True)
class Pipes:
    """What the pipes of a GPU can do."""

    peaks: Mapping[str, float]
    """Dense FLOP/s at the maximum clock, by the metric of the pipe's activity."""
    maximum_clock: float
    """Hz."""
    text: str
    """The convention in words."""

    def rate(self, values: Mapping[str, Any]) -> Any:
        """At most so many FLOP/s, from what is known of :data:`METRICS`, numbers or arrays (n,).

        ``None``: the activity of the tensor or of the FP32 pipes is not known.
        """
        if TENSOR not in values or FP32 not in values:
            return None
        executed = sum(values.get(name, 0.0) * peak for name, peak in self.peaks.items())
        return executed * values.get(CLOCK, self.maximum_clock) / self.maximum_clock


def pipes_of(gpu: DeviceRow, data_type: str | None) -> Pipes | str:
    """The pipes of a GPU, or why what they can do is not known.

    Tensor pipes count with the peak of ``data_type``, or of TF32 for float32; where the type is
    unknown, or none of theirs, with that of their fastest.
    """
    peaks = {name: peak.value for name, peak in peaks_of(gpu).items() if peak.value}
    maximum = number(gpu.attributes.get("clock.sm.max"))
    capability = str(gpu.attributes.get("compute.capability"))
    two_float64 = capability in _FP64_ON_TENSOR
    on_tensor = [name for name in (*_TENSOR_TYPES, *["float64"] * two_float64) if name in peaks]
    if "float32" not in peaks or not on_tensor or not maximum:
        return f"the peaks of {gpu.id} are not known"
    wanted = "tf32" if data_type == "float32" else data_type
    told = tensor = wanted if wanted in on_tensor else max(on_tensor, key=peaks.__getitem__)
    if data_type is None:
        if capability.startswith(_WITH_FP4):
            return f"the data type is not known, nor the FP4 peak of {gpu.id}"
        told = f"{tensor}, their fastest, as the run's type is not known"
    of_pipes = {
        TENSOR: peaks[tensor],
        FP64: peaks.get("float64", 0.0) * (0.5 if two_float64 else 1.0),
        FP32: peaks["float32"],
        FP16: peaks["float32"] * _FP16_OVER_FP32,
    }
    text = (
        "share of cycles in which the tensor, FP64, FP32 and FP16 pipes were active x SM clock / "
        f"maximum clock x their dense peak, without sparsity; tensor pipes: of {told}"
    )
    return Pipes(of_pipes, maximum, text)


def most_executed(
    gpus: Sequence[DeviceRow],
    samples: Sequence[Samples],
    window: Window,
    data_type: str | None,
    missing: str | None,
) -> MeasuredValue:
    """FLOP/s that ``gpus`` together executed at most, mean over ``window``, sample by sample: clock
    and activity go together. ``missing`` is the reason for a run without GPUs."""
    total, texts = 0.0, []
    for gpu in gpus:
        pipes = pipes_of(gpu, data_type)
        if isinstance(pipes, str):
            return unknown("FLOP/s", pipes)
        of_gpu = {each.channel.metric: each for each in samples if each.channel.device == gpu.id}
        part = integral(_rates(pipes, of_gpu), window)
        if part.mean is None or part.coverage < FULL:
            tensor = of_gpu.get(TENSOR)
            reason = tensor.channel.reason if tensor else None
            told = reason or f"samples cover {units.percent(part.coverage)} of the time"
            return unknown("FLOP/s", f"activity of the pipes of {gpu.id}: {told}")
        total += part.mean
        texts.append(pipes.text)
    if not gpus:
        return unknown("FLOP/s", missing or "the run used no GPU")
    source = "; ".join(dict.fromkeys(texts))
    return MeasuredValue(total, "FLOP/s", Method.BOUND, source, NOT_FULL)


def _rates(pipes: Pipes, of_gpu: Mapping[str, Samples]) -> Pairs:
    """The rate at each sample of the tensor pipes' activity; the other channels are read there."""
    import numpy as np  # here: screens, which need no samples of a window, do without it

    known = {name: of_gpu[name].values for name in METRICS if name in of_gpu if of_gpu[name].values}
    t, _ = arrays(known.get(TENSOR, ()))
    rates = pipes.rate({name: np.interp(t, *arrays(values)) for name, values in known.items()})
    return Pairs(t[:0], np.array([])) if rates is None else Pairs(t, rates)


def busiest(mean: Callable[[str], float | None]) -> tuple[float, str] | None:
    """The pipes that worked most: the share of the time, and their name.

    ``mean``: of the activity with that metric, 0 to 1; ``None``: unknown.
    """
    shares = ((mean(metric), name) for metric, name in _NAMES.items())
    return max(((share, name) for share, name in shares if share is not None), default=None)
