"""Steps of a program that trains nothing: calls of its models without gradients.

A step is an outermost call of the model that the program calls most, or of ``generate`` of
transformers; its time is from the end of one to the end of the next. Nothing is told before two
are over and no optimizer is there: an evaluation before a training looks the same.

Torch's global hooks see the calls of the first steps, to find the models; from then on their
classes are followed, as in training. They are gone before torch.compile could see them.
"""

from __future__ import annotations

import functools
import gc
import sys
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch.nn.modules import module as modules

from . import tracking
from .batches import describe
from .models import Models

_LOOKS = 3
"""Steps of which every call of a module is looked at."""
_PREFILL, _DECODE = "prefill", "decode"
_METHOD = "sizes of what generate was given and gave, up to the end of each sequence"
_FAILED = "generate failed in the steps that were tried"
_THREADS = "the steps that were tried ran in several threads"
_OPTIMIZER = (
    "models were called without gradients, but there was an optimizer, which took no step: that "
    "was taken for an evaluation"
)


class Generated(NamedTuple):
    """What a call of ``generate`` gave, of all sequences together."""

    sequences: int
    prompt: int
    """Tokens of the prompts, padding included."""
    new: int | None
    """Tokens up to the end of each sequence; ``None``: where that is cannot be seen."""


class Call:
    """A call of a model that is not over."""

    def __init__(
        self, model: Any, *, leads: bool = False, seen: bool = False, within: Call | None = None
    ) -> None:
        self.model = model
        self.leads = leads
        """Whether a step ends with it."""
        self.seen = seen
        """Whether torch's global hook saw it, which does not tell if the call fails."""
        self.within = within
        """The call of ``generate`` that this one is in."""
        self.forwards = 0
        """Calls of the model within this one of ``generate``."""
        self.inside = False
        """Whether one of them runs."""
        self.counter: Any = None
        """What counts few of them."""
        self.phase: Any = None
        """What the phase of this one of ``generate`` interrupts."""


class Inference:
    """Which calls of this process are steps, until it turns out to train."""

    def __init__(self, tracker: tracking.Tracker) -> None:
        self.off = False
        self.sampling = tracker.sampling
        self._tracker = tracker
        self._models = Models()
        self._lock = threading.RLock()
        self._calls: dict[int, int] = {}
        """How often each model was called, by ``id``."""
        self._leader = 0
        """``id`` of the one that was called most."""
        self._open: dict[int, Call] = {}
        """Outermost calls by thread."""
        self._overlap = False
        """Whether calls of several threads ever ran at once."""
        self._thread: int | None = None
        """In which the last step ended."""
        self._generated: list[Generated] = []
        """By timed steps, not told yet."""
        self._sums, self._steps = Generated(0, 0, 0), 0
        """Of those that were told, and how many these are."""
        self._looks = [
            modules.register_module_forward_pre_hook(_begins),
            modules.register_module_forward_hook(_ends),
        ]

    def end_look(self) -> None:
        """Follow the models that are known alone."""
        looks, self._looks = self._looks, []
        for each in looks:
            each.remove()
        for call in [call for call in self._open.values() if call.seen]:
            self.ends(call)  # nobody will see it

    @tracking._guarded
    def sees(self, module: Any, args: tuple[Any, ...]) -> None:
        """A module is called that may be a model."""
        if threading.get_ident() in self._open or next(module.parameters(), None) is None:
            return
        if torch.is_grad_enabled():
            self._tracker.begins()
            self.end_look()  # it trains, it seems; a checkpoint calls modules without gradients
        elif module not in self._models and not _elsewhere():
            self._models.add(module)
            self._begin(module, args, seen=True)

    @tracking._guarded
    def saw(self, module: Any) -> None:
        """It is over."""
        call = self._open.get(threading.get_ident())
        if call is not None and call.seen and call.model is module:
            self.ends(call)

    @tracking._guarded
    def begins(self, model: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Call | None:
        """A module of a followed class is called; ``None``: that is no part of a step."""
        kind = getattr(sys.modules.get("torch._dynamo"), "OptimizedModule", None)
        is_compiled = kind is not None and isinstance(model, kind)
        if is_compiled:
            self.end_look()  # torch warns of global hooks where it calls such a module
        if torch.is_grad_enabled() or not (is_compiled or model in self._models) or _elsewhere():
            return None
        outer = self._open.get(threading.get_ident())
        if outer is not None and outer.seen and outer.model is model:
            self.ends(outer, True)  # which nobody saw
            outer = None
        if outer is None:
            self._models.add(model)
            return self._begin(model, args or keywords)
        if not outer.phase or outer.model is not model or outer.inside:
            return None
        outer.inside = True
        with self._lock:
            if self._counts(outer):
                outer.counter.begin_call(outer.forwards)
        return Call(model, within=outer)

    @tracking._guarded
    def generates(self, model: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Call | None:
        """As :meth:`begins`, for ``generate``."""
        if threading.get_ident() in self._open or _elsewhere():
            return None
        self._models.add(model)
        return self._begin(model, args or keywords, generates=True)

    def _begin(
        self, model: Any, given: Any, *, seen: bool = False, generates: bool = False
    ) -> Call:
        tracker, key = self._tracker, id(model)
        with self._lock:
            self._calls[key] = self._calls.get(key, 0) + 1
            if self._calls[key] > self._calls.get(self._leader, 0):
                self._leader = key
            call = Call(model, leads=key == self._leader, seen=seen)
            self._overlap = self._overlap or bool(self._open)
            tracker._phases.infers()
            if not generates:
                tracker._phases.inference_begins()
            elif not self._open:
                call.phase = tracker._phases.begin_own(_PREFILL)
                call.counter = getattr(tracker._counting, "counter", None)
            self._open[threading.get_ident()] = call
            if call.leads and not (tracker._batches and tracker._batches.samples_told):
                if generates:
                    batch = describe(given, torch.Tensor)
                    tracker._given.add(key, batch, in_optimizer=False)
                else:
                    tracker._give(model, given, self._models)
        return call

    @tracking._guarded
    def ends(
        self, call: Call, failed: bool = False, tokens: Callable[[], Generated | None] | None = None
    ) -> None:
        """A call is over; ``failed``: with an exception, and that is no step. ``tokens``: what it
        generated."""
        tracker, thread = self._tracker, threading.get_ident()
        generated = None if tokens is None else tokens()
        with self._lock:
            if call.within is not None:
                call.within.forwards += 1
                call.within.inside = False
                if call.within.forwards == 1:
                    tracker._phases.end_own(call.within.phase)
                    call.within.phase = tracker._phases.begin_own(_DECODE)
                return
            self._open = {of: each for of, each in self._open.items() if each is not call}
            if call.phase is not None:
                tracker._phases.end_own(call.phase)
            if self._counts(call):
                if failed:
                    tracker._counting.stop(_FAILED)
                else:
                    call.counter.end_calls(call.forwards)
            if not self._open:
                tracker._phases.between()
            if failed:
                tracker._given.end_step()
            elif call.leads:
                counting = tracker._counting
                if counting is not None and self._thread not in (None, thread):
                    counting.stop(_THREADS)
                if counting is not None and counting.counter is not None:
                    counting.counter.without_gradients = False  # as it should be
                self._thread = thread
                self._end_step(call, generated)

    def _counts(self, call: Call) -> bool:
        """Whether calls within this one are counted."""
        counter = getattr(self._tracker._counting, "counter", None)
        return call.counter is not None and call.counter is counter

    def _end_step(self, call: Call, generated: Generated | None) -> None:
        tracker = self._tracker
        tracker._use_batch()
        tracker._new_calls = 1
        if generated is not None:
            of_all = tracker._given.end_step()
            if tracker._samples is None and of_all is not None:
                tracker._samples = of_all.samples
            tracker._tokens = generated.new
            # Longer prompts are no larger batch: what follows them is as long.
            tracker._kind, tracker._calls = ((),), 1 + call.forwards
            tracker._passes = generated.prompt // generated.sequences
        warmup = tracker.end_step(call.model, False)
        if generated is not None and not warmup:
            self._generated.append(generated)
        if tracker._number == tracking._WARMUP and tracker.inference is self:
            kinds = map(type, gc.get_objects())  # a proxy may do anything where it is asked
            if any(issubclass(kind, torch.optim.Optimizer) for kind in kinds):
                tracker.trains(_OPTIMIZER)
        if tracker._number == _LOOKS:
            self.end_look()

    def tell_generation(self) -> None:
        """Tell what a step generates: the mean of the timed ones so far."""
        if not self._generated:
            return
        if self._overlap:
            self._tracker._tell(event="generation", sequences=None)
            self._generated.clear()
            return
        for each in self._generated:
            sums = self._sums
            self._sums = Generated(
                sums.sequences + each.sequences,
                sums.prompt + each.prompt,
                None if sums.new is None or each.new is None else sums.new + each.new,
            )
        self._steps += len(self._generated)
        self._generated.clear()
        sequences, prompt, new = self._sums
        self._tracker._tell(
            event="generation",
            sequences=sequences / self._steps,
            prompt_tokens=prompt / sequences,
            new_tokens=None if new is None else new / sequences,
            kv_cache_bytes=None,
            method=_METHOD,
        )


def generating(
    original: Callable[..., Any],
    tokens: Callable[..., Generated | None],
    model: Any,
    args: tuple[Any, ...],
    keywords: dict[str, Any],
) -> Any:
    """``original(model, *args, **keywords)``, which is a step; ``tokens`` says what it gave, by
    the same values and the result."""
    tracker = tracking.tracker
    inference = None if tracker is None else tracker.inference
    call = None if inference is None else inference.generates(model, args, keywords)
    if inference is None or call is None:
        return original(model, *args, **keywords)
    try:
        result = original(model, *args, **keywords)
    except BaseException:
        inference.ends(call, True)
        raise
    inference.ends(call, False, functools.partial(tokens, model, args, keywords, result))
    return result


def _begins(module: Any, args: tuple[Any, ...]) -> None:
    tracker = tracking.tracker
    if tracker is not None and tracker.inference is not None and not torch.compiler.is_compiling():
        tracker.inference.sees(module, args)


def _ends(module: Any, args: tuple[Any, ...], result: Any) -> None:
    tracker = tracking.tracker
    if tracker is not None and tracker.inference is not None and not torch.compiler.is_compiling():
        tracker.inference.saw(module)


def _elsewhere() -> bool:
    """Whether a call is traced, is captured in a graph, or prepares data."""
    of: Any = torch
    return (
        of.jit.is_tracing()
        or (of.cuda.is_initialized() and of.cuda.is_current_stream_capturing())
        or of.utils.data.get_worker_info() is not None
    )
