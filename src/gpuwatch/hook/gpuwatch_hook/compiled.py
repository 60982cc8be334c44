"""Counts what compiled code computes, by the graphs that torch.compile hands to its backends.

Where a counted step calls a graph, its operators run once on shapes, for the call and for its
backward pass; what the compiled code runs instead is hidden from the counter. So it does not
matter what a backend makes of a graph, nor whether it comes from a cache.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

import torch

from . import tracking

_UNKNOWN = "a graph of torch.compile that cannot be counted on shapes alone: {reason}"
_BACKEND = "torch.compile with a backend whose backward pass cannot be told from the rest"

graphs = 0
"""How many graphs were seen."""


def following(backend: Callable[..., Any]) -> Callable[..., Any]:
    """A backend's ``__call__``, with what it makes of a graph followed."""

    @functools.wraps(backend)
    def compile_graph(self: Any, module: Any, *args: Any, **keywords: Any) -> Any:
        global graphs
        graph = None
        if tracking.tracker is not None:
            try:
                graph = _Graph(module)
            except Exception as error:
                tracking.leave(error)
        run = backend(self, module, *args, **keywords)
        graphs += 1
        if graph is None or run is module or getattr(run, "__self__", None) is module:
            return run  # the counter sees the operators
        graph.run = run
        return graph.__call__

    return compile_graph


class _Graph:
    """A compiled graph, called in place of the code that a backend made of it."""

    run: Callable[..., Any]

    def __init__(self, module: Any) -> None:
        self._module = module
        self._graph = copy.deepcopy(module.graph)  # a backend may change the module's own
        for node in self._graph.nodes:
            node.meta.clear()  # what torch.compile lets go of
        self._works: dict[Any, tuple[Any, Any]] = {}
        """Its work and that of its backward pass, by part of the step and shapes."""

    def __call__(self, *args: Any) -> Any:
        counting = None if tracking.tracker is None else tracking.tracker._counting
        counter = None if counting is None else counting.counter
        if counter is None or not counter.active:
            return self.run(*args)
        work = self._work(counter, args)
        if work is not None:
            counter.add(work[0])
        before = {each.grad_fn for each in args if isinstance(each, torch.Tensor)}
        active, counter.active = counter.active, False
        try:
            outputs = self.run(*args)
        finally:
            counter.active = active
        if work is not None:
            _follow_backward(counter, work[1], (*args, *outputs), before)
        return outputs

    def _work(self, counter: Any, args: tuple[Any, ...]) -> tuple[Any, Any] | None:
        shapes = (tuple(each.shape) if isinstance(each, torch.Tensor) else each for each in args)
        key = counter.part, *shapes
        active, counter.active = counter.active, False
        try:
            if key not in self._works:
                count: Any = import_module(".counter.graph", __package__).count_graph
                self._works[key] = count(self._module, self._graph, counter.part, args)
            return self._works[key]
        except Exception as error:  # also of an argument that is no key
            counter.broken = _UNKNOWN.format(reason=type(error).__name__)
            return None
        finally:
            counter.active = active


def _follow_backward(counter: Any, work: Any, tensors: Any, before: set[Any]) -> None:
    """Add the work of a graph's backward pass where that runs."""
    left = [each.grad_fn for each in tensors if isinstance(each, torch.Tensor)]
    seen = set(before)
    found = False
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if node.name() == "CompiledFunctionBackward":
            found = True
            node.register_prehook(functools.partial(_begin, counter, work))
            node.register_hook(functools.partial(_end, counter))
        else:
            left += [each for each, _ in node.next_functions]
    if work.backward.operators and not found:
        counter.broken = _BACKEND


def _begin(counter: Any, work: Any, _: Any) -> None:
    counter.add(work)
    counter.hidden = True


def _end(counter: Any, *_: Any) -> None:
    counter.hidden = False
