"""Where the hook looks: optimizers, backward passes, loaders and gradient scalers of torch.

Optimizers have hooks for that. For the others torch has none, so a function of each is replaced by
one that calls it. Where torch.compile traces them, they do nothing: what it would see of the hook
changes with every step, and would be compiled anew with each.
"""

from __future__ import annotations

import atexit
import functools
from contextlib import suppress
from types import ModuleType
from typing import Any

import torch

from . import tracking
from .passing import eyes


def watch_optimizers(optimizer: ModuleType) -> None:
    """Follow every optimizer's ``step``; from here on there is a training to follow."""
    tracking.start()
    tracker = tracking.tracker
    if tracker is None:
        return
    atexit.register(_tell_gpus, tracker)  # runs before the tracker is closed
    tracker.infers()

    def begins(of: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        if torch.compiler.is_compiling() or tracker.passing.on:
            return None
        tracker.optimizer_begins(of)
        if callable(closure := keywords.get("closure")):
            return args, {**keywords, "closure": following(closure)}
        if callable(closure := (*args, None)[1]):
            return (args[0], following(closure), *args[2:]), keywords
        return None

    def following(closure: Any) -> Any:
        """``closure``, which is no part of the optimizer."""

        @functools.wraps(closure)
        def followed(*args: Any, **keywords: Any) -> Any:
            tracker.closure(True)
            try:
                return closure(*args, **keywords)
            finally:
                tracker.closure(False)

        return followed

    def ends(of: Any, *_: Any) -> None:
        if torch.compiler.is_compiling():
            return
        if tracker.passing.on:
            tracker.passes(of)
        else:
            tracker.optimizer_ends(of)

    eyes.append(_Before(optimizer.register_optimizer_step_pre_hook, begins))
    optimizer.register_optimizer_step_post_hook(ends)


class _Before:
    """The hook before an optimizer's step."""

    def __init__(self, register: Any, function: Any) -> None:
        self._register = register
        self._function = function
        self._handle = register(function)

    def remove(self) -> None:
        self._handle.remove()

    def put_back(self) -> None:
        self._handle = self._register(self._function)


def _tell_gpus(tracker: tracking.Tracker) -> None:
    """Tell which GPUs the process used, also without a step: where the driver lists no processes,
    nothing else does."""
    with suppress(Exception):
        from . import facts

        if found := facts.gpus():
            tracker._tell(event="gpus", device_uuid=found)


def watch_compiler(dynamo: ModuleType) -> None:
    """Follow the graphs that torch.compile hands to its backends. Take torch's global hooks away
    before it compiles, since it would compile anew without them, and before it calls a compiled
    module, since it would warn of them."""
    from . import models
    from .compiled import following

    # In public torch.compile takes a backend, but shows no graph that goes to another.
    for backend in (torch._TorchCompileInductorWrapper, torch._TorchCompileWrapper):
        backend.__call__ = following(backend.__call__)  # type: ignore[method-assign]

    def compiles(*_: Any) -> None:
        tracker = tracking.tracker
        if tracker is None:
            return
        if tracker.passing.on:
            tracker.sees()
        for looking in (tracker.inference, tracker._phases.models):
            if looking is not None:
                looking.end_look()

    models.follow(dynamo.OptimizedModule)
    dynamo.on_compile_start(compiles)


def watch_backward(autograd: ModuleType) -> None:
    """Follow every backward pass: ``Tensor.backward`` calls this function, too."""
    eyes.append(_Backward(autograd))


class _Backward:
    """What follows ``torch.autograd.backward``, which others may replace as well."""

    def __init__(self, autograd: Any) -> None:
        self._autograd = autograd
        self._original = original = autograd.backward
        self._removed = False

        @functools.wraps(original)
        def backward(*args: Any, **keywords: Any) -> Any:
            tracker = tracking.tracker
            if tracker is None or torch.compiler.is_compiling() or tracker.passing.on:
                return self._original(*args, **keywords)
            before = tracker.backward_begins(args, keywords)
            whole = False
            try:
                result = self._original(*args, **keywords)
                whole = True
                return result
            finally:
                tracker.backward_ends(before, whole)

        self._following = autograd.backward = backward

    def remove(self) -> None:
        if self._autograd.backward is self._following:
            self._autograd.backward = self._original
        self._removed = self._autograd.backward is self._original

    def put_back(self) -> None:
        if self._removed:  # what is there now, if that is another's
            self._original, self._autograd.backward = self._autograd.backward, self._following
            self._removed = False


def watch_loader(dataloader: ModuleType) -> None:
    """Follow what a training waits for its data; iterators stay what they are."""
    # Not DataLoader.__iter__: torchdata's loader has its own, and makes iterators of this class.
    iterator = dataloader._BaseDataLoaderIter
    original = iterator.__next__

    @functools.wraps(original)
    def following(self: Any) -> Any:
        tracker = tracking.tracker
        if tracker is None or torch.compiler.is_compiling():
            return original(self)
        if tracker.passing.on and not tracker.stirs():
            try:
                return original(self)
            except StopIteration:
                tracker.epoch_ends(self)
                raise
        before = tracker.data_begins()
        batch = None
        try:
            batch = original(self)
            return batch
        finally:
            tracker.data_ends(before, self, batch)

    iterator.__next__ = following
    loader = dataloader.DataLoader
    make = loader.__iter__

    @functools.wraps(make)
    def making(self: Any) -> Any:
        """To start workers may take long, and is no evaluation where the training goes on."""
        tracker = tracking.tracker
        if tracker is None or torch.compiler.is_compiling():
            return make(self)
        if tracker.passing.on and not tracker.stirs():
            return make(self)
        before = tracker.data_begins()
        try:
            return make(self)
        finally:
            tracker.iterator_made(before)

    loader.__iter__ = making


def watch_scaler(grad_scaler: ModuleType) -> None:
    """Notice the steps that a gradient scaler skips."""
    original = grad_scaler.GradScaler.step

    @functools.wraps(original)
    def step(self: Any, optimizer: Any, *args: Any, **keywords: Any) -> Any:
        tracker = tracking.tracker
        taken = None if tracker is None else tracker.taken
        result = original(self, optimizer, *args, **keywords)
        if tracker is not None and tracker.taken == taken:
            tracker.skipped(optimizer)
        return result

    grad_scaler.GradScaler.step = step
