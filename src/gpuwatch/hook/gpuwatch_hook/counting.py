"""Counts the FLOP and bytes of single steps, by kinds of step: those whose batches are alike, while
the program trains the same parameters."""

from __future__ import annotations

import sys
import time
from importlib import import_module
from typing import Any, NamedTuple

import torch

Kind = tuple[tuple[int, ...], ...]
"""Sizes of the tensors of the batches of a step."""
MOST_KINDS = 4
"""Most kinds of step that are counted while the same parameters are trained, each at the cost of
one slow step."""
MOST_CHANGES = 16
"""Most changes of what is trained after which steps are counted anew."""
_MOST_TRIES = 10
"""Most steps that are begun to be counted and turn out not to be a training step alone."""
_FREE_MEMORY = 0.05
"""Share of a GPU's memory that must be free to count."""
_COMPILED = (
    "a compiled program: what its kernels compute cannot be seen; `--hook count` runs one step "
    "uncompiled to count it"
)
_UNCOMPILED = (
    "one step was run uncompiled to count its FLOP: it rounds, draws random numbers and uses "
    "memory otherwise than a compiled one"
)
_CONTROL_FLOW = ("associative_scan", "cond", "map", "map_impl", "scan", "while_loop")
_ONLY_COMPILED = (
    "a compiled program with torch.{name}: none of its steps can be run uncompiled to count it"
)
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
_OLD_TORCH = "a compiled program, and torch before 2.6 cannot run one of its steps uncompiled"
_METHOD = (
    "formulas per ATen operator, counted while one full step ran; bytes are inputs and outputs of "
    "every operator, caches and fusion ignored; the optimizer's update is in the bytes, not in the "
    "FLOP"
)


class Counted(NamedTuple):
    """Work of one step of a kind."""

    samples: int | None
    flop: int
    bytes: int


class Counting:
    """Which steps are counted, and what came out."""

    def __init__(self, uncompiled: bool) -> None:
        """``uncompiled``: whether a compiled program may run a step uncompiled."""
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
        self.dtype: str | None = None
        self.over: str | None = None
        """Why no further step is counted."""
        self._uncompiled = uncompiled
        self._left: list[Any] = []
        """Counters that could not leave torch's stack of modes yet."""
        self._wanted = True
        self._tries = 0
        self._doubtful: Any = None
        """The counter of a step that may hold an evaluation, and its kind."""
        self._began = 0.0
        self._stance: Any = None
        """What puts the program's own stance of compilation back."""
        self._frames = 0

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
        self.recounting = _MOST_TRIES if self.main is not None and not self.kinds else 0
        self._wanted = self._wanted or not self.kinds
        self._tries = 0
        return None

    def begin_kind(self, sizes: Kind, on_gpu: bool) -> str | None:
        """The first batch of a step came: count it, if no step with such a batch was counted."""
        known = self.main is None or any(kind[: len(sizes)] == sizes for kind in self.kinds)
        if known or self.counter is not None or len(self.kinds) == MOST_KINDS:
            return None
        self._wanted = self._tries < _MOST_TRIES
        return self.begin(on_gpu)

    def begin(self, on_gpu: bool) -> str | None:
        """Count the step that begins now, if one is wanted and it can be done; what to tell."""
        self._leave_the_rest()
        if self.recounting == 1 and self.counter is None:
            self.recounting = 0
            return _NOT_RECOUNTED
        self.recounting = max(0, self.recounting - 1)
        if not self._wanted or self.over is not None or (on_gpu and _little_memory()):
            return None
        module: Any = import_module(".counter.step_counter", __package__)
        if module.other_modes():
            return None
        if module.old_torch() and (name := _control_flow()):
            self.over = _TRACED.format(name=name)
            return None
        told = self._prepare()
        if self.over is not None:
            return None
        self._wanted = False
        self._frames = _frames()
        self._began = time.perf_counter()
        self.counter = module.StepCounter()
        self.counter.__enter__()
        return told

    def _prepare(self) -> str | None:
        """Look for compiled code; run the step without it if that was asked for."""
        if not _frames():
            return None
        if not self._uncompiled:
            self.over = _COMPILED
        elif not hasattr(torch.compiler, "set_stance"):
            self.over = _OLD_TORCH
        elif name := _control_flow():
            self.over = _ONLY_COMPILED.format(name=name)
        else:
            self._stance = torch.compiler.set_stance("force_eager")
            return _UNCOMPILED
        return None

    def begin_call(self) -> tuple[Any, str | None]:
        """Count a call that is work of the step, if none was counted; its counter, what to tell."""
        module: Any = import_module(".counter.step_counter", __package__)
        if self.main is not None or self.over is not None or module.other_modes():
            return None, None
        told = self._prepare()
        if self.over is not None:
            return None, told
        if self.own is None:
            self._wanted = False
            self._began = time.perf_counter()
            self.own = module.StepCounter()
        self.counter = self.own
        self.counter.active = True
        self.counter.__enter__()
        return self.counter, told

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
        if self._stance is not None:
            self._stance.__exit__(None, None, None)
            self._stance = None
        return counter

    def end(self, samples: int | None, kind: Kind) -> dict[str, Any] | None:
        """End the count of the step that ends now; keys of the ``count`` line for the first."""
        by_itself = self.own is not None
        compiles = not by_itself and _frames() > self._frames
        counter, self.own = self.own or self._take_off(), None
        if counter.broken is not None or compiles:
            self._try_again(counter.broken or "the program compiled in the steps that were tried")
            return None
        if kind in self.kinds:
            self._try_again("")
            return None
        if self._doubtful is not None and self._doubtful[1] == kind:
            counter = min(self._doubtful[0], counter, key=lambda each: each.step.flop)
        elif self.main is None and counter.without_gradients and not by_itself:
            self._doubtful = counter, kind
            self._try_again("no two steps were alike")
            return None
        step, again = counter.step, counter.again
        if not step.flop:
            self.over = "no operator with FLOP was seen: they run where the dispatcher cannot see"
            return None
        self.kinds[kind] = Counted(samples, step.flop, step.bytes + again.bytes)
        self.recounting = 0
        if self.main is not None:
            return None
        self.main, self._main_trained = kind, self._trained
        self.dtype = max(counter.flop_by_type, key=counter.flop_by_type.get)
        return {
            "flop_forward_per_sample": counter.forward.flop / samples if samples else None,
            "flop_forward_per_step": counter.forward.flop,
            "flop_backward_per_step": counter.backward.flop,
            "flop_per_step": step.flop,
            "flop_recomputed_per_step": again.flop,
            "bytes_per_step": step.bytes + again.bytes,
            "operators": step.table(),
            "uncounted_operators": step.uncounted_operators(),
            "method": _METHOD,
            "samples": samples,
            "seconds": time.perf_counter() - self._began,
        }

    def work_of(self, samples: int | None, kind: Kind) -> tuple[float, float] | None:
        """FLOP and bytes of a step that differs from that of the ``count`` line.

        Of a kind that was not counted at least so many: the work grows at least as the size of a
        longer batch, and shrinks at most as its square. ``None``: as ``count`` says.
        """
        if self.main is None or not self.kinds:
            return None
        if kind == self.main and self._trained == self._main_trained:
            return None
        known = self.kinds.get(kind)
        if known is not None:
            scale = samples / known.samples if samples and known.samples else 1.0
            return known.flop * scale, known.bytes * scale
        least = [self._at_least(counted, of, samples, kind) for of, counted in self.kinds.items()]
        return max(least)

    def _at_least(
        self, counted: Counted, of: Kind, samples: int | None, kind: Kind
    ) -> tuple[float, float]:
        size = _mean_elements(kind) / max(1, _mean_elements(of))
        scale = len(kind) / max(1, len(of))
        if samples and counted.samples:
            scale = samples / counted.samples
        scale *= size if size >= 1 else size * size
        return counted.flop * scale, counted.bytes * scale

    def _leave_the_rest(self) -> None:
        while self._left and self._left[-1].leave():
            self._left.pop()


def _mean_elements(kind: Kind) -> float:
    """Elements of a sample in each of its tensors; accumulated batches are so many more samples."""
    total = 0
    for sizes in kind:
        product = 1
        for size in sizes:
            product *= size
        total += product
    return total / max(1, len(kind))


def _frames() -> int:
    """How many functions torch.compile has compiled; those of ``torch.cond`` are not among them."""
    if "torch._dynamo" not in sys.modules:
        return 0
    counters: Any = import_module("torch._dynamo.utils").counters
    return int(counters["frames"]["ok"])


def _control_flow() -> str | None:
    """An operator that the program used and that runs compiled only."""
    known: Any = getattr(torch._ops, "_higher_order_ops", {})
    used = (name for name in _CONTROL_FLOW if getattr(known.get(name), "_dispatch_cache", None))
    return next(used, None)


def _little_memory() -> bool:
    free, total = torch.cuda.mem_get_info()
    return free < _FREE_MEMORY * total
