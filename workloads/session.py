"""One run of a workload, from its flags to its ``end`` event, after the import of torch."""

from __future__ import annotations

import argparse
import importlib
import os
import time
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from .data.batches import Batches
from .device import describe
from .distributed import device_of, join, part, share_threads
from .failures import Failure, UsageFailure, translate
from .lines import emit
from .memory import check as check_memory
from .names import module_of, short
from .options import TRAINING_FLAGS, lacking
from .ranks import Rank
from .stopping import Stop, Stopped, leave
from .task import Definition, Settings, Task
from .training import Plan, Training, plan
from .versions import versions
from .ways import check_compiler, memory_format, set_attention, set_precision

if TYPE_CHECKING:
    from .profiling.traces import Traced

_LEFT_OUT = {field.name: field.default for field in fields(Settings)}
"""Parameters that are told only if they differ from the defaults that settings have."""


def run(
    flags: argparse.Namespace, launched_ns: int, import_seconds: float, stop: Stop, rank: Rank
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
    if settings.compile != "none":
        check_compiler(device)
    check_memory(definition, settings, device)
    set_attention(settings, device)
    join(rank, device)  # no rank makes its model before all have looked

    start = time.perf_counter()
    torch.manual_seed(settings.seed)
    if device.type == "cuda":
        set_precision(dtype)
    task = _make(definition, settings, rank)
    settings = replace(settings, memory_format=memory_format(task.model, settings, device))
    batches = Batches(task.data, settings.batch_size, settings.workers, settings.seed, device, rank)
    batches.check_shared_memory()
    training = Training(task, batches, settings, device, stop, rank)
    if device.type == "cuda":
        torch.cuda.synchronize(device)
    model_seconds = time.perf_counter() - start

    steps = plan(settings, batches.per_epoch)
    _emit_run(settings, task, batches, steps, device)
    if not steps.warmup:
        _emit_whole(_count(task, batches, settings), stop)
    stop.training = True
    try:
        training.first_step(steps)
        startup = {
            "import_seconds": import_seconds,
            "model_seconds": model_seconds,
            "first_step_seconds": training.first_step_seconds,
        }
        _emit_whole({"startup": startup}, stop)
        if steps.warmup:
            _emit_whole(_count(task, batches, settings), stop)
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
    traced: Sequence[Traced] = ()
    if flags.profile != 0:
        from .further_steps import profile

        traced = profile(training, batches, device, flags.profile, stop)
    if flags.counters:
        from .further_steps import count_executed

        step_seconds = training.step_seconds
        # A profiler's child needs the GPU's memory, so it must all be free here.
        del task, training, batches
        count_executed(flags, device, step_seconds, traced, stop)
    return 0


def _count(task: Task, batches: Batches, settings: Settings) -> dict[str, dict[str, Any]]:
    """A step's work, as events. What this needs of torch takes a second to import: the first step
    does not wait for it, unless it is timed."""
    from .step_work import count

    return count(task, batches, settings)


def _emit_whole(events: dict[str, dict[str, Any]], stop: Stop) -> None:
    """Emit events; a signal waits until they are out."""
    stop.shielded = True
    for event, keys in events.items():
        emit(event, **keys)
    stop.unshield()


def _make(definition: Definition, settings: Settings, rank: Rank) -> Task:
    """The task: the same in each rank, but for what it draws from here on. Rank 0 downloads.

    Raises:
        UsageFailure: ``--data`` is given to a workload that does not read it.
    """
    first = rank.number == 0
    if settings.download and rank.size > 1 and not first:
        torch.distributed.barrier()
    task = definition.make(settings if first else replace(settings, download=False))
    if settings.download and rank.size > 1 and first:
        torch.distributed.barrier()
    if settings.data is not None and task.data.kind != "real":
        raise UsageFailure(f"{short(settings.workload)} makes its own data", "leave --data out")
    if rank.size > 1:
        torch.manual_seed(settings.seed + rank.number)
    return task


def settings_of(flags: argparse.Namespace, definition: Definition) -> Settings:
    """The flags with the workload's defaults filled in.

    Raises:
        UsageFailure: a flag does not apply to this workload.
    """
    defaults = definition.defaults
    if (refusal := lacking(short(flags.workload), defaults, flags)) is not None:
        raise UsageFailure(*refusal)
    steps = flags.steps
    if steps is None and flags.epochs is None:
        steps = defaults.steps
    return Settings(
        workload=flags.workload,
        batch_size=flags.batch_size or defaults.batch_size or 0,
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
        size=flags.size or next(iter(defaults.sizes), None),
        mode=flags.mode or "train",
        memory_format=flags.memory_format or "auto",
        attention=flags.attention or "auto",
        compile=flags.compile or "none",
        checkpointing=flags.checkpointing,
        accumulate=flags.accumulate or 1,
    )


def _emit_run(
    settings: Settings, task: Task, batches: Batches, steps: Plan, device: torch.device
) -> None:
    data = task.data
    every = {name: getattr(settings, name) for name in TRAINING_FLAGS}
    parameters = {name: value for name, value in every.items() if value != _LEFT_OUT[name]}
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
        workload=short(settings.workload),
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
