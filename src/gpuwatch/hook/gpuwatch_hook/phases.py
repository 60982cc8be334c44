"""In which phase of a step the program is, by what it does.

``forward`` lasts from the call of a model to ``backward``. An evaluation is no part of a step: it
begins with a batch or a model in the mode for it, without gradients, and ends where the training
goes on. Where a phase never showed, as ``data`` without a loader, its time is in ``other``.
"""

from __future__ import annotations

import sys
from typing import Any
from weakref import ref

from .clocks import (
    BACKWARD,
    DATA,
    EVALUATION,
    FORWARD,
    OPTIMIZER,
    OTHER,
    PHASES,
    SLOTS,
    CpuClock,
    CudaClock,
)

_UNSEEN = {
    DATA: "no DataLoader of torch gave a batch; what the program waits for its data is in other",
    FORWARD: (
        "no call of a model was seen: it is compiled as a part of something larger, or no module "
        "of torch; its time is in other"
    ),
    BACKWARD: "no backward pass was seen outside of the program's own phases",
    OPTIMIZER: "no optimizer was seen outside of the program's own phases",
}
"""Why a phase has no time."""


class Phases:
    """The phases of the process, timed by ``clock``."""

    def __init__(self) -> None:
        self.clock: CpuClock | CudaClock = CpuClock()
        self.names = list(PHASES)
        self.models: Any = None
        """What finds models, once there is torch."""
        self.in_backward = self._in_closure = False
        self._optimizers: list[int] = []
        """``id`` of those at work, the innermost last."""
        self._inner = False
        """Whether the step that ended last was that of another one's base class."""
        self._nested = False
        """Whether any step was."""
        self._under = OTHER
        """The phase that is meant while one of the program's own lasts."""
        self._seen = {OTHER}
        """Phases that the program was ever in."""
        self.forward = False
        """Whether this step called a model."""
        self.doubtful = False
        """Whether a part of this step was taken for an evaluation."""
        self._mode_tells = True
        """Whether a model in the mode for evaluation is not trained, even with gradients."""
        self._apart = True
        """Whether what looks like an evaluation is one: not if two steps in a row have it."""
        self._evaluated = self._evaluated_before = False
        """Whether this step and the one before had one."""
        self._infers = False
        """Whether nothing is trained."""

    def _enter(self, phase: int) -> int:
        """Begin a phase; returns the one that it ends."""
        if self.clock.held:
            before, self._under = self._under, phase
            return before
        self._seen.add(phase)
        return self.clock.enter(phase)

    def _evaluates(self) -> bool:
        """Begin an evaluation, unless it is a part of every step."""
        if self._evaluated_before:
            self._apart = False
        if self._apart:
            self._evaluated = True
            self._enter(EVALUATION)
        return self._apart

    @property
    def now(self) -> int:
        return self._under if self.clock.held else self.clock.phase

    # What the program does.

    def data_begins(self) -> tuple[int, bool]:
        """A loader is asked for a batch. Returns the phase before, and whether the batch is for an
        evaluation."""
        before = self.now
        looks_so = not gradients() or (self._mode_tells and self._model_evaluates())
        if self._apart and looks_so and self._evaluates():
            return before, True
        return self._enter(DATA), False

    def data_ends(self, before: tuple[int, bool]) -> None:
        phase, evaluates = before
        if not evaluates:  # after an evaluation the training goes on
            self._enter(OTHER if phase == EVALUATION else phase)

    def model_called(self, model: Any) -> bool | None:
        """The program calls a model. Returns whether a forward pass begins; ``None``: the call is
        no part of one."""
        if self.in_backward or model not in self.models:  # in it checkpointing computes again
            return None
        trains = gradients()
        if trains:
            self.models.last = ref(model)
        looks_so = not model.training and (self._mode_tells or not trains)
        if self._apart and looks_so and self._evaluates():
            return None
        if not trains:
            return None
        if self.now == FORWARD:
            return False
        self.forward = True
        self._enter(FORWARD)
        return True

    @property
    def idle(self) -> bool:
        """Whether a step may begin here of which nothing is seen but its end."""
        at_work = self.in_backward or self._optimizers or self.clock.held or self._nested
        return not at_work and self.now != EVALUATION

    def may_evaluate(self, model: Any = None) -> bool:
        """Whether an evaluation may begin, with a batch or this model; as :meth:`data_begins` and
        :meth:`model_called` will say."""
        trains = gradients()
        if model is None:
            looks_so = not trains or (self._mode_tells and self._model_evaluates())
        else:
            mode = not model.training and (self._mode_tells or not trains)
            looks_so = mode and model in self.models
        return self._apart and looks_so

    def infers(self) -> None:
        """What looks like an evaluation is all that the program does."""
        self._infers, self._apart = True, False
        self._seen.discard(EVALUATION)

    def inference_begins(self) -> None:
        """A model is called for its result."""
        self.forward = True
        self._enter(FORWARD)

    def backward_begins(self) -> int:
        if self._mode_tells and self._model_evaluates():  # it is trained in this mode
            self._mode_tells = False
            self.doubtful = self.now == EVALUATION
        self.in_backward = True
        return self._enter(BACKWARD)

    def backward_ends(self) -> None:
        self.in_backward = False
        self._enter(self._outside)

    def closure(self, runs: bool) -> None:
        """An optimizer's closure begins, or is over: what it does is not the optimizer's."""
        self._in_closure = runs
        self._enter(self._outside)

    @property
    def _outside(self) -> int:
        """The phase outside of passes."""
        return OPTIMIZER if self._optimizers and not self._in_closure else OTHER

    def optimizer_begins(self, optimizer: Any) -> None:
        if self._inner:  # the outer one ended with an exception, of which no one told
            self._optimizers.clear()
        self._optimizers.append(id(optimizer))
        self._enter(OPTIMIZER)

    def optimizer_ends(self, optimizer: Any) -> bool:
        """Returns whether its step is over: one that calls the step of its base class has two."""
        if self._optimizers:
            self._optimizers.pop()
        self._enter(BACKWARD if self.in_backward else self._outside)
        self._inner = id(optimizer) in self._optimizers
        self._nested = self._nested or self._inner
        return not self._inner

    @property
    def in_optimizer(self) -> bool:
        """Whether an optimizer is at work, which may call the program's closure."""
        return bool(self._optimizers)

    def end_step(self, sample: bool) -> None:
        """A step ends here, and the next one is sampled or not; the phase goes on."""
        self.clock.end_step(sample)
        self._optimizers.clear()
        self.forward = self.now == FORWARD
        self.doubtful = False
        self._evaluated_before, self._evaluated = self._evaluated, False

    def passed(self) -> None:
        """Steps ended that held no evaluation, which would have been seen."""
        self._evaluated_before = self._evaluated = False

    def between(self) -> None:
        """No phase that is known: a step of the program's own begins or ends, or calls for a result
        are over."""
        self._enter(OTHER)

    def begin_own(self, name: str) -> tuple[int, bool]:
        """Stay in a phase of this name; returns what it interrupts."""
        if name not in self.names and len(self.names) < SLOTS:
            self.names.append(name)
        before = self.clock.phase, self.clock.held
        if not self.clock.held:
            self._under = self.clock.phase
        self.clock.held = False
        self.clock.enter(self.names.index(name) if name in self.names else OTHER)
        self.clock.held = True
        return before

    def end_own(self, before: tuple[int, bool]) -> None:
        phase, held = before
        self.clock.held = False
        if held:
            self.clock.enter(phase)
        else:
            self._enter(self._under)
        self.clock.held = held

    # What is told of it.

    def told(self, forward: bool) -> list[int]:
        """The phases whose times are known, of steps that called a model or did not."""
        known = self._seen - {FORWARD} | ({FORWARD} if forward and FORWARD in self._seen else set())
        return sorted({*known, *range(len(PHASES), len(self.names))})

    def unseen(self, forward: bool) -> dict[str, str]:
        """Why the times of others are not, by name."""
        expected = {DATA} if self._infers else _UNSEEN.keys()
        missing = expected - set(self.told(forward))
        return {PHASES[at]: _UNSEEN[at] for at in sorted(missing)}

    def _model_evaluates(self) -> bool:
        last = None if self.models is None else self.models.last
        model = None if last is None else last()
        return model is not None and not model.training


def gradients() -> bool:
    """Whether torch records what is computed for a backward pass."""
    torch: Any = sys.modules["torch"]
    return bool(torch.is_grad_enabled())
