"""Counts the FLOP and bytes of single steps, by kinds of step: those whose batches are alike, while
the program trains the same parameters."""

from __future__ import annotations

import math
import random
import sys
import time
from importlib import import_module
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import compiled
from .batches import Kind, Sizes

MOST_KINDS = 4
"""Most kinds of step that are counted while the same parameters are trained, each at the cost of
one slow step."""
MOST_CHANGES = 16
"""Most changes of what is trained after which steps are counted anew."""
_MOST_TRIES = 10
"""Most steps that are begun to be counted and turn out not to be a training step alone."""
_SHARE = 0.003
"""Most of the time that counting again may take: what a step does may vary where its batches do
not."""
_FIRST_COUNTS, _FIRST_SHARE = 6, 0.05
"""The first counts, and most of the time that they may take: also short runs tell what varies."""
_MOST_COUNTS = 100
"""Most counted steps of a kind."""
_FREE_MEMORY = 0.05
"""Share of a GPU's memory that must be free to count."""
_UNSEEN = (
    "a compiled program whose graphs did not all come by torch.compile: what the others compute "
    "cannot be seen"
)
_OLD_TORCH = "a compiled program, and this torch would compile it anew for a step that is counted"
_COMPILED_BACKWARD = "a program with compiled autograd: its backward passes cannot be seen"
_CONTROL_FLOW = ("associative_scan", "cond", "map", "map_impl", "scan", "while_loop")
_TRACED = (
    "a program with torch.{name}: what this torch runs to trace it cannot be told from the work"
)
_CHANGES = (
    f"what the program trains changed more than {MOST_CHANGES} times: the FLOP of later steps are "
    "those of steps that trained something else"
)
_NOT_RECOUNTED = (
    "no step could be counted since the program trains other parameters: FLOP are those of before"
)
_METHOD = (
    "formulas per ATen operator, counted while one full step ran, in compiled code by shapes of "
    "graphs; bytes are inputs and outputs of every operator, caches and fusion ignored; the "
    "optimizer's update is in the bytes, not in the FLOP"
)


class Counted:
    """Work of the steps of a kind that were counted, as of one with ``samples``."""

    def __init__(self, samples: int | None) -> None:
        self.samples = samples
        self.flops: list[float] = []
        self._bytes: list[float] = []

    def add(self, samples: int | None, flop: int, size: int) -> None:
        scale = self.samples / samples if self.samples and samples else 1.0
        self.flops.append(flop * scale)
        self._bytes.append(size * scale)

    @property
    def flop(self) -> float:
        """The mean."""
        return sum(self.flops) / len(self.flops)

    @property
    def bytes(self) -> float:
        return sum(self._bytes) / len(self._bytes)


class Counting:
    """Which steps are counted, and what came out."""

    def __init__(self, share: float = _SHARE) -> None:
        """``share``: most of the time that counting again may take."""
        self.counter: Any = None
        """The counter of the step that runs now; None: this step is not counted."""
        self.own: Any = None
        """The counter of the calls that the program has counted in this step."""
        self.kinds: dict[Kind, Counted] = {}
        """Those that were counted with the parameters that are trained now."""
        self.main: Kind | None = None
        """The kind that the ``count`` line is of."""
        self.recounting = 0
        """How many steps more may pass until one is counted, since what is trained has changed."""
        self._trained: int | None = None
        self._main_trained: int | None = None
        """Elements of the parameters that are trained, and were for the ``count`` line."""
        self._counted: dict[int | None, dict[Kind, Counted]] = {None: self.kinds}
        """``kinds`` by elements trained."""
        self.seeking = False
        """Whether another step like the last one is to be counted."""
        self.news: dict[str, Any] | None = None
        """The ``count`` line, where it is to be told, anew."""
        self.dtype: str | None = None
        self.over: str | None = None
        """Why no further step is counted."""
        self._share = share
        self._again_at: float | None = None
        """When a step may be counted again (``time.monotonic``); ``None``: never."""
        self._told: dict[str, Any] = {}
        """The ``count`` line."""
        self._left: list[Any] = []
        """Counters that could not leave torch's stack of modes yet."""
        self._wanted = True
        self._tries = 0
        self._unknown: Kind | None = None
        """A kind that the program has, which is looked for."""
        self._random = random.Random()  # noqa: S311
        self._doubtful: Any = None
        """The counter of a step that may hold an evaluation, and its kind."""
        self._began = 0.0
        self._frames = 0

    @property
    def idle(self) -> bool:
        """Whether no step has to be seen for what is counted."""
        due = self._again_at is not None and time.monotonic() >= self._again_at
        counts = self.counter is not None or self.own is not None
        return not (counts or self.recounting or self.seeking or due)

    def changes(self, elements: int) -> bool:
        """Whether parameters of so many elements are others than those that were trained."""
        return self._trained not in (None, elements)

    def trains(self, elements: int) -> str | None:
        """The program trains parameters of so many elements from here on; what to tell."""
        if elements == self._trained:
            return None
        first, self._trained = self._trained is None, elements
        if first:
            self._counted = {elements: self.kinds}
            return None
        if self.counter is not None:
            self.stop("what the program trains changed in the steps that were tried")
        known = elements in self._counted
        if not known and len(self._counted) > MOST_CHANGES:
            self.kinds, self.recounting = {}, 0
            return _CHANGES
        self.kinds = self._counted.setdefault(elements, {})
        self._wanted = self._wanted or not self.kinds
        unknown = self.main is not None and not self.kinds
        if known:  # in turns: it was tried before
            self.recounting = 0
            return _NOT_RECOUNTED if unknown else None
        self.recounting = _MOST_TRIES if unknown else 0
        self._tries = 0
        return None

    def begin_kind(self, sizes: Sizes, on_gpu: bool) -> str | None:
        """The first batch of a step came: count it, if no step with such a batch was counted."""
        known = self.main is None or any(kind.sizes[: len(sizes)] == sizes for kind in self.kinds)
        if known or self.counter is not None or len(self.kinds) == MOST_KINDS:
            return None
        self._wanted = self._tries < _MOST_TRIES
        self._tries += self._wanted
        return self.begin(on_gpu)

    def begin(self, on_gpu: bool) -> str | None:
        """Count the step that begins now, if one is wanted and it can be done; what to tell."""
        while self._left and self._left[-1].leave():
            self._left.pop()
        if self.recounting == 1 and self.counter is None:
            self.recounting = 0
            return _NOT_RECOUNTED
        self.recounting = max(0, self.recounting - 1)
        if self._again_at is not None and time.monotonic() >= self._again_at:
            self._again_at, self._wanted = None, True
        if not self._wanted or self.over is not None or (on_gpu and _little_memory()):
            return None
        module: Any = import_module(".counter.step_counter", __package__)
        if module.other_modes():
            return None
        if module.old_torch() and (name := _control_flow()):
            self.over = _TRACED.format(name=name)
            return None
        self.over = _uncountable()
        if self.over is not None:
            return None
        self._wanted = False
        self._frames = compiled_functions()
        self._began = time.perf_counter()
        self.counter = module.StepCounter()
        self.counter.enter()
        return None

    def begin_call(self) -> Any:
        """Count a call that is work of the step, if none was counted; its counter."""
        module: Any = import_module(".counter.step_counter", __package__)
        if self.main is not None or self.over is not None or module.other_modes():
            return None
        self.over = _uncountable()
        if self.over is not None:
            return None
        if self.own is None:
            self._wanted = False
            self._began = time.perf_counter()
            self.own = module.StepCounter()
        self.counter = self.own
        self.counter.enter()
        return self.counter

    def end_call(self) -> None:
        """The call of :meth:`begin_call` is over."""
        self._take_off()

    def stop(self, reason: str) -> None:
        """What runs now is no training step alone: count another one, a few times."""
        if self.counter is None:
            return
        self._take_off()
        self._try_again(reason)

    def _try_again(self, reason: str) -> None:
        self._tries += 1
        if self._tries < _MOST_TRIES:
            self._wanted = True
        elif self.main is None:
            self.over = reason

    def _take_off(self) -> Any:
        counter, self.counter = self.counter, None
        if not counter.leave():
            self._left.append(counter)
        return counter

    def end(self, samples: int | None, kind: Kind) -> None:
        """End the count of the step that ends now."""
        by_itself = self.own is not None
        compiles = not by_itself and compiled_functions() > self._frames
        counter, self.own = self.own or self._take_off(), None
        if counter.broken is not None or compiles:
            self._try_again(counter.broken or "the program compiled in the steps that were tried")
            return
        if (known := self.kinds.get(kind)) is not None:
            if self._unknown is not None:
                self._try_again("")
            self._count_again(known, samples, counter)
            return
        if self._doubtful is not None and self._doubtful[1] == kind:
            counter = min(self._doubtful[0], counter, key=lambda each: each.step.flop)
        elif self.main is None and counter.without_gradients and not by_itself:
            self._doubtful = counter, kind
            self._try_again("no two steps were alike")
            return
        step, again = counter.step, counter.again
        if not step.flop:
            self.over = "no operator with FLOP was seen: they run where the dispatcher cannot see"
            return
        counted = self.kinds[kind] = Counted(samples)
        counted.add(samples, step.flop, step.bytes + again.bytes)
        self.recounting = 0
        if self._unknown == kind:
            self._unknown = None
        if not by_itself:
            self._allow_again()
        if self.main is not None:
            return
        self.main, self._main_trained = kind, self._trained
        self.dtype = max(counter.flop_by_type, key=counter.flop_by_type.get)
        self.news = self._told = {
            "flop_forward_per_sample": counter.forward.flop / samples if samples else None,
            "flop_forward_per_step": counter.forward.flop,
            "flop_backward_per_step": counter.backward.flop,
            "flop_per_step": step.flop,
            "flop_recomputed_per_step": None if counter.recomputes_unseen else again.flop,
            "bytes_per_step": step.bytes + again.bytes,
            "operators": step.table(),
            "uncounted_operators": step.uncounted_operators(),
            "method": _METHOD + counter.note,
            "samples": samples,
            "seconds": time.perf_counter() - self._began,
        }

    def _allow_again(self) -> None:
        """Count again once that is cheap; at a moment drawn at random, since programs have
        periods."""
        first = sum(len(each.flops) for each in self.kinds.values()) < _FIRST_COUNTS
        share = max(self._share, _FIRST_SHARE) if first else self._share
        spent = (time.perf_counter() - self._began) / share
        self._again_at = time.monotonic() + spent * self._random.uniform(0.5, 1.5)

    def _count_again(self, known: Counted, samples: int | None, counter: Any) -> None:
        """A step of a kind that is known was counted."""
        step, again = counter.step, counter.again
        if len(known.flops) == _MOST_COUNTS or not step.flop:
            return
        known.add(samples, step.flop, step.bytes + again.bytes)
        self._allow_again()
        if self.main is None or self._trained != self._main_trained:
            return
        if known is not self.kinds.get(self.main):
            return
        self._told |= {"bytes_per_step": known.bytes, "counted_flop": list(known.flops)}
        if len(set(known.flops)) > 1:
            parts = ("flop_forward_per_sample", "flop_forward_per_step", "flop_backward_per_step")
            self._told |= {"flop_per_step": known.flop, **dict.fromkeys(parts)}
        self.news = self._told

    def work_of(self, samples: int | None, kind: Kind) -> tuple[float, float] | None:
        """FLOP and bytes of a step that differs from that of the ``count`` line.

        Of a kind that was not counted at least so many: the work grows at least as the size of a
        longer batch, and shrinks at most as its square. ``None``: as ``count`` says.
        """
        self.seeking = False
        if self.main is None or not self.kinds:
            return None
        if kind == self.main and self._trained == self._main_trained:
            return None
        known = self.kinds.get(kind)
        if known is not None:
            scale = samples / known.samples if samples and known.samples else 1.0
            return known.flop * scale, known.bytes * scale
        alike = any(each.sizes[:1] == kind.sizes[:1] for each in self.kinds)  # for begin_kind
        if alike and len(self.kinds) < MOST_KINDS and self._tries < _MOST_TRIES:
            self._unknown, self._wanted, self.seeking = kind, True, True
        elif not self._told.get("at_least"):
            self._told["at_least"] = True
            self.news = self._told
        least = [self._at_least(counted, of, samples, kind) for of, counted in self.kinds.items()]
        return max(least)

    def _at_least(
        self, counted: Counted, of: Kind, samples: int | None, kind: Kind
    ) -> tuple[float, float]:
        if kind.passes < of.passes or kind.calls < of.calls:
            return 0.0, 0.0
        size = _mean_elements(kind.sizes) / max(1, _mean_elements(of.sizes))
        scale = len(kind.sizes) / max(1, len(of.sizes))
        if samples and counted.samples:
            scale = samples / counted.samples
        scale *= size if size >= 1 else size * size
        return counted.flop * scale, counted.bytes * scale


def _mean_elements(sizes: Sizes) -> float:
    """Elements of a sample in each of its tensors; accumulated batches are so many more samples."""
    return sum(map(math.prod, sizes)) / max(1, len(sizes))


def compiled_functions() -> int:
    """How many functions torch.compile has compiled; those of ``torch.cond`` are not among them."""
    if "torch._dynamo" not in sys.modules:
        return 0
    counters: Any = import_module("torch._dynamo.utils").counters
    frames, graphs = counters.get("frames", {}), counters.get("stats", {})
    # With fullgraph=True no frame is counted, and torch.cond is such a graph.
    whole = 0 if _control_flow() else graphs.get("unique_graphs", 0)
    return int(frames.get("ok", 0) + whole)


def _uncountable() -> str | None:
    """Why a compiled program cannot be counted."""
    if not compiled_functions():
        return None
    if not hasattr(TorchDispatchMode, "ignore_compile_internals"):
        return _OLD_TORCH
    # torch.compiler tells neither of these two.
    if import_module("torch._dynamo.config").compiled_autograd:
        return _COMPILED_BACKWARD
    counters: Any = import_module("torch._dynamo.utils").counters
    return _UNSEEN if counters["stats"]["unique_graphs"] > compiled.graphs else None


def _control_flow() -> str | None:
    """An operator that the program used and that runs compiled only."""
    known = ((name, getattr(torch.ops.higher_order, name, None)) for name in _CONTROL_FLOW)
    # Nothing public tells whether it was called.
    return next((name for name, each in known if getattr(each, "_dispatch_cache", None)), None)


def _little_memory() -> bool:
    free, total = torch.cuda.mem_get_info()
    return free < _FREE_MEMORY * total
