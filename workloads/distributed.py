"""What torch does for a rank: its threads and GPU, its meeting with the others, its gradients."""

from __future__ import annotations

import os
from datetime import timedelta

import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from .device import choose
from .failures import EnvironmentFailure
from .ranks import Rank

MEETING = timedelta(minutes=5)
"""How long a rank waits for the others to start."""


def share_threads(rank: Rank) -> None:
    """Divide the CPU's threads among the ranks, unless a variable tells their number."""
    if rank.size > 1 and not os.environ.keys() & {"OMP_NUM_THREADS", "MKL_NUM_THREADS"}:
        torch.set_num_threads(max(1, torch.get_num_threads() // rank.size))


def device_of(rank: Rank, requested: str, dtype: str) -> torch.device:
    """The device of a rank: as `choose`, and on CUDA the GPU with the rank's number.

    Raises:
        Failure: as `choose`; there are fewer GPUs than ranks.
    """
    device = choose(requested, dtype)
    if rank.size == 1 or device.type == "cpu":
        return device
    gpus = torch.cuda.device_count()
    if rank.size > gpus:
        raise EnvironmentFailure(
            f"--nproc {rank.size} needs {rank.size} GPUs, one for each rank, and torch sees {gpus}",
            f"use --nproc {gpus}, or --device cpu",
        )
    device = choose(f"cuda:{rank.number}", dtype)
    torch.cuda.set_device(device)
    return device


def join(rank: Rank, device: torch.device) -> None:
    """Meet the other ranks, with gloo on the CPU and NCCL on CUDA. Alone: nothing.

    Raises:
        EnvironmentFailure: torch was built without it.
    """
    if rank.size == 1:
        return
    backend = "nccl" if device.type == "cuda" else "gloo"
    distributed = torch.distributed
    if not distributed.is_available() or not distributed.is_backend_available(backend):
        raise EnvironmentFailure(
            f"--nproc needs torch with {backend}, and torch {torch.__version__} was built without",
            "leave --nproc out, or install a build of torch with it",
        )
    store = distributed.TCPStore(  # type: ignore[attr-defined]
        os.environ["MASTER_ADDR"],
        rank.port,
        rank.size,
        is_master=rank.listener is not None,
        timeout=MEETING,
        wait_for_workers=False,
        master_listen_fd=rank.listener,
    )
    distributed.init_process_group(backend, store=store, rank=rank.number, world_size=rank.size)


def part(rank: Rank) -> None:
    """Leave the group once all ranks are done."""
    if rank.size > 1:
        torch.distributed.barrier()
        torch.distributed.destroy_process_group()


def replicate(rank: Rank, model: nn.Module, device: torch.device) -> nn.Module:
    """The model with gradients averaged over the ranks; alone: the model itself."""
    if rank.size == 1:
        return model
    return DistributedDataParallel(model, [device] if device.type == "cuda" else None)
