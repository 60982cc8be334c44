"""Follows a training: where its steps end, what belongs to them, and what is told of them.

Nothing here may harm the program: whatever goes wrong ends the hook, and is told.
"""

from __future__ import annotations

import atexit
import functools
import os
import sys
import time
import weakref
from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from . import startup
from .batches import Batches, Described, Given, Kind, Sizes
from .channel import Channel, world
from .clocks import EVALUATION, PHASES, CudaClock, Timing
from .passing import Passing, Step
from .phases import Phases, gradients
from .profiling import Profiling
from .sampling import Sampling

FOLDER, OPTIONS = "GPUWATCH_HOOK", "GPUWATCH_HOOK_OPTIONS"
INTERVAL = 0.15
"""Seconds between two lines; slow steps are told at once."""
_INTERVAL_NS = int(INTERVAL * 1e9)
_COST_INTERVAL = 5.0
"""Seconds after which the cost of the hook is told again."""
_WARMUP = 2
"""Steps before the first one that is counted: like that one they are in no statistic."""
_MOST_STEPS = 1000
"""Most steps of one line."""
_LEADS_AFTER, _LEADS_AGAIN_AFTER = 10, 2
"""Steps without one of the leading optimizer with which another leads: fewer are a part of a GAN's
step. Once one did, others do so earlier, since a program may train in turns."""

_NO_STEPS = (
    "backward passes, but no step of an optimizer of torch was seen: a compiled step, and an "
    "optimizer that is not a torch.optim.Optimizer, cannot be followed"
)

tracker: Tracker | None = None
"""The one that follows this process; ``None``: nobody does."""


def start() -> None:
    """Follow this process, once torch's optimizers are loaded."""
    global tracker
    folder = os.environ.get(FOLDER)
    if folder and tracker is None:
        tracker = Tracker(folder, os.environ.get(OPTIONS, "").split(","))


def leave(error: BaseException) -> None:
    """End the hook in this process, and tell why."""
    global tracker
    left, tracker = tracker, None
    if left is not None:
        left.leave(error)


_Method = TypeVar("_Method", bound=Callable[..., Any])


def _guarded(method: _Method) -> _Method:
    """``method`` of a tracker; what it raises ends the hook instead of the program."""

    @functools.wraps(method)
    def guarded(self: Tracker, *values: Any) -> Any:
        if self.off:
            return None
        try:
            sampling = self.sampling
            timed = sampling.timing = sampling.timed
            waited = sampling.clock.waited
            begin = time.thread_time_ns() if timed else 0
            result = method(self, *values)
            if timed:
                sampling.spent += time.thread_time_ns() - begin
                sampling.spent -= sampling.clock.waited - waited
            if sampling.ended:
                sampling.close()
            return result
        except Exception as error:
            leave(error)
            self.off = True
            return None

    return guarded  # type: ignore[return-value]


class Tracker:
    """What is known of the training in this process."""

    def __init__(self, folder: str, options: list[str]) -> None:
        self.off = False
        self.taken = 0
        """Steps that any optimizer has taken."""
        self.total_steps: int | None = None
        """Steps that are planned, where a framework tells."""
        self._planned_at = 0
        """Steps of inference that they include."""
        self.inference: Any = None
        """What takes calls of models for steps; ``None``: the process trains, or had no torch."""
        self._no_steps: str | None = None
        """Why there may be none."""
        self._folder = folder
        self._wants_loss = "loss" in options
        self._profiled = next((int(each[8:]) for each in options if each[:8] == "profile="), 0)
        """How many steps are to be profiled."""
        self._channel: Channel | None = startup.channel or Channel(folder, world())
        self._begin()
        os.register_at_fork(after_in_child=self._forked)
        atexit.register(self.close)

    def _begin(self) -> None:
        self._phases = Phases()
        self.sampling = Sampling(self._folder)
        self._timed_by: Counter[str] = Counter()
        """Steps by what gave their time."""
        self._unseen: dict[str, str] = {}
        self._counting: Any = None
        self._on_gpu = False
        self._number = 0
        self._backward_passes = self._passes = 0
        """In all, and in this step."""
        self._calls = self._new_calls = 0
        """Calls of models in this step that a backward pass followed, and those since."""
        self._stepped_in_backward: Any = None
        """The optimizer, and whether it was skipped, whose step ends the step of the training once
        the backward pass is over."""
        self._run: dict[str, Any] = {}
        """What is known of the run; a thread's second step may end before another's first."""
        self._parameters: dict[int, int] = {}
        """Elements of each parameter that an optimizer has updated in the first two steps."""
        self._leader: Any = None
        self._leads_after = _LEADS_AFTER
        self._others: Counter[int] = Counter()
        """Steps of other optimizers since the leader's last."""
        self._batches: Any = None
        self._given = Given()
        self._described = Described()
        self._samples: int | None = None
        self._tokens: int | None = None
        self._kind: Sizes = ()
        self._trained_on: tuple[int | None, Sizes] = None, ()
        """Samples and kind of the last step that had a batch, or told its samples."""
        self._loss: Any = None
        self._profiling: Profiling | None = None
        if self._profiled:
            self._profiling = Profiling(
                self._profiled, _WARMUP, lambda event, **keys: self._tell(event=event, **keys)
            )
        self._seen_from = sys.maxsize
        """Steps after which all are seen, since they are to be profiled."""
        self._began: int | None = None
        """When the first batch was asked for, or a model called, in monotonic nanoseconds."""
        self.passing = Passing()
        self._always = False
        """Whether every step has to be seen."""
        self._steps: list[Step] = []
        """Those that are not told yet, up to the last one that was seen."""
        self._timings: list[Timing] = []
        self._told = self._told_cost = time.monotonic()
        self._told_steps = 0
        self._due_ns = 0
        """When steps that are passed over are to be told."""
        self._by_itself = self._in_own_step = False
        """Whether the program says itself where its steps are, and is in one."""

    def _forked(self) -> None:
        """A child has reported nothing yet, and has a file of its own once it trains."""
        self.passing.end(partly=True)
        if self._counting is not None and self._counting.counter is not None:
            self._counting.counter.active = False
        self._channel = None
        self._begin()
        if self.inference is not None:
            self.inference.off = True  # its calls are the parent's
            self.inference.end_look()
            self.infers()

    @_guarded
    def infers(self) -> None:
        """Take calls of models for steps, for as long as nothing is trained."""
        from .inference import Inference

        if not self._by_itself:
            self.inference = Inference(self)

    @_guarded
    def trains(self, why: str | None = None) -> None:
        """What was taken for inference was an evaluation, ``why`` tells by which sign; the next
        step is the first."""
        inference, self.inference, self._no_steps = self.inference, None, why
        inference.end_look()
        inference.off = True  # a call in another thread may not be over
        if self.total_steps is not None:
            self.total_steps -= self._planned_at
        if self._number:
            if self._counting is not None:
                self._counting.stop("")
            if self._profiling is not None:
                self._profiling.leave()
            self._tell(event="training")
            batches = self._batches
            self._begin()
            self._batches = batches

    # What the program does.

    def begins(self) -> None:
        """A step may begin."""
        self._began = self._began or time.monotonic_ns()

    def stirs(self, model: Any = None) -> bool:
        """Whether a batch that is asked for, or a model that is called, may begin an evaluation
        although the step is passed over; if so, what comes is seen."""
        try:
            if not self._phases.may_evaluate(model):
                return False
            self.sees()
            return True
        except Exception as error:
            leave(error)
            return False

    @_guarded
    def data_begins(self) -> tuple[int, bool]:
        self._tell_if_due()
        self._new_calls = 0  # of an evaluation with gradients, of which nothing was made
        self.begins()
        before = self._phases.data_begins()
        self._evaluates()
        return before

    @_guarded
    def iterator_made(self, before: tuple[int, bool] | None) -> None:
        """What began with :meth:`data_begins` gave no batch yet."""
        if before is not None:
            self._phases.data_ends(before)

    @_guarded
    def data_ends(self, before: tuple[int, bool] | None, iterator: Any, batch: Any) -> None:
        """A loader's iterator gave a batch, or ``None``: it is at its end."""
        if before is None:
            return
        self._phases.data_ends(before)
        if batch is None and not before[1]:
            self.epoch_ends(iterator)
        if before[1] and not gradients():
            return
        if self._batches is None:
            self._batches = Batches(sys.modules["torch"].Tensor)
        sizes = self._batches.fetched(iterator, batch)
        evaluates = before[1]  # or the training, which puts its model into training mode later
        if self._batches.samples_told and not self._kind and not evaluates:
            self._begin_kind(sizes)

    @_guarded
    def model_called(self, model: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> None:
        if self._phases.models is None or sys.modules["torch"].jit.is_tracing():
            return
        self.begins()
        begins = self._phases.model_called(model)
        self._evaluates()
        if begins is None:
            return
        self._new_calls += 1
        if self._batches is not None and self._batches.samples_told:
            return
        if not begins:
            self._given.call(id(model))
            return
        self._give(model, args or keywords, self._phases.models)

    def _give(self, model: Any, given: Any, models: Any) -> None:
        """A model is given the batch of a pass that begins."""
        batch = self._described(given, sys.modules["torch"].Tensor)
        of_one = len(batch.sizes[0]) in models.sizes_of_one(model) if batch.sizes else True
        if of_one or not batch.alike or not models.takes_samples_first(model) or _transforms():
            batch = batch._replace(samples=None)
        if not self._given.sizes:
            self._begin_kind(batch.sizes)
        self._given.add(id(model), batch, in_optimizer=self._phases.in_optimizer)

    def _evaluates(self) -> None:
        if self._counting is not None and self._phases.now == EVALUATION:
            self._counting.stop("the steps that were tried held an evaluation")

    def _begin_kind(self, sizes: Sizes) -> None:
        """The first batch of the step is known."""
        profiled = self._profiling is not None and self._profiling.on
        if sizes and self._counting is not None and not (profiled or self.passing.partly):
            self._begin_count(self._counting.begin_kind(sizes, self._on_gpu))

    @_guarded
    def backward_begins(
        self, args: tuple[Any, ...], keywords: dict[str, Any]
    ) -> tuple[Any, Any] | None:
        if self._phases.in_backward:  # of activation checkpointing
            return None
        if self.inference is not None:
            self.trains()
        self._phases.backward_begins()
        self._backward_passes += 1
        self._passes += 1
        self._calls, self._new_calls = self._calls + self._new_calls, 0
        self._use_batch()
        if self._wants_loss:
            loss: Any = args[0] if args else keywords.get("tensors")
            self._loss = loss.detach() if hasattr(loss, "detach") else None
        counter = None if self._counting is None else self._counting.counter
        part = None
        if counter is not None:
            part, counter.part = counter.part, BACKWARD_PART
            create = keywords.get("create_graph", args[3] if len(args) > 3 else False)
            counter.differentiable = bool(create)
        return counter, part

    def _use_batch(self) -> None:
        if self._batches is None:
            return
        for batch in self._batches.use():
            self._samples = _plus(self._samples, batch.samples)
            self._tokens = _plus(self._tokens, batch.tokens)
            self._kind = (*self._kind, *batch.sizes)

    @_guarded
    def backward_ends(self, before: tuple[Any, Any] | None, whole: bool) -> None:
        """``whole``: it did not end with an exception, after which programs may try it again."""
        if before is None:
            return
        self._phases.backward_ends()
        counter, part = before
        if counter is not None:
            counter.part = part
        if not whole and self._counting is not None:
            self._counting.stop("a backward pass failed in the steps that were tried")
        if self._stepped_in_backward is not None:
            optimizer, skipped = self._stepped_in_backward
            self._stepped_in_backward = None
            self.end_step(optimizer, skipped)

    @_guarded
    def optimizer_begins(self, optimizer: Any) -> None:
        if self.inference is not None:
            self.trains()
        self._phases.optimizer_begins(optimizer)
        if self._counting is not None and self._counting.counter is not None:
            self._counting.counter.part = OPTIMIZER_PART

    @_guarded
    def closure(self, runs: bool) -> None:
        """An optimizer's closure begins, or is over."""
        self._phases.closure(runs)

    @_guarded
    def optimizer_ends(self, optimizer: Any) -> None:
        if not self._phases.optimizer_ends(optimizer):
            return
        self.taken += 1
        self._given.optimizer_ends()
        if self._counting is not None and self._counting.counter is not None:
            part = BACKWARD_PART if self._phases.in_backward else FORWARD_PART
            self._counting.counter.part = part
        self._after(optimizer, skipped=False)

    @_guarded
    def skipped(self, optimizer: Any) -> None:
        """A gradient scaler left the step of an optimizer out."""
        if self.passing.on:
            self.sees()
        self._after(optimizer, skipped=True)

    def _after(self, optimizer: Any, *, skipped: bool) -> None:
        """End the step, if it is the leading optimizer's that ended."""
        if self._number < _WARMUP:
            for group in optimizer.param_groups:
                self._parameters |= {id(each): each.numel() for each in group["params"]}
        if self._by_itself:
            self._leader = weakref.ref(optimizer)
            return
        leader = None if self._leader is None else self._leader()
        if optimizer is not leader:
            if leader is not None and not self._takes_over(optimizer):
                return
            self._leader = weakref.ref(optimizer)
            self._look_at_trained()
        self._others.clear()
        if self._phases.in_backward:
            self._always = True  # which parameters it steps is seen in no other way
            self._stepped_in_backward = optimizer, skipped
        else:
            self.end_step(optimizer, skipped)

    def _takes_over(self, optimizer: Any) -> bool:
        """Whether another optimizer leads with the step that it took."""
        self._others[id(optimizer)] += 1
        # Optimizers that take one step each, as of each layer, are of one step.
        again = self._others.total() - len(self._others)
        if over := self._others[id(optimizer)] > 1 and again > self._leads_after - 2:
            self._leads_after = _LEADS_AGAIN_AFTER
        return over

    # Steps that are passed over.

    def passes(self, optimizer: Any) -> None:
        """An optimizer took a step in one that is passed over: all that the hook does then."""
        passing, sampling, clock = self.passing, self.sampling, self._phases.clock
        try:
            leader = passing.leader()
            if optimizer is not leader:
                self._passes_other(optimizer, gone=leader is None)
                return
            timed = sampling.timing = sampling.timed
            begin = time.thread_time_ns() if timed else 0
            if not passing.end_alike():  # as where accumulation changes: its samples are not known
                self.sees()
                passing.forget()
                passing.usual = passing.usual._replace(samples=None, tokens=None)
                self._phases.doubtful = True
                self.optimizer_ends(optimizer)
                return
            now = time.monotonic_ns()
            self.taken += 1
            passing.ends.append(now)
            if self._others:
                self._others.clear()
            if timed:
                sampling.spent += time.thread_time_ns() - begin
                sampling.timing = False
            sample = sampling.next(clock) or self._number + len(passing.ends) >= self._seen_from
            sampling.close()
            if sample or (clock.ends and self._on_gpu):
                self._settle(marked=True)
            if sample:
                passing.end(partly=False)
            if now >= self._due_ns:
                self._due_ns = now + _INTERVAL_NS
                self._settle()
                self._tell_if_due()
                if passing.on and not self._may_pass():
                    passing.end(partly=False)
                    if self._counting is not None:
                        self._begin_count(self._counting.begin(self._on_gpu))
        except Exception as error:
            leave(error)

    @_guarded
    def epoch_ends(self, iterator: Any) -> None:
        """The training's loader has no more batches: the last step may have had fewer samples."""
        from .batches import lacking

        self._settle()
        if self.passing.newest and self._steps:
            self.passing.newest = False
            last, less = self._steps[-1], lacking(iterator)
            if last.samples is not None and less < last.samples:
                self._steps[-1] = last._replace(samples=last.samples - less)

    def _passes_other(self, optimizer: Any, *, gone: bool) -> None:
        """As :meth:`passes`, of an optimizer with which no step ends, as far as is known; ``gone``:
        the one with which they did end is no more."""
        if not (gone or self._takes_over(optimizer)):
            self.taken += 1
            return
        self.sees()
        self.optimizer_ends(optimizer)

    def _may_pass(self) -> bool:
        """Whether the step that begins now may be passed over."""
        if self.sampling.sampled or self._always or self._by_itself or self._wants_loss:
            return False
        if self._number >= self._seen_from:
            return False
        counting, models = self._counting, self._phases.models
        return bool(
            self.inference is None
            and self.passing.known
            and self._leader is not None
            and (counting is None or counting.idle)
            and (models is None or not models.looks)
            and self._phases.idle
        )

    def _pass_over(self) -> None:
        """Pass the step over that begins now."""
        from .counting import compiled_functions  # needs torch, as an optimizer does

        self.passing.begin(self._leader)
        self._due_ns = time.monotonic_ns() + _INTERVAL_NS
        if not compiled_functions():  # what was compiled is guarded by what is in torch
            self.passing.remove_eyes()

    @_guarded
    def sees(self) -> None:
        """What comes from here on is seen, in the middle of a step."""
        self._settle()
        self.passing.end(partly=True)

    def _settle(self, *, marked: bool = False) -> None:
        """Take the steps that were passed over to the others; ``marked``: the last ends now, with
        an event on a GPU."""
        ends = self.passing.ends
        if not ends:
            return
        self._phases.passed()
        self._number += len(ends)
        self.passing.steps += len(ends)
        self._steps += [self.passing.usual] * len(ends)
        self.passing.newest = True
        clock = self._phases.clock
        if before := ends[:-1] if marked else ends:
            clock.passed(before)
        if marked:
            clock.end_step(self.sampling.sampled)
        ends.clear()

    # Steps.

    @_guarded
    def plan(self, steps: Any) -> None:
        """A framework says how many steps are to come."""
        self._settle()
        if isinstance(steps, int) and steps > 0:
            self.total_steps, self._planned_at = self._number + steps, self._number
            if self._profiling is not None:
                self._seen_from = self._profiling.plan(self.total_steps) - 2

    def end_step(self, of: Any, skipped: bool) -> bool:
        """A step ends here, ``of`` an optimizer or a model; returns whether it is a warm-up."""
        self._number += 1
        forward, doubtful = self._phases.forward, self._phases.doubtful
        self._phases.end_step(self.sampling.next(self._phases.clock))
        profiled = self._profiling is not None and self._end_profiled()
        if self._samples is None:
            self._use_batch()  # no backward pass was seen: gradients were taken otherwise
        lacking = 0 if self._batches is None else self._batches.lacking
        if self._batches is not None and self._batches.end_step() and self._counting is not None:
            self._counting.stop("the steps that were tried fetched batches that they did not use")
        if (given := self._given.end_step()) is not None and self._samples is None:
            self._samples, self._kind = given.samples, given.sizes
            self._tokens = given.tokens if self._tokens is None else self._tokens
        if self._number == 1:
            self._first_step(of)
        elif self._number == _WARMUP and "trainable_parameters" in self._run:
            self._tell_run(trainable_parameters=sum(self._parameters.values()))
        if self._kind or self._samples is not None:
            self._trained_on = self._samples, self._kind
        samples, sizes = self._trained_on  # without a batch of its own: of the one before
        kind = Kind(sizes, self._calls if self._passes else self._new_calls, self._passes)
        counted = self._end_count(samples, kind)
        warmup = self._number <= _WARMUP or counted or doubtful or profiled
        work = None
        if self._counting is not None:
            work = self._counting.work_of(samples, kind)
            warmup = warmup or self._counting.recounting > 0 or self._counting.seeking
            self._tell_count()
        self.passing.newest = self.passing.partly
        calls, self.passing.calls = self.passing.calls, 0
        if self.passing.partly:
            self._steps.append(self.passing.usual._replace(warmup=warmup, skipped=skipped))
            self.passing.partly = False
        else:
            told = self._samples, self._tokens, work, self._loss
            self._steps.append(Step(warmup, skipped, forward, *told))
            if not warmup and not skipped:
                self.passing.saw(self._steps[-1], lacking, calls)
        if self._number > 1 and self._counting is None:
            self._make_counting()
            self._look_at_trained()
        self._samples = self._tokens = self._loss = None
        self._kind, self._calls, self._new_calls, self._passes = (), 0, 0, 0
        if self.inference is None:
            self._look_at_models(forward)
        self._tell_if_due()
        if self._counting is not None and not (self._profiling is not None and self._profiling.on):
            self._begin_count(self._counting.begin(self._on_gpu))
        if self._may_pass():
            self._pass_over()
        return warmup

    def _end_profiled(self) -> bool:
        """Whether the step that ends was profiled. What the profiler takes is no cost of the
        hook, which was asked for it."""
        assert self._profiling is not None
        begin = time.thread_time_ns()
        profiled = self._profiling.end_step(self._number, on_gpu=self._on_gpu)
        if self.sampling.timing:
            self.sampling.spent -= time.thread_time_ns() - begin
        return profiled

    def _look_at_models(self, forward: bool) -> None:
        """Find the models in the next step, if this one called none that is known."""
        if "torch" not in sys.modules:
            return
        if self._phases.models is None:
            from .models import Models

            self._phases.models = Models()
        if forward:
            self._phases.models.end_look()
        else:
            self._phases.models.look()

    def _tell_unseen(self) -> None:
        """Why a phase has no time, in the last of the steps that are told."""
        unseen = self._phases.unseen(self._steps[-1].forward)
        if self._number > _WARMUP and "torch" in sys.modules and unseen != self._unseen:
            self._unseen = unseen
            self._tell_run(unseen_phases=unseen)

    def _begin_count(self, told: str | None) -> None:
        if told:
            self._problem(told)

    def _end_count(self, samples: int | None, kind: Any) -> bool:
        """Whether the step that ends was counted."""
        counting = self._counting
        if counting is None or (counting.counter is None and counting.own is None):
            return False
        self._look_at_trained()  # it may be the first that trains something else
        if counting.counter is not None or counting.own is not None:
            counting.end(samples, kind)
        return True

    def _tell_count(self) -> None:
        if (news := self._counting.news) is not None:
            self._counting.news = None
            self._tell(event="count", **news)
            if "dtype" not in self._run:
                self._tell_run(dtype=self._counting.dtype)

    def _first_step(self, of: Any) -> None:
        """Tell what is going to run, now that it is known; choose the clock."""
        if self._channel is None:
            self._channel = Channel(self._folder, world())
        elif None not in (found := world())[::2]:
            self._channel.introduce(found)
        if self.inference is not None:
            self._tell(event="inference")
        self._tell_startup()
        self._run = {"batch_size": self._samples}
        if of is None:  # the program tells its steps itself, and trains without torch
            self._tell_run()
            return
        import torch

        from . import facts

        inferring = isinstance(of, torch.nn.Module)
        groups = [{"params": of.parameters()}] if inferring else of.param_groups
        parameters = [each for group in groups for each in group["params"]]
        device = parameters[0].device if parameters else torch.device("cpu")
        self._run |= facts.of_device(device)
        self._run["sharded"] = any(map(facts.is_sharded, parameters))
        self._tell(event="versions", **facts.versions())
        of_all = sum(self._parameters.values())
        self._tell_run(**({} if inferring else {"trainable_parameters": of_all}))
        if device.type == "cuda":
            self._take_timings(wait=False)
            self._on_gpu = True
            self._phases.clock = CudaClock(torch.cuda, device, self._phases.clock)

    # Lines.

    def _tell_startup(self) -> None:
        """The parts of the start, as the program saw them: without waiting for the GPU."""
        told = {"python": sys.version.split()[0], "executable": sys.executable}
        self._tell(event="started", monotonic_ns=startup.BEGUN, **told)
        if startup.imported is None:
            return
        began, ended = startup.imported
        parts = {"import": ended - began}
        if self._began is not None:
            parts["model"] = self._began - ended
            parts["first_step"] = time.monotonic_ns() - self._began
        self._tell(event="startup", **{f"{part}_seconds": ns / 1e9 for part, ns in parts.items()})

    def _tell(self, **keys: Any) -> None:
        if self._channel is not None:
            self._channel.tell(**keys)

    def _tell_run(self, **more: Any) -> None:
        self._run = {**self._run, **more}
        self._tell(event="run", **self._run)

    def _problem(self, text: str) -> None:
        self._tell(event="problem", text=text)

    def _take_timings(self, *, wait: bool) -> None:
        ended = self._phases.clock.finished(wait)
        self._timed_by.update(timing.by for timing in ended)
        self._timings += ended

    def _tell_if_due(self) -> None:
        now = time.monotonic()
        plain = self.inference is None or self._number > _WARMUP
        if self._steps and now - self._told >= INTERVAL and plain:
            begin = time.thread_time_ns()
            self._take_timings(wait=False)
            read = time.thread_time_ns()
            self._tell_unseen()
            self._tell_steps()
            self._look_at_trained()
            if now - self._told_cost >= _COST_INTERVAL:
                self._told_cost = now
                self._tell_cost()
            told = time.thread_time_ns()
            passed = (now - self._told) * 1e9
            self.sampling.choose(self._phases.clock, passed, read - begin, told - read)
            if self.sampling.timing:
                self.sampling.spent -= told - begin
            self._told = now

    def _tell_cost(self) -> None:
        keys = {"steps_by": self._timed_by, "steps_passed": self.passing.steps}
        self._tell(event="timing", cost=self.sampling.cost, **keys)

    def _look_at_trained(self) -> None:
        """Notice layers that are unfrozen, and another model."""
        leader = None if self._leader is None else self._leader()
        if leader is None or self._counting is None:
            return
        parameters = (each for group in leader.param_groups for each in group["params"])
        trained = sum(each.numel() for each in parameters if each.requires_grad)
        if self._counting.changes(trained):
            self.passing.forget()
        if told := self._counting.trains(trained):
            self._problem(told)

    def _tell_steps(self, *, last: bool = False) -> None:
        """The steps that are over, a line for those that are alike; ``last``: no more will come."""
        if self.inference is not None:
            self.inference.tell_generation()
        # The newest may be the last of an epoch, with fewer samples: its loader says so only then.
        held = int(self.passing.newest and not last)
        while (ready := min(len(self._timings), len(self._steps) - held)) > 0:
            first = self._steps[0]
            alike, known = 1, first.known
            while alike < min(ready, _MOST_STEPS) and (
                self._steps[alike] is first or self._steps[alike].known == known
            ):
                alike += 1
            self._tell_line(self._steps[:alike], self._timings[:alike])
            del self._steps[:alike], self._timings[:alike]

    def _tell_line(self, steps: list[Step], timings: list[Timing]) -> None:
        before, self._told_steps = self._told_steps, self._told_steps + len(steps)
        keys: dict[str, Any] = {
            "step": self._told_steps,
            "count": len(steps),
            "seconds": [timing.ns / 1e9 for timing in timings],
            "monotonic_ns": timings[-1].end_ns,
        }
        sampled = [timing.phases for timing in timings if timing.sampled]
        keys["phases"] = phases = {
            self._phases.names[at]: sum(each[at] for each in sampled) / 1e9
            for at in (self._phases.told(steps[0].forward) if sampled else ())
        }
        if evaluation := sum(timing.phases[EVALUATION] for timing in timings):
            phases[PHASES[EVALUATION]] = evaluation / 1e9
        if len(sampled) < len(steps):
            keys["sampled"] = len(sampled)
        if self.total_steps is not None:
            keys["total_steps"] = self.total_steps
        if steps[0].samples is not None:
            keys["samples"] = sum(step.samples or 0 for step in steps)
        if steps[0].tokens is not None:
            keys["tokens"] = sum(step.tokens or 0 for step in steps)
        if steps[0].work is not None:
            work = [step.work for step in steps if step.work is not None]
            keys["flop"] = sum(flop for flop, _ in work)
            keys["bytes"] = sum(size for _, size in work)
        if steps[0].loss is not None:
            keys["loss"] = [float(step.loss) for step in steps]
        if steps[0].warmup:
            keys["warmup"] = True
        if skipped := [before + place for place, step in enumerate(steps, 1) if step.skipped]:
            keys["skipped"] = skipped
        self._tell(event="step", **keys)

    @_guarded
    def close(self) -> None:
        """Tell the rest at the end of the process."""
        if self._channel is None:
            return
        if not self._number:
            if reason := _NO_STEPS if self._backward_passes > 1 else self._no_steps:
                self._problem(reason)
            return
        if self._counting is not None:
            reason = self._counting.over
            if self._counting.main is None and self._number > 2:
                reason = reason or "the program ended before a step could be counted"
            if reason is not None and self._counting.main is None:
                self._tell(event="count", flop_per_step=None, bytes_per_step=None, method=reason)
        self._settle()
        if self._profiling is not None:
            self._profiling.close()
        self._take_timings(wait=True)
        if self._steps:
            self._tell_unseen()
        self._tell_steps(last=True)
        self._tell_cost()
        self._tell(event="end", steps=self._number)

    def leave(self, error: BaseException) -> None:
        """The hook ends in this process; the program goes on."""
        self.off = True
        self.passing.on = False
        try:
            if self._counting is not None:
                self._counting.stop("the hook left the program")
            if self._profiling is not None:
                self._profiling.leave()
            if self._phases.models is not None:
                self._phases.models.end_look()
            if self.inference is not None:
                self.inference.off = True
                self.inference.end_look()
            reason = f"{type(error).__name__}: {error}".strip()
            self._problem(f"the hook left the program: {reason[:300]}")
        except Exception:  # the channel is gone as well
            self._channel = None

    # What the program says by itself.

    @_guarded
    def begin_own_step(self) -> None:
        if self.inference is not None:
            self.trains()
        if self.passing.on:
            self.sees()
        self._by_itself = self._in_own_step = True
        self._phases.between()

    @_guarded
    def end_own_step(self, samples: int | None, tokens: int | None) -> None:
        self._in_own_step = False
        if samples is not None:
            self._samples = samples
        if tokens is not None:
            self._tokens = tokens
        self._phases.between()
        self.end_step(None if self._leader is None else self._leader(), False)

    @_guarded
    def begin_own_phase(self, name: str) -> tuple[int, bool] | None:
        """Stay in a phase of this name; returns what it interrupts."""
        if self.passing.on:
            return None
        return self._phases.begin_own(name)

    @_guarded
    def end_own_phase(self, before: tuple[int, bool] | None) -> None:
        if before is not None:
            self._phases.end_own(before)

    @_guarded
    def begin_own_count(self) -> Any:
        """The counter of a call in a step of the program's own, which counts from here on."""
        if not self._in_own_step or "torch" not in sys.modules:
            return None
        self._make_counting()
        return self._counting.begin_call()

    @_guarded
    def end_own_count(self, counter: Any) -> None:
        if self._counting.counter is counter:
            self._counting.end_call()

    def _make_counting(self) -> None:
        if self._counting is None and "torch" in sys.modules:
            from .counting import Counting

            self._counting = Counting()


FORWARD_PART, BACKWARD_PART, OPTIMIZER_PART = range(3)
"""As in ``counter.step_counter``, which loads torch."""


def _transforms() -> bool:
    """Whether ``torch.func`` runs what the program wrote for one sample for many: sizes are those
    of one. Torch tells it nowhere else."""
    functorch: Any = getattr(sys.modules["torch"]._C, "_functorch", None)
    look = getattr(functorch, "peek_interpreter_stack", None)
    return look is not None and look() is not None


def _plus(total: int | None, value: int | None) -> int | None:
    return total if value is None else value if total is None else total + value
