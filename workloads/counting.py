"""What a model's step costs: FLOP and algorithmic bytes, counted from shapes, operator by operator.

The count runs on a copy of the model whose tensors have shapes and no data, so it draws no random
number, moves no statistic, needs no device, and gives the same figures for a run on a CPU and on
a GPU. *Algorithmic bytes* are the sum of the bytes of each operator's inputs and outputs: they
ignore caches and fusion, and views move nothing.
"""

from __future__ import annotations

import contextlib
import copy
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from .formulas import MOVERS, VIEWS, flop_of

Objective = Callable[[nn.Module, Any, torch.Tensor], tuple[torch.Tensor, Any, Any]]
"""Loss, scores and labels of a batch; `task.Task.objective`."""


@dataclass
class Work:
    """What the operators seen so far cost."""

    flop: int = 0
    bytes: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    uncounted: Counter[str] = field(default_factory=Counter)
    """Calls of the operators that do arithmetic and have no formula."""

    def uncounted_operators(self) -> list[str]:
        """``"aten.native_batch_norm x20"``, by name."""
        return [f"{name} x{calls}" for name, calls in sorted(self.uncounted.items())]


@dataclass(frozen=True)
class StepWork:
    """Work of one training step of one full batch."""

    flop_forward_per_sample: float
    """FLOP of the forward in training mode, the loss included, for one sample."""
    flop_per_step: int
    """FLOP of forward and backward."""
    bytes_per_step: int
    """Algorithmic bytes of forward, backward and the optimizer's update."""
    uncounted_operators: list[str]
    method: str


class OperatorCounter(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds up the work of every operator that runs while it is active, into ``work``."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.work = Work()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func.namespace not in ("aten", "torchvision"):
            return func(*args, **kwargs)
        packet = func._overloadpacket
        name = packet._qualified_op_name.replace("::", ".")
        operator = name.partition(".")[2]
        if is_view(func) or operator in VIEWS:
            return func(*args, **kwargs)
        out = func(*args, **kwargs)
        work = self.work
        work.calls[name] += 1
        work.bytes += bytes_of(operator, args, kwargs, out)
        flop = flop_of(packet, args, kwargs, out)
        if flop is not None:
            work.flop += flop
        elif operator not in MOVERS:
            work.uncounted[name] += 1
        return out


def is_view(func: Any) -> bool:
    """Whether an operator returns a view of its input, and so moves nothing."""
    return any(
        result.alias_info is not None and not result.alias_info.is_write
        for result in func._schema.returns
    )


def bytes_of(operator: str, args: Any, kwargs: Any, out: Any) -> int:
    """Bytes of an operator's inputs and outputs; an in-place operator's tensor is both.

    What is overwritten unread (``copy_``, ``fill_``, ``zero_``) is no input, and of a table from
    which rows are taken only the rows taken are.
    """
    written = sum(tensor_bytes(t) for t in _tensors(out))
    inputs = _tensors((args, kwargs))
    if operator in ("copy_", "fill_", "zero_", "bernoulli_", "uniform_", "normal_"):
        return written + sum(tensor_bytes(t) for t in inputs[1:])
    if operator in ("embedding", "index_select", "index", "gather"):
        return 2 * written + sum(tensor_bytes(t) for t in inputs[1:])
    return written + sum(tensor_bytes(t) for t in inputs)


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Bytes of a tensor's elements, an expanded dimension once; of a sparse one, what it stores."""
    if tensor.layout == torch.sparse_coo:
        return tensor._nnz() * (tensor.element_size() + 8 * tensor.sparse_dim())
    if tensor.layout != torch.strided:
        return tensor._nnz() * (tensor.element_size() + 8) + 8 * (tensor.shape[0] + 1)
    elements = 1
    for size, stride in zip(tensor.shape, tensor.stride(), strict=True):
        elements *= min(size, 1) if stride == 0 else size
    return elements * tensor.element_size()


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def copy_model(model: nn.Module, convert: Callable[[torch.Tensor], torch.Tensor]) -> nn.Module:
    """A deep copy whose parameters and buffers are ``convert`` of the original's."""
    memo: dict[int, Any] = {}
    for parameter in model.parameters():
        converted = convert(parameter.detach())
        memo[id(parameter)] = nn.Parameter(converted, parameter.requires_grad)
    for buffer in model.buffers():
        memo[id(buffer)] = convert(buffer.detach())
    return copy.deepcopy(model, memo)


class _Phantom:
    """Where a count runs: how tensors are converted, and in which modes the copy runs.

    On the ``meta`` device, except: under autocast, which knows no ``meta`` device, with fake CPU
    tensors; and with sparse tensors, whose products have no shape-only kernels, on real copies.
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
                # Without oneDNN's fused recurrent layers nn.LSTM shows its matrix products.
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
    """Count one training step on a batch like ``inputs`` (its tensors, first dimension samples).

    ``autocast`` is the data type of an autocast region, None for none; ``real`` counts on copies
    with data, which sparse inputs need. Neither the model nor the random numbers are touched.

    Raises:
        Exception: whatever an operator raises that cannot run on shapes alone.
    """
    phantom = _Phantom(autocast, real)
    copied = copy_model(model, phantom.convert).train()
    inputs, target = tree_map_only(torch.Tensor, phantom.convert, (inputs, target))
    samples = _tensors(inputs)[0].shape[0]
    optimizer = make_optimizer(copied.parameters())
    with phantom.running(), OperatorCounter() as counter:
        with phantom.casting():
            loss, _, _ = objective(copied, inputs, target)
        forward = counter.work.flop
        loss.backward()  # type: ignore[no-untyped-call]
        step = counter.work.flop
        optimizer.step()
    where = "copies on the CPU" if real else "shapes alone"
    data_type = "float32" if autocast is None else f"autocast {autocast}".replace("torch.", "")
    return StepWork(
        flop_forward_per_sample=forward / samples,
        flop_per_step=step,
        bytes_per_step=counter.work.bytes,
        uncounted_operators=counter.work.uncounted_operators(),
        method=(
            f"formulas per ATen operator, one full batch, {data_type}, counted on {where}; bytes "
            "are inputs and outputs of every operator, caches and fusion ignored; the optimizer's "
            "update is in the bytes, not in the FLOP"
        ),
    )


def count_forward(model: nn.Module, *inputs: torch.Tensor) -> Work:
    """Work of one forward in the model's present mode (train or eval), on shapes alone."""
    phantom = _Phantom(None, real=False)
    copied = copy_model(model, phantom.convert)
    shapes = [phantom.convert(tensor) for tensor in inputs]
    counter = OperatorCounter()
    with phantom.running(), counter:
        copied(*shapes)
    return counter.work
