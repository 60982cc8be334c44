"""``sentiment-gru``: `sentiment_lstm` with a GRU in place of the LSTM."""

from __future__ import annotations

from torch import nn

from ..names import defaults
from ..task import Definition, Settings, Task
from .sentiment_lstm import WIDTH, task


def make(settings: Settings) -> Task:
    """The task with these settings."""
    return task(settings, "GRU", nn.GRU(WIDTH, WIDTH, batch_first=True))


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make)
