"""Cost of a model's step: FLOP and algorithmic bytes, counted from shapes, operator by operator.

The count runs on a copy of the model whose tensors have shapes but no data. So it uses no random
numbers, changes no statistics, needs no device, and gives the same figures for CPU and GPU.
*Algorithmic bytes* are the sum of the bytes of each operator's inputs and outputs; they ignore
caches and fusion, and views move nothing.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode  # so in torch's documentation
from torch.utils._pytree import tree_leaves, tree_map_only  # torch has no public ones

from .operators import OperatorCounter, Work, together

Objective = Callable[[nn.Module, Any, torch.Tensor], tuple[torch.Tensor, Any, Any]]
"""Loss, scores and labels of a batch; see `task.Task.objective`."""


@dataclass(frozen=True)
class StepWork:
    """Work of one training step of one full batch."""

    flop_forward_per_sample: float
    """FLOP of the forward pass in training mode, including the loss, for one sample."""
    flop_forward_per_step: int
    flop_backward_per_step: int
    flop_per_step: int
    """FLOP of forward and backward, without the optimizer's update and what is recomputed."""
    flop_recomputed_per_step: int
    """FLOP that activation checkpointing computes again in the backward pass."""
    bytes_per_step: int
    """Algorithmic bytes of forward, backward and the optimizer's update."""
    operators: list[dict[str, Any]]
    """``Work.table()`` of the step; its FLOP and bytes add up to those per step."""
    uncounted_operators: list[str]
    """Arithmetic operators without a formula, with their calls; includes all of the update's."""
    method: str


class BackwardCounter(OperatorCounter):  # type: ignore[no-untyped-call]
    """Work of a backward pass; what runs with gradients enabled goes to ``again``.

    Only checkpointing's second forward pass does.
    """

    def __init__(self) -> None:
        super().__init__()
        self.backward = self.work
        self.again = Work()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        self.work = self.again if torch.is_grad_enabled() else self.backward
        return super().__torch_dispatch__(func, types, args, kwargs)


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def copy_model(model: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    """A deep copy with ``convert`` applied to the parameters and buffers."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        converted = convert(parameter.detach())
        memo[id(parameter)] = nn.Parameter(converted, parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = convert(buffer.detach())
    return copy.deepcopy(model, memo)


class _Phantom:
    """Where a count runs: conversion of the tensors, and modes in which the copy runs.

    Usually the ``meta`` device. Autocast, which does not support ``meta``, uses fake CPU tensors,
    and sparse tensors, whose products have no shape-only kernels, use real copies.
    """

    def __init__(self, autocast: torch.dtype | None, real: bool) -> None:
        self.autocast = autocast
        self.real = real
        self.fake = FakeTensorMode() if autocast is not None and not real else None

    def convert(self, tensor: torch.Tensor) -> torch.Tensor:
        if self.real:
            return tensor.detach().clone().cpu()
        if self.fake is not None:
            return self.fake.from_tensor(tensor.detach().cpu())
        return tensor.detach().to("meta")

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            if self.real:
                stack.enter_context(torch.random.fork_rng(devices=[]))
            if self.fake is not None:
                # Without oneDNN's fused recurrent layers nn.LSTM runs as matrix products.
                stack.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
                stack.enter_context(torch.backends.mkldnn.flags(enabled=False))
                stack.enter_context(self.fake)
            yield

    def casting(self) -> contextlib.AbstractContextManager[Any]:
        if self.autocast is None:
            return contextlib.nullcontext()
        return torch.autocast("cpu", self.autocast)


def count_step(
    model: nn.Module,
    inputs: Any,
    target: torch.Tensor,
    objective: Objective,
    make_optimizer: Callable[[Iterable[nn.Parameter]], torch.optim.Optimizer],
    autocast: torch.dtype | None = None,
    real: bool = False,
) -> StepWork:
    """Count one training step on a batch like ``inputs`` (its tensors, samples first).

    ``autocast`` is the data type of an autocast region, or None; ``real`` counts on copies with
    data, which sparse inputs need. Neither the model nor the random state changes.

    Raises:
        Exception: whatever an operator raises that cannot run on shapes alone.
    """
    phantom = _Phantom(autocast, real)
    copied = copy_model(model, phantom.convert).train()
    inputs, target = tree_map_only(torch.Tensor, phantom.convert, (inputs, target))
    samples = _tensors(inputs)[0].shape[0]
    optimizer = make_optimizer(copied.parameters())
    forward, backward, update = OperatorCounter(), BackwardCounter(), OperatorCounter(flop=False)
    with phantom.running():
        with forward, phantom.casting():
            loss, _, _ = objective(copied, inputs, target)
        with backward:
            loss.backward()  # type: ignore[no-untyped-call]
        with update:
            optimizer.step()
    data_type = "float32" if autocast is None else f"autocast {autocast}".replace("torch.", "")
    how = f"{_method(data_type, real)}; the optimizer's update is in the bytes, not in the FLOP"
    return _step_work([forward.work], backward, [update.work], samples, how)


def _step_work(
    forward: Sequence[Work],
    backward: BackwardCounter,
    update: Sequence[Work],
    samples: int,
    method: str,
) -> StepWork:
    step = together([*forward, backward.backward, *update])
    flop = sum(work.flop for work in forward)
    return StepWork(
        flop_forward_per_sample=flop / samples,
        flop_forward_per_step=flop,
        flop_backward_per_step=backward.backward.flop,
        flop_per_step=step.flop,
        flop_recomputed_per_step=backward.again.flop,
        bytes_per_step=step.bytes,
        operators=step.table(),
        uncounted_operators=step.uncounted_operators(),
        method=method,
    )


def _method(data_type: str, real: bool) -> str:
    where = "copies on the CPU" if real else "shapes alone"
    return (
        f"formulas per ATen operator, one full batch, {data_type}, counted on {where}; bytes are "
        "inputs and outputs of every operator, caches and fusion ignored"
    )


class InferenceCounter:
    """Counts parts of a step of inference on a copy of the model, in evaluation mode.

    ``dtype`` is that of the weights and inputs, or None for their own; ``real`` is as in
    `count_step`. ``run`` is called with the copied model and inputs, and with a function that ends
    a part; the work of each part is in ``parts``.
    """

    def __init__(
        self,
        model: nn.Module,
        inputs: Any,
        run: Callable[[nn.Module, Any, Callable[[], None]], Any],
        dtype: torch.dtype | None = None,
        real: bool = False,
    ) -> None:
        def convert(tensor: torch.Tensor) -> torch.Tensor:
            converted = phantom.convert(tensor)
            return converted.to(dtype) if converted.is_floating_point() else converted

        phantom = _Phantom(None, real)
        copied = copy_model(model, convert).eval()
        inputs = tree_map_only(torch.Tensor, convert, inputs)
        self.parts: list[Work] = []
        self._samples = _tensors(inputs)[0].shape[0]
        self._data_type = "float32" if dtype is None else str(dtype).replace("torch.", "")
        self._real = real
        counter = OperatorCounter()

        def end() -> None:
            self.parts.append(counter.work)
            counter.work = Work()

        with phantom.running(), torch.no_grad(), counter:
            self.result = run(copied, inputs, end)

    def work(self) -> StepWork:
        """The work of the whole step, which has no backward pass."""
        method = _method(self._data_type, self._real)
        return _step_work(self.parts, BackwardCounter(), (), self._samples, method)
