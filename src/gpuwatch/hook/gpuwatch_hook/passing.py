"""Steps that are passed over: of them the hook notes when they end, and nothing else.

Where the hook would take more than its budget, the steps that are not drawn are passed over. What
would see them is taken out of torch where that is cheaper than a look whether it is wanted: the
hook before an optimizer's step, and the one around ``backward``. What may begin an evaluation is
still seen, since that is in no step: see :meth:`Tracker.stirs`.

What a step was given and computed is then that of the steps that are seen. So none is passed over
before many were seen that are all alike, and none any more once one differs, or calls models more
or less often: that one is in no statistic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

_FEWEST = 50
"""How many steps, all alike, say what the others are like."""


class Step(NamedTuple):
    """What is told of a step, but for its time."""

    warmup: bool
    skipped: bool
    forward: bool
    """Whether a model was called, as far as was seen."""
    samples: float | None
    tokens: float | None
    work: tuple[float, float] | None
    """FLOP and bytes; ``None``: as the ``count`` line says."""
    loss: Any

    @property
    def known(self) -> tuple[bool, ...]:
        """What is known of it: steps of which the same is known fit into one line."""
        _, _, _, samples, tokens, work, loss = self
        known = samples is None, tokens is None, work is None, loss is None
        return self.warmup, self.forward, *known


class Eye(Protocol):
    """What sees something in each step, and can be taken out of torch."""

    def remove(self) -> None: ...

    def put_back(self) -> None: ...


eyes: list[Eye] = []
"""Of this process."""


class Passing:
    """Which steps are passed over, and what is told of them."""

    def __init__(self) -> None:
        self.on = False
        """Whether the step that runs now is."""
        self.partly = False
        """Whether it was, up to something that the hook has to see."""
        self.steps = 0
        """How many were, in all."""
        self.ends: list[int] = []
        """When those ended that are not told yet (``CLOCK_MONOTONIC``, ns)."""
        self.leader: Callable[[], Any] = lambda: None
        """The optimizer with whose step they end."""
        self.usual = Step(False, False, False, None, None, None, None)
        """What is told of each of them."""
        self.newest = False
        """Whether the newest step is told as the others were."""
        self.calls = 0
        """Of models in training mode, in the step that runs now."""
        self._usual_calls: int | None = None
        """In each step that was seen; ``None``: not known, or they differ."""
        self._alike = 0
        """How many were seen that were alike."""
        self._varies = False
        self._removed = False

    def saw(self, step: Step, lacking: int, calls: int) -> None:
        """A step of the training was seen from its beginning to its end, which called models so
        often, and was given so many samples less than others, at the end of an epoch."""
        samples = None if step.samples is None else step.samples + lacking
        seen = step._replace(samples=samples, loss=None)
        if self._alike and seen != self.usual:
            # A step is counted by its kind only once there are several.
            self._varies |= None not in (seen.work, self.usual.work) or seen[:-2] != self.usual[:-2]
            self._alike = 0
        if not self._alike:
            self._usual_calls = calls
        elif calls != self._usual_calls:
            self._usual_calls = None
        self.usual = seen
        self._alike += 1

    def forget(self) -> None:
        """Steps to come may differ from those before."""
        self._alike, self._varies = 0, False

    def end_alike(self) -> bool:
        """Whether the step that ends called models as often as those that were seen."""
        calls, self.calls = self.calls, 0
        return self._usual_calls in (None, calls)

    @property
    def known(self) -> bool:
        """Whether enough steps were seen to tell what the others are like."""
        return self._alike >= _FEWEST and not self._varies

    def begin(self, leader: Callable[[], Any]) -> None:
        """Pass the next step over."""
        self.leader, self.on, self.partly = leader, True, False

    def remove_eyes(self) -> None:
        """Take what sees each step out of torch."""
        self._removed = True
        for each in eyes:
            each.remove()

    def end(self, *, partly: bool) -> None:
        """See what comes from here on; ``partly``: in the middle of a step."""
        self.on, self.partly = False, partly
        if self._removed:
            self._removed = False
            for each in eyes:
                each.put_back()
