"""Counts a graph that torch.compile made: on shapes alone, operator by operator."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode

from .operators import Work
from .step_counter import BACKWARD, StepCounter

_DEVICES = ("cpu", "cuda")
"""Those that have a state of autocast of their own."""


def count_graph(
    module: fx.GraphModule, graph: fx.Graph, part: int, args: Sequence[Any]
) -> tuple[StepCounter, StepCounter]:
    """Work of ``graph`` with such ``args``, as a part of a step, and of its backward pass.

    The operators are those that would run uncompiled, with the gradients and the autocast of the
    thread that calls. They get tensors with shapes but no data: nothing is computed, and no random
    number drawn. The graph may change autocast and the like, which are a thread's, and would stay
    so where it fails: it gets a thread of its own. The backward pass does not: where this one is a
    thread of torch's, a pass from another would wait for it.

    Raises:
        Exception: whatever an operator raises that cannot run on shapes alone.
    """
    forward, backward = StepCounter(shapes_alone=True), StepCounter(shapes_alone=True)
    forward.part, backward.part = part, BACKWARD
    fake = FakeTensorMode(allow_non_fake_inputs=True)
    gradients = torch.is_grad_enabled()
    casts = [(torch.is_autocast_enabled(each), torch.get_autocast_dtype(each)) for each in _DEVICES]
    on_gpu = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    stream: Any = torch.cuda.current_stream() if on_gpu else None

    def run() -> tuple[list[torch.Tensor], list[torch.Tensor]]:
        torch.cuda.set_stream(stream)  # with the GPU: else torch's engine would join two streams
        leaves = []

        def shape_of(arg: Any) -> Any:
            if not isinstance(arg, torch.Tensor):
                return arg
            shaped: torch.Tensor = fake.from_tensor(arg.detach())
            if not arg.requires_grad:
                return shaped
            leaves.append(shaped.requires_grad_())
            return shaped if arg.is_leaf else shaped.clone()  # which may be changed in place

        with fake:
            shapes = [shape_of(arg) for arg in args]
            torch.autocast_increment_nesting()  # its end would empty the program's cache, too
            torch.set_autocast_cache_enabled(False)
            for device, (enabled, dtype) in zip(_DEVICES, casts, strict=True):
                torch.set_autocast_enabled(device, enabled)
                torch.set_autocast_dtype(device, dtype)
            with torch.set_grad_enabled(gradients), forward:
                outputs = fx.Interpreter(module, graph=graph).run(*shapes)
        tensors = (each for each in outputs if isinstance(each, torch.Tensor))
        return [each for each in tensors if each.requires_grad], leaves

    with ThreadPoolExecutor(1) as pool:
        outputs, leaves = pool.submit(run).result()
    if outputs:
        with fake:
            ones = [torch.ones_like(each) for each in outputs]
            with backward:
                torch.autograd.grad(outputs, leaves, ones, allow_unused=True)
        backward.recomputes_unseen = _has_checkpoints(module)
        backward.again = Work()
    return forward, backward


def _has_checkpoints(module: fx.GraphModule) -> bool:
    """Whether a graph has torch.utils.checkpoint, of which a compiler makes what it likes."""
    graphs = (each.graph for each in module.modules() if isinstance(each, fx.GraphModule))
    return any("checkpoint" in str(node.target) for graph in graphs for node in graph.nodes)
