"""One run of a workload, from its flags to its ``end`` event, after the import of torch."""

from __future__ import annotations

import argparse
import importlib
import os
import time
import warnings
from dataclasses import replace
from pathlib import Path

import torch

from .data.batches import Batches
from .device import describe
from .distributed import device_of, join, part, share_threads
from .errors import translate
from .failures import Failure, UsageFailure
from .flop.counting import count_step
from .lines import emit
from .names import module_of
from .options import TRAINING_FLAGS
from .profiling.hardware_counters import count_executed, unavailable
from .profiling.torch_profiler import DEFAULT_STEPS, Cost, ProfileResult, profile_steps, report
from .ranks import Rank
from .stopping import Stop, Stopped, leave
from .task import Definition, Settings, Task
from .training import AUTOCAST, Plan, Training, plan, set_precision
from .versions import versions


def run(
    flags: argparse.Namespace,
    launched_ns: int,
    import_seconds: float,
    stop: Stop,
    rank: Rank,
) -> int:
    """Train with these flags and report it; returns the exit code.

    Raises:
        Failure: the run cannot begin. Errors of operators pass through.
    """
    dtype = flags.dtype or "float32"
    share_threads(rank)
    device = device_of(rank, flags.device or "auto", dtype)
    emit("versions", **versions())
    name: str = flags.workload
    definition: Definition = importlib.import_module(
        f".tasks.{module_of(name)}", __package__
    ).definition(name)
    settings = settings_of(flags, definition)
    join(rank, device)

    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    if device.type == "cuda":
        set_precision(dtype)
    task = _make(definition, settings, rank)
    batches = Batches(task.data, settings.batch_size, settings.workers, settings.seed, device, rank)
    batches.check_shared_memory()
    training = Training(task, batches, settings, device, stop, rank)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    model_seconds = time.perf_counter() - start

    steps = plan(settings, batches.per_epoch)
    _emit_run(settings, task, batches, steps, device)
    _emit_count(task, batches, settings)
    stop.training = True
    try:
        training.first_step(steps)
        emit(
            "startup",
            import_seconds=import_seconds,
            model_seconds=model_seconds,
            first_step_seconds=training.first_step_seconds,
        )
        training.rest(steps)
    except (Stopped, Exception) as error:
        if isinstance(error, Failure | BrokenPipeError):
            raise
        if not isinstance(error, Stopped) and stop.signum is None:
            raise translate(error, batches.batch_size) from error
        stop.shielded = True
        training.flush()
        _emit_end(training, launched_ns)
        leave(128 + (stop.signum or 0))
    stop.training = False
    batches.close()
    _emit_end(training, launched_ns)
    if rank.size > 1:
        part(rank)
        return 0
    requested = DEFAULT_STEPS if flags.profile is None else flags.profile
    if requested:
        _profile(training, batches, device, requested, stop)
    if flags.counters:
        step_seconds = training.step_seconds
        # A profiler's child needs the GPU's memory, so it must all be free here.
        del task, training, batches
        _count_executed(flags, device, step_seconds, stop)
    return 0


def _make(definition: Definition, settings: Settings, rank: Rank) -> Task:
    """The task: the same in each rank, but for what it draws from here on. Rank 0 downloads."""
    first = rank.number == 0
    if settings.download and rank.size > 1 and not first:
        torch.distributed.barrier()
    task = definition.make(settings if first else replace(settings, download=False))
    if settings.download and rank.size > 1 and first:
        torch.distributed.barrier()
    if rank.size > 1:
        torch.manual_seed(settings.seed + rank.number)
    return task


def _profile(
    training: Training, batches: Batches, device: torch.device, requested: int, stop: Stop
) -> None:
    """Profile some steps after the timed ones; a signal ends the process."""
    cost = Cost()
    stop.training = True
    try:
        result = profile_steps(
            training.again, training.unreported_step, device, requested, training.step_seconds
        )
        if stop.signum is not None:
            raise Stopped
        stop.training = False
    except Stopped:
        stop.shielded = True
        report(ProfileResult(reason="the run was stopped while it was profiled"), device, cost)
        leave(128 + (stop.signum or 0))
    batches.close()
    report(result, device, cost)


def _count_executed(
    flags: argparse.Namespace, device: torch.device, step_seconds: float, stop: Stop
) -> None:
    """Count the operations of some extra steps; a signal ends the process."""
    cost = Cost()
    stop.training = True
    try:
        counted = count_executed(flags, device.type, step_seconds)
        stop.training = False
    except Stopped:
        stop.shielded = True
        emit("counters", **unavailable("the run was stopped while it was counted"), **cost.keys())
        leave(128 + (stop.signum or 0))
    emit("counters", **counted, **cost.keys())


def settings_of(flags: argparse.Namespace, definition: Definition) -> Settings:
    """The flags with the workload's defaults filled in.

    Raises:
        UsageFailure: a flag does not apply to this workload.
    """
    defaults = definition.defaults
    if flags.batch_size is not None and defaults.batch_size is None:
        raise UsageFailure(
            f"{flags.workload} trains on all its data as one batch", "leave --batch-size out"
        )
    if flags.workers is not None and defaults.batch_size is None:
        raise UsageFailure(f"{flags.workload} has no loader", "leave --workers out")
    if flags.image_size is not None and defaults.image_size is None:
        raise UsageFailure(
            f"{flags.workload} has no images, or images of one size", "leave --image-size out"
        )
    steps = flags.steps
    if steps is None and flags.epochs is None:
        steps = defaults.steps
    settings = Settings(
        workload=flags.workload,
        batch_size=defaults.batch_size or 0,
        epochs=flags.epochs or defaults.epochs,
        steps=steps,
        warmup=flags.warmup,
        lr=flags.lr or defaults.lr,
        dtype=flags.dtype or "float32",
        device=flags.device or "auto",
        data=Path(flags.data).expanduser() if flags.data else None,
        download=flags.download,
        image_size=flags.image_size or defaults.image_size,
        workers=defaults.workers if flags.workers is None else flags.workers,
        seed=flags.seed or 0,
        nproc=flags.nproc or 1,
    )
    return replace(settings, batch_size=flags.batch_size or settings.batch_size)


def _emit_run(
    settings: Settings, task: Task, batches: Batches, steps: Plan, device: torch.device
) -> None:
    data = task.data
    parameters = {name: getattr(settings, name) for name in TRAINING_FLAGS}
    if settings.nproc == 1:
        del parameters["nproc"]
    parameters |= {
        "data": str(settings.data) if settings.data else None,
        "steps": steps.total,
        "warmup": steps.warmup,
        "batch_size": batches.batch_size,
    }
    described = {"kind": data.kind, "text": data.text, "samples": data.samples}
    if data.path is not None:
        described["path"] = str(data.path.resolve())
    emit(
        "run",
        workload=settings.workload,
        model=task.text,
        dtype=settings.dtype,
        **describe(device),
        parameters=parameters,
        data=described,
        batch_size=batches.batch_size,
        total_steps=steps.total + (steps.warmup if settings.nproc > 1 else 0),
        warmup_steps=steps.warmup,
        steps_per_epoch=batches.per_epoch,
        trainable_parameters=sum(p.numel() for p in task.model.parameters() if p.requires_grad),
    )


def _emit_count(task: Task, batches: Batches, settings: Settings) -> None:
    """Count a step's work, or say why not: a failed count does not fail the run."""
    start = time.perf_counter()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            inputs, target = batches.example(batches.batch_size)
            work = count_step(
                task.model,
                inputs,
                target,
                task.objective,
                task.optimizer,
                AUTOCAST.get(settings.dtype),
                task.sparse,
            )
    except Failure:
        raise
    except Exception as error:
        reason = str(error).strip().partition("\n")[0]
        emit(
            "count",
            flop_forward_per_sample=None,
            flop_forward_per_step=None,
            flop_backward_per_step=None,
            flop_per_step=None,
            bytes_per_step=None,
            operators=[],
            uncounted_operators=[],
            method=f"not counted: {type(error).__name__}: {reason}",
            seconds=time.perf_counter() - start,
        )
        return
    samples = batches.batch_size
    emit("count", **vars(work), samples=samples, seconds=time.perf_counter() - start)


def _emit_end(training: Training, launched_ns: int) -> None:
    times = os.times()
    emit(
        "end",
        steps=training.steps,
        real_seconds=(time.monotonic_ns() - launched_ns) / 1e9,
        user_seconds=times.user + times.children_user,
        sys_seconds=times.system + times.children_system,
        seconds_reporting=training.seconds_reporting,
    )
