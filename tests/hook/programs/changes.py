"""Layers that are unfrozen after half of the training, or again and again, or a second model."""

import sys
import time

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
data = DataLoader(TensorDataset(torch.randn(640, 64), torch.randint(10, (640,))), 16)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


def epoch(seconds=0.02):
    for inputs, labels in data:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        print("loss", loss.item().hex())
        time.sleep(seconds)


if sys.argv[1] == "back and forth":  # of fast steps many are counted
    for _ in range(10):
        for trained in (False, True):
            model[0].requires_grad_(trained)
            epoch(0)
elif sys.argv[1] == "unfrozen":
    model[0].requires_grad_(False)
    epoch()
    model[0].requires_grad_(True)
else:
    epoch()
    model = nn.Linear(64, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    epoch()
