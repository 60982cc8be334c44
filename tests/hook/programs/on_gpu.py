"""Loops on a GPU that time themselves, for ``test_cuda.py``."""

import sys

import torch
from torch import nn

EARLY = 50
STEPS = {"short": 3000, "ahead": 3000, "long": 60, "captured": 200}
torch.manual_seed(0)
name = sys.argv[1]
width = {"ahead": 2048, "long": 4096}.get(name, 64)
layers = {"ahead": 2, "long": 24}.get(name, 3)
model = nn.Sequential(*(nn.Linear(width, width) for _ in range(layers))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
inputs = torch.randn(width, width, device="cuda")
begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))


def step(number):
    optimizer.zero_grad()
    loss = model(inputs).square().mean()
    loss.backward()
    optimizer.step()
    if name == "short" or number % 100 == 0:
        loss.item()


def captured():
    """Forward and backward pass are recorded once and replayed; the optimizer is not."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for number in range(EARLY):
            step(number)
    torch.cuda.current_stream().wait_stream(side)
    begin.record()
    graph = torch.cuda.CUDAGraph()
    optimizer.zero_grad(set_to_none=True)
    with torch.cuda.graph(graph):
        loss = model(inputs).square().mean()
        loss.backward()
    for _ in range(EARLY, STEPS[name]):
        graph.replay()
        optimizer.step()
    return loss


if name == "captured":
    captured()
else:
    for number in range(1, STEPS[name] + 1):
        step(number)
        if number == EARLY:
            begin.record()
end.record()
end.synchronize()
print("seconds", begin.elapsed_time(end) / 1e3)
