"""Gradient accumulation over four batches, of which the end of an epoch leaves two."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
torch.set_num_threads(1)
train = DataLoader(TensorDataset(torch.randn(80, 64), torch.randint(10, (80,))), 8)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    for i, (inputs, labels) in enumerate(train, 1):
        loss = nn.functional.cross_entropy(model(inputs), labels) / 4
        loss.backward()
        if i % 4 == 0 or i == len(train):
            optimizer.step()
            optimizer.zero_grad()
            print("loss", loss.item().hex())
