"""Thirty steps, compiled if the first argument says so; prints losses and what dynamo did."""

import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(240, 64), torch.randint(10, (240,))), 8, shuffle=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Dropout(0.1), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
called = torch.compile(model) if "compiled" in sys.argv else model
for inputs, labels in train:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(called(inputs), labels)
    loss.backward()
    optimizer.step()
    print("loss", loss.item().hex())
counters = torch._dynamo.utils.counters
print("dynamo", {name: dict(counters[name]) for name in ("stats", "frames", "graph_break")})
