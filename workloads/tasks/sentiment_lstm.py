"""``sentiment-lstm``: an LSTM that classifies film reviews, laid out as Keras's IMDB example."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn

from ..names import defaults
from ..task import Definition, Settings, Task
from .sentiment_rnn import objective, reviews

VOCABULARY, WIDTH, LENGTH = 20_000, 128, 80


class Classifier(nn.Module):
    """Embedding, a recurrent layer and a fully connected layer on its last output.

    Tokens, int64 (N, 80), to logits, (N,). ``recurrent`` goes from (N, 80, 128) to the same.
    """

    def __init__(self, recurrent: nn.Module) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, WIDTH, padding_idx=0)
        self.recurrent = recurrent
        self.linear = nn.Linear(WIDTH, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        outputs, _ = self.recurrent(self.embedding(tokens))
        logits: Tensor = self.linear(outputs[:, -1])
        return logits.squeeze(1)


def task(settings: Settings, kind: str, recurrent: nn.Module) -> Task:
    """The task with this recurrent layer, which is called ``kind``."""
    return Task(
        model=Classifier(recurrent),
        text=f"embedding 20000 to 128, {kind} 128 over {LENGTH} tokens, fully connected 128 to 1",
        data=reviews(settings, VOCABULARY - 2, LENGTH),
        objective=objective,
        optimizer=partial(torch.optim.Adam, lr=settings.lr),
    )


def make(settings: Settings) -> Task:
    """The task with these settings."""
    return task(settings, "LSTM", nn.LSTM(WIDTH, WIDTH, batch_first=True))


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make)
