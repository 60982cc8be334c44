"""Which calls of a program begin a forward pass: those of its models.

A model is a module with trained parameters that the program calls itself, with gradients. All
modules of one step are looked at to find them, by torch's hook for every call; from then on only
their classes are followed. Hooks of the models would be saved and scripted with them.

That hook makes torch.compile compile anew. In a program that has compiled something, models are
those modules that were compiled, and those that hold them.
"""

from __future__ import annotations

import functools
import gc
import sys
from typing import Any
from weakref import ref

import torch
from torch import nn

from . import tracking
from .counting import compiled_functions

_MOST_LOOKS = 50
"""Most steps of which every call of a module is looked at."""


class Models:
    """The models of this process."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[ref[nn.Module], bool, set[int]]] = {}
        """By ``id``, since a module need not be hashable; whether samples come first, and how many
        sizes a sample may have beside the first."""
        self._inside: set[int] = set()
        """Modules of the models that this step has called."""
        self._looking: Any = None
        self._left = _MOST_LOOKS
        self.last: ref[nn.Module] | None = None
        """The one that was called last with gradients."""

    def __contains__(self, module: nn.Module) -> bool:
        known = self._known.get(id(module))
        return known is not None and known[0]() is module

    def takes_samples_first(self, module: nn.Module) -> bool:
        """Whether the first dimension of what this model is given can only be that of samples: no
        part of it takes sequences that begin with time."""
        return self._known[id(module)][1]

    @property
    def looks(self) -> bool:
        """Whether the step that runs now is looked at."""
        return self._looking is not None

    def sizes_of_one(self, module: nn.Module) -> set[int]:
        """How many sizes beside the first one what this model is given has where it may be a single
        sample: none, or as many as its convolutions have dimensions."""
        return self._known[id(module)][2]

    def look(self) -> None:
        """Find the models that the step calls that begins now."""
        self.end_look()
        if not self._left:
            return
        self._left -= 1
        if not compiled_functions():
            register = nn.modules.module.register_module_forward_pre_hook
            self._looking = register(self._see)
            return
        for module in _around_compiled():
            self.add(module)

    def end_look(self) -> None:
        """The step is over."""
        if self._looking is not None:
            self._looking.remove()
            self._looking = None
        self._inside.clear()

    def _see(self, module: nn.Module, args: Any) -> None:
        tracker = tracking.tracker
        if tracker is None or torch.compiler.is_compiling() or not torch.is_grad_enabled():
            return
        try:
            if id(module) in self._inside or not _is_trained(module):
                return
            self._inside.update(map(id, module.modules()))
            if module in self:
                return
            self.add(module)
        except Exception as error:  # a module may be anything
            tracking.leave(error)
        tracker.model_called(module, args, {})

    def add(self, module: nn.Module) -> None:
        """It is a model."""
        if module in self:
            return
        self.last = ref(module)
        first = not any(
            getattr(each, "batch_first", True) is False or isinstance(each, nn.RNNCellBase)
            for each in module.modules()
        )
        kinds: dict[type, int] = {nn.Conv1d: 1, nn.Conv2d: 2, nn.Conv3d: 3}
        of_one = {0, *(kinds.get(type(each), 0) for each in module.modules())}
        self._known[id(module)] = self.last, first, of_one
        follow(type(module))


def _is_trained(module: nn.Module) -> bool:
    return any(each.requires_grad for each in module.parameters())


def _around_compiled() -> list[nn.Module]:
    """The modules that were compiled, and those that hold one, but none within another."""
    kind = getattr(sys.modules.get("torch._dynamo"), "OptimizedModule", None)
    # A proxy may do anything where it is asked for its class.
    modules = [each for each in gc.get_objects() if issubclass(type(each), nn.Module)]
    compiled = {id(each): each for each in modules if type(each) is kind}
    within = {id(part) for each in compiled.values() for part in each.modules() if part is not each}
    holding = (
        each
        for each in modules
        if id(each) not in within and any(id(part) in compiled for part in each.modules())
    )
    return [each for each in holding if _is_trained(each)]


_followed: set[type] = set()


def follow(kind: type) -> None:
    """Tell the tracker of calls of modules of this class."""
    if kind in _followed:
        return
    _followed.add(kind)
    own = kind.__dict__.get("__call__")

    def call(self: Any, args: Any, keywords: Any) -> Any:
        if own is not None:
            return own(self, *args, **keywords)
        # Looked up at each call: torch.fx replaces it for a while.
        return super(kind, self).__call__(*args, **keywords)  # type: ignore[arg-type]

    @functools.wraps(kind.__call__)
    def called(self: Any, *args: Any, **keywords: Any) -> Any:
        tracker = tracking.tracker
        if tracker is None or torch.compiler.is_compiling():
            return call(self, args, keywords)
        tracker.passing.calls += self.training
        if tracker.passing.on and (self.training or not tracker.stirs(self)):
            return call(self, args, keywords)
        inference = tracker.inference
        if inference is None:
            if kind.__name__ == "OptimizedModule" and tracker._phases.models is not None:
                tracker._phases.models.end_look()  # torch warns of it
            tracker.model_called(self, args, keywords)
            return call(self, args, keywords)
        if (begun := inference.begins(self, args, keywords)) is None:
            return call(self, args, keywords)
        failed = True
        try:
            result = call(self, args, keywords)
            failed = False
            return result
        finally:
            inference.ends(begun, failed)

    kind.__call__ = called  # type: ignore[method-assign]
