"""Gradient accumulation: a step of the optimizer every four batches."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

ACCUMULATE = 4
torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(256, 64), torch.randint(10, (256,))), 8)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.AdamW(model.parameters())
for i, (inputs, labels) in enumerate(train, 1):
    loss = nn.functional.cross_entropy(model(inputs), labels) / ACCUMULATE
    loss.backward()
    if i % ACCUMULATE == 0:
        optimizer.step()
        optimizer.zero_grad()
        print("loss", loss.item().hex())
