"""Lightning's Trainer knows how many steps it is going to take."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from ..own import plan


def watch(fit_loop: ModuleType) -> None:
    """``lightning.pytorch.loops.fit_loop`` was loaded."""
    # In public this is told to callbacks alone, which the program lists and saves.
    original = fit_loop._FitLoop.on_run_start

    @functools.wraps(original)
    def on_run_start(self: Any) -> Any:
        # Without an end it is infinite.
        if isinstance(steps := self.trainer.estimated_stepping_batches, int):
            plan(steps - self.trainer.global_step)
        return original(self)

    fit_loop._FitLoop.on_run_start = on_run_start
