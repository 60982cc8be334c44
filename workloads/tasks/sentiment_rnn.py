"""``sentiment-rnn``: a recurrent network that classifies film reviews as good or bad."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from ..data import synthetic
from ..data.folder import no_download
from ..data.imdb import FIRST_WORD, PAD, read_reviews
from ..names import defaults
from ..task import Data, Definition, Scored, Settings, Task

SAMPLES = 1_000
VOCABULARY = 200
LENGTH = 100


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


def objective(model: nn.Module, inputs: tuple[Tensor, ...], target: Tensor) -> Scored:
    """Binary cross entropy of the logits."""
    logits = model(*inputs)
    return binary_cross_entropy_with_logits(logits, target), logits, target


def data(settings: Settings) -> Data:
    """1,000 reviews of 100 tokens, half of them positive."""
    if settings.download:
        raise no_download("IMDB's reviews", "ai.stanford.edu/~amaas/data/sentiment")
    if settings.data is None:
        tokens, sentiments = synthetic.reviews(SAMPLES, LENGTH, VOCABULARY)
        kind, text = "synthetic", f"{SAMPLES} reviews of {LENGTH} tokens, vocabulary 200 + 2"
    else:
        tokens, sentiments = read_reviews(settings.data, SAMPLES, VOCABULARY, LENGTH)
        kind, text = "real", f"{SAMPLES} reviews of IMDB, {LENGTH} tokens, vocabulary 200 + 2"
    dataset = synthetic.Repeated(tokens, sentiments)
    return Data(kind, text, SAMPLES, dataset, path=settings.data)


def make(settings: Settings) -> Task:
    """The task with these settings."""
    return Task(
        model=SentimentRNN(),
        text="embedding 202 to 20, RNN 20 to 40 over 100 tokens, fully connected 40 to 1",
        data=data(settings),
        objective=objective,
        optimizer=lambda parameters: torch.optim.SGD(parameters, lr=settings.lr),
    )


def definition(name: str) -> Definition:
    """The workload."""
    return Definition(defaults(name), make)
