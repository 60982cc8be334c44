"""``sentiment-rnn``, ``-lstm``, ``-gru``: recurrent networks that classify film reviews.

The first is a plain one; the others are laid out as Keras's IMDB example.
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from ..data import synthetic
from ..data.imdb import FIRST_WORD, PAD, read_reviews
from ..names import defaults
from ..task import Data, Definition, Scored, Settings, Task

SAMPLES = 1_000
VOCABULARY = 200
LENGTH = 100
WORDS, WIDTH, LONGER = 20_000, 128, 80
"""Of the LSTM and the GRU."""


class SentimentRNN(nn.Module):
    """Embedding, `nn.RNN` and a fully connected layer on the last hidden state.

    Tokens, int64 (N, 100), to logits, (N,).
    """

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY + FIRST_WORD, 20, padding_idx=PAD)
        self.rnn = nn.RNN(20, 40, batch_first=True)
        self.linear = nn.Linear(40, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        _, hidden = self.rnn(self.embedding(tokens))
        logits: Tensor = self.linear(hidden[-1])
        return logits.squeeze(1)


class Classifier(nn.Module):
    """Embedding, a recurrent layer and a fully connected layer on its last output.

    Tokens, int64 (N, 80), to logits, (N,). ``recurrent`` goes from (N, 80, 128) to the same.
    """

    def __init__(self, recurrent: nn.Module) -> None:
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH, padding_idx=0)
        self.recurrent = recurrent
        self.linear = nn.Linear(WIDTH, 1)

    def forward(self, tokens: Tensor) -> Tensor:
        outputs, _ = self.recurrent(self.embedding(tokens))
        logits: Tensor = self.linear(outputs[:, -1])
        return logits.squeeze(1)


def objective(model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
    """Binary cross entropy of (N,) logits with (N,) sentiments, 0 or 1."""
    logits = model(*inputs)
    return binary_cross_entropy_with_logits(logits, target), logits, target


def reviews(settings: Settings, vocabulary: int, length: int) -> Data:
    """1,000 reviews, half of them positive: their first ``length`` words, int64 (length,)."""
    shape = f"{length} tokens, vocabulary {vocabulary} + {FIRST_WORD}"
    if settings.data is None:
        tokens, sentiments = synthetic.reviews(SAMPLES, length, vocabulary)
        kind, text = "synthetic", f"{SAMPLES} reviews of {shape}"
    else:
        tokens, sentiments = read_reviews(settings.data, SAMPLES, vocabulary, length)
        kind, text = "real", f"{SAMPLES} reviews of IMDB, {shape}"
    dataset = synthetic.Repeated(tokens, sentiments)
    return Data(kind, text, SAMPLES, dataset, path=settings.data)


def make(kind: str, settings: Settings) -> Task:
    """The task with these settings; ``kind``: ``rnn``, ``lstm`` or ``gru``."""
    if kind == "rnn":
        return Task(
            model=SentimentRNN(),
            text="embedding 202 to 20, RNN 20 to 40 over 100 tokens, fully connected 40 to 1",
            data=reviews(settings, VOCABULARY, LENGTH),
            objective=objective,
            optimizer=partial(torch.optim.SGD, lr=settings.lr),
        )
    layer = {"lstm": nn.LSTM, "gru": nn.GRU}[kind](WIDTH, WIDTH, batch_first=True)
    name = kind.upper()
    return Task(
        model=Classifier(layer),
        text=f"embedding 20000 to 128, {name} 128 over {LONGER} tokens, fully connected 128 to 1",
        data=reviews(settings, WORDS - 2, LONGER),
        objective=objective,
        optimizer=partial(torch.optim.Adam, lr=settings.lr),
    )


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), partial(make, name.removeprefix("sentiment-")))
