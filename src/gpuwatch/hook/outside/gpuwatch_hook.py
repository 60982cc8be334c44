"""Copy this file beside your program: it can then say `import gpuwatch_hook as g` everywhere.

Within `gpuwatch run` the real one is there instead, and records what you tell it. Elsewhere this
one does nothing. It needs nothing but Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def step(samples: int | None = None, tokens: int | None = None) -> Iterator[None]:
    """The block is a step of the training, of so many samples and tokens."""
    yield


@contextmanager
def phase(name: str) -> Iterator[None]:
    """The time of the block belongs to this phase of the step."""
    yield


def flop(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """Calls the function; in the first step with such calls they are counted, as its work."""
    return function(*args, **keywords)


def plan(steps: int) -> None:
    """Says how many steps are to come."""
