"""Steps after the timed ones, under a profiler: the events ``profile`` and ``counters``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

import torch

from .data.batches import Batches
from .lines import emit
from .profiling import hardware_counters
from .profiling.torch_profiler import DEFAULT_STEPS, Cost, ProfileResult, profile_steps, report
from .profiling.traces import Traced
from .stopping import Stop, Stopped, leave
from .training import Training


def profile(
    training: Training, batches: Batches, device: torch.device, steps: int | None, stop: Stop
) -> Sequence[Traced]:
    """Profile some steps after the timed ones; a signal ends the process. The kernels of one."""
    cost = Cost()
    stop.training = True
    try:
        result = profile_steps(
            batches.begin,
            training.unreported_step,
            device,
            DEFAULT_STEPS if steps is None else steps,
            training.step_seconds,
        )
        if stop.signum is not None:
            raise Stopped
        stop.training = False
    except Stopped:
        stop.shielded = True
        stopped = ProfileResult(reason="the run was stopped while it was profiled")
        report(stopped, device, emit, **cost.keys())
        leave(128 + (stop.signum or 0))
    batches.close()
    report(result, device, emit, **cost.keys())
    return result.launches


def count_executed(
    flags: argparse.Namespace,
    device: torch.device,
    step_seconds: float,
    traced: Sequence[Traced],
    stop: Stop,
) -> None:
    """Count the operations of some extra steps, whose kernels are ``traced`` as far as is known; a
    signal ends the process."""
    cost = Cost()
    stop.training = True
    try:
        counted = hardware_counters.count_executed(flags, device.type, step_seconds, traced)
        stop.training = False
    except Stopped:
        stop.shielded = True
        emit(
            "counters",
            **hardware_counters.unavailable("the run was stopped while it was counted"),
            **cost.keys(),
        )
        leave(128 + (stop.signum or 0))
    emit("counters", **counted, **cost.keys())
