"""What a format of progress lines implements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field

from gpuwatch.core.lazy_dataclass import dataclass


@dataclass(frozen=True)
class Progress:
    """The figures of one line; ``None`` is not told."""

    step: int | None = None
    """Number of the step that the line is about; it rises over the epochs. Without it, the line's
    figures count only where the hook tells the steps."""
    seconds: float | None = None
    """Duration of this one step, iteration to iteration. Never a mean of several."""
    loss: float | None = None
    """Training loss of this one step, or what ``figures`` says."""
    acc1: float | None = None
    """Fraction of correct top-1 predictions of this one step, 0 to 1."""
    acc5: float | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    """Seconds of this one step by phase; they add up to ``seconds``."""


@dataclass(frozen=True)
class ProgressLines:
    """A program's progress lines."""

    program: str
    """The program, as a reader knows it."""
    figures: str
    """What a line tells, and how exactly: ``the time (in whole ms) and the loss of one step``."""
    read: Callable[[str], Progress | None]
    """The figures of a line; ``None`` for any other text. It is called for each line of a log."""
