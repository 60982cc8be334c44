"""Batches for training: from a loader, epoch after epoch, or one constant batch."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch.utils.data import DataLoader
from torch.utils.data.distributed import DistributedSampler

from ..failures import EnvironmentFailure, UsageFailure
from ..ranks import Rank
from ..task import Data

Inputs = tuple[torch.Tensor, ...]

SHARED_MEMORY = Path("/dev", "shm")


@dataclass(frozen=True)
class Batch:
    """Inputs and target of a step. ``epoch`` (from 1) is set only on an epoch's last batch."""

    inputs: Inputs
    target: torch.Tensor
    samples: int
    epoch: int | None


class Batches:
    """A task's data as an endless sequence of batches; `begin` restarts at epoch 1.

    Of several ranks, each has its own shard of the data, all of the same size.
    """

    def __init__(
        self, data: Data, batch_size: int, workers: int, seed: int, device: torch.device, rank: Rank
    ) -> None:
        self.batch_size = batch_size
        self._ranks = rank.size
        self._sampler: DistributedSampler[Any] | None = None
        self._loader: DataLoader[Any] | None = None
        self._fixed: tuple[Inputs, torch.Tensor] | None = None
        self._iterator: Iterator[Any] = iter(())
        self._epoch = 1
        self._taken = 0
        if data.batch is not None:
            inputs, target = data.batch
            self._fixed = tuple(t.to(device) for t in inputs), target.to(device)
            self.per_epoch = 1
            self.batch_size = inputs[0].shape[0]
            return
        if data.dataset is None:
            raise ValueError("a task's data needs a dataset or a batch")
        if rank.size > 1:
            self._sampler = DistributedSampler(data.dataset, rank.size, rank.number, seed=seed)
        samples = len(self._sampler) if self._sampler else data.samples
        if batch_size > samples:
            whose = "a rank's" if rank.size > 1 else "the data's"
            raise UsageFailure(
                f"a batch of {batch_size} is more than {whose} {samples} samples",
                f"choose --batch-size {samples} or less",
            )
        generator = torch.Generator().manual_seed(seed + rank.number)
        self._loader = DataLoader(
            data.dataset,
            batch_size,
            shuffle=self._sampler is None,
            sampler=self._sampler,
            num_workers=workers,
            pin_memory=device.type == "cuda",
            persistent_workers=workers > 0,
            generator=generator,
            worker_init_fn=end_quietly,
        )
        self.per_epoch = len(self._loader)

    def begin(self) -> None:
        """Start over at epoch 1, with the workers started."""
        self._epoch, self._taken = 1, 0
        if self._loader is not None:
            self._iterator = self._begin_epoch(self._loader)

    def _begin_epoch(self, loader: DataLoader[Any]) -> Iterator[Any]:
        if self._sampler is not None:
            self._sampler.set_epoch(self._epoch)
        return iter(loader)

    def example(self, samples: int) -> tuple[Inputs, torch.Tensor]:
        """A full batch like the loader's, inputs and target of (samples, ...), made without
        the loader or its random numbers."""
        if self._fixed is not None:
            return self._fixed
        assert self._loader is not None
        with torch.random.fork_rng(devices=[]):
            one_input, one_target = self._loader.dataset[0]
        inputs, target = self._loader.collate_fn([(one_input, one_target)])
        return (
            (inputs.expand(samples, *inputs.shape[1:]).contiguous(),),
            target.expand(samples, *target.shape[1:]).contiguous(),
        )

    def check_shared_memory(self, folder: Path = SHARED_MEMORY) -> None:
        """Refuse shared memory that is too small for the workers' batches in flight.

        Torch's loader passes batches through it, and a worker that finds it full dies.

        Raises:
            EnvironmentFailure: it is too small.
        """
        if self._loader is None or not self._loader.num_workers:
            return
        inputs, target = self.example(self.batch_size)
        size = sum(t.numel() * t.element_size() for t in (*inputs, target))
        of_rank = self._loader.num_workers * (self._loader.prefetch_factor or 2) + 1
        in_flight = of_rank * self._ranks
        try:
            status = os.statvfs(folder)
        except OSError:
            return
        free = status.f_bavail * status.f_frsize
        if size * in_flight > free:
            raise EnvironmentFailure(
                f"the loader needs {size * in_flight >> 20} MiB of shared memory for {in_flight} "
                f"batches of {self.batch_size}, and {folder} has {free >> 20} MiB free",
                "give the container a larger /dev/shm (docker: --shm-size 2g), use a smaller "
                "--batch-size, or --workers 0",
            )

    def next(self) -> Batch:
        """The next batch; an epoch's last batch is followed by the next epoch's first."""
        self._taken += 1
        if self._fixed is not None:
            inputs, target = self._fixed
        else:
            try:
                one_input, target = next(self._iterator)
            except StopIteration:
                assert self._loader is not None
                self._iterator = self._begin_epoch(self._loader)
                one_input, target = next(self._iterator)
            inputs = (one_input,)
        epoch = None
        if self._taken == self.per_epoch:
            epoch, self._epoch, self._taken = self._epoch, self._epoch + 1, 0
        return Batch(inputs, target, inputs[0].shape[0], epoch)

    def close(self) -> None:
        """End the workers, so that their processor time counts as that of children."""
        self._iterator = iter(())
        if self._loader is not None:
            self._loader._iterator = None  # a profile begins with this loader again


def end_quietly(worker: int) -> None:
    """Print no traceback in a worker whose trainer has ended: the worker hands it its tensors in a
    thread, which tells an error that way."""
    sys.excepthook = _tell_unless_cut_off


def _tell_unless_cut_off(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    if not issubclass(kind, (EOFError, ConnectionError)):
        sys.__excepthook__(kind, error, trace)
