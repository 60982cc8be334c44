"""transformers' Trainer knows how many steps it is going to take."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

from ..own import plan


def watch(trainer_callback: ModuleType) -> None:
    """``transformers.trainer_callback`` was loaded."""
    original = trainer_callback.CallbackHandler.on_train_begin

    @functools.wraps(original)
    def on_train_begin(self: Any, args: Any, state: Any, *more: Any, **keywords: Any) -> Any:
        plan(state.max_steps - state.global_step)
        return original(self, args, state, *more, **keywords)

    trainer_callback.CallbackHandler.on_train_begin = on_train_begin
