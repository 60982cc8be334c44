"""Batches for training: from a loader, epoch after epoch, or one constant batch."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader

from ..failures import EnvironmentFailure, UsageFailure
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
    """A task's data as an endless sequence of batches; `begin` restarts at epoch 1."""

    def __init__(
        self, data: Data, batch_size: int, workers: int, seed: int, device: torch.device
    ) -> None:
        self.batch_size = batch_size
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
        if batch_size > data.samples:
            raise UsageFailure(
                f"a batch of {batch_size} is more than the data's {data.samples} samples",
                f"choose --batch-size {data.samples} or less",
            )
        generator = torch.Generator().manual_seed(seed)
        self._loader = DataLoader(
            data.dataset,
            batch_size,
            shuffle=True,
            num_workers=workers,
            pin_memory=device.type == "cuda",
            persistent_workers=workers > 0,
            generator=generator,
        )
        self.per_epoch = len(self._loader)

    def begin(self) -> None:
        """Start over at epoch 1, with the workers started."""
        self._epoch, self._taken = 1, 0
        if self._loader is not None:
            self._iterator = iter(self._loader)

    def example(self, samples: int) -> tuple[Inputs, torch.Tensor]:
        """A full batch like the loader's, made without the loader or its random numbers."""
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
        in_flight = self._loader.num_workers * (self._loader.prefetch_factor or 2) + 1
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
                self._iterator = iter(self._loader)
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
            self._loader._iterator = None
