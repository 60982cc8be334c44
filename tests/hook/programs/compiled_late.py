"""Compiles a model while its steps are passed over, then a step with its optimizer."""

import logging

import torch
from torch import nn
from torch._dynamo.utils import counters

torch.manual_seed(0)
torch.set_num_threads(1)
plain = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
compiled = torch.compile(plain, backend="eager")
of_whole = torch.optim.SGD(plain.parameters(), lr=1e-3)


@torch.compile(backend="eager")
def whole(inputs):
    loss = plain(inputs).square().mean()
    loss.backward()
    of_whole.step()
    of_whole.zero_grad()
    return loss


def train(model, steps):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(steps):
        optimizer.zero_grad()
        loss = model(torch.ones(4, 8)).square().mean()
        loss.backward()
        optimizer.step()
    return loss


logging.disable()  # torch numbers its frames in what it logs
for loss in (
    train(plain, 4000),
    train(compiled, 4000),
    whole(torch.ones(4, 8)),
    train(compiled, 9),
):
    print(loss.item().hex(), counters["stats"]["unique_graphs"], dict(counters["frames"]))
